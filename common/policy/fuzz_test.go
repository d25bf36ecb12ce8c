// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// checkParsed holds what is true of the result of every parser.
func checkParsed(t *testing.T, data []byte, p *Policy, err error) {
	t.Helper()
	if err != nil {
		e := checkError(t, err)
		if p != nil {
			t.Fatalf("policy %v with error %v", p, err)
		}
		lines := strings.Split(string(data), "\n")
		if e.Line > len(lines) || e.Column > len([]rune(lines[e.Line-1]))+1 {
			t.Fatalf("error at %d:%d is outside the document: %v", e.Line, e.Column, err)
		}
		for _, s := range []string{e.Error(), e.Hint} {
			for _, r := range s {
				if r < 0x20 || r == 0x7f {
					t.Fatalf("control character in message or hint %q", s)
				}
			}
		}
		return
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("parsed policy is not valid: %v\n%s", err, p)
	}
	c, err := Combine(p, nil)
	if err != nil || c.String() != p.String() {
		t.Fatalf("combined with nothing differs: %v\n%s\n%s", err, p, c)
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, in := range goodJSON {
		f.Add([]byte(in.text))
	}
	for _, in := range badJSON {
		if len(in.text) < 4096 {
			f.Add([]byte(in.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseJSON("f", data)
		checkParsed(t, data, p, err)
		compareJSON(t, data)
		if err != nil {
			return
		}
		text, err := p.JSON()
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		again, err := ParseJSON("f", text)
		if err != nil || again.String() != p.String() {
			t.Fatalf("read back differs: %v\n%s\n%s", err, p, text)
		}
	})
}

func FuzzParseSandbox(f *testing.F) {
	for _, in := range goodSandbox {
		f.Add([]byte(in.text))
	}
	for _, in := range badSandbox {
		if len(in.text) < 4096 {
			f.Add([]byte(in.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseSandbox("f", data)
		checkParsed(t, data, p, err)
		compareTOML(t, data)
		if err != nil {
			return
		}
		if again, err := ParseOperator("f", data); err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("an operator's file reads [sandbox] otherwise: %v", err)
		}
	})
}

func FuzzParseOperator(f *testing.F) {
	for _, in := range goodOperator {
		f.Add([]byte(in.text))
	}
	for _, in := range badOperator {
		f.Add([]byte(in.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseOperator("f", data)
		checkParsed(t, data, p, err)
		if err != nil {
			return
		}
		doc := operatorTOML(p)
		again, err := ParseOperator("f", []byte(doc))
		if err != nil && len(doc) > MaxDocument {
			return
		}
		if err != nil || again.String() != p.String() {
			t.Fatalf("read back differs: %v\n%s\n%s", err, p, doc)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8:443/tcp", "[2001:db8::/32]:1-2/udp", "::ffff:10.0.0.0/104", "10.1.2.3/8", "2001:db8::/32:443", "a", ""} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, deny bool) {
		r, err := ParseRule(s, deny)
		if err != nil {
			e := checkError(t, err)
			if r != (Rule{}) || e.Column > len([]rune(s))+1 {
				t.Fatalf("rule %+v, error %+v", r, e)
			}
			return
		}
		if r.Text != s || r.Deny != deny || (&Policy{Net: Net{Rules: []Rule{r}}}).Validate() != nil {
			t.Fatalf("ParseRule(%q) = %+v", s, r)
		}
		again, err := ParseRule(r.String(), deny)
		again.Text = s
		if err != nil || again != r {
			t.Fatalf("ParseRule(%q) = %+v, %v, want %+v", r.String(), again, err, r)
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"api.example.org", "*.Example.org.:8443", "bücher.example", "127.1", "0x7f.1", "[::1]:443", "xn--bcher-kva.example", "１.1", "a_b", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			e := checkError(t, err)
			if h != (HostPort{}) || e.Column > len([]rune(s))+1 {
				t.Fatalf("host %+v, error %+v", h, e)
			}
			return
		}
		if h.Port == 0 || len(h.Host) > maxName || h.Host != strings.ToLower(h.Host) || strings.Trim(h.Host, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			t.Fatalf("ParseHost(%q) = %+v", s, h)
		}
		if looksNumeric(h.Host) {
			t.Fatalf("ParseHost(%q) = %+v, an address", s, h)
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Fatalf("ParseHost(%q) = %+v, %v, want %+v", h.String(), again, err, h)
		}
	})
}

// looksNumeric reports whether inet_aton reads the name as an address: up to
// four numbers in decimal, octal or hexadecimal.
func looksNumeric(name string) bool {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if _, err := strconv.ParseUint(part, 0, 32); err != nil || strings.Trim(part, "0123456789abcdefx") != "" || strings.HasPrefix(part, "0b") {
			return false
		}
	}
	return len(parts) <= 4
}
