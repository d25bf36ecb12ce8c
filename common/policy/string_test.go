// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseRule(t *testing.T) {
	tests := []struct {
		in, prefix string
		lo, hi     uint16
		proto      Proto
		canonical  string
	}{
		{"10.0.0.0/8", "10.0.0.0/8", 0, 65535, AnyProto, "10.0.0.0/8"},
		{"10.1.2.3", "10.1.2.3/32", 0, 65535, AnyProto, "10.1.2.3/32"},
		{"0.0.0.0/0", "0.0.0.0/0", 0, 65535, AnyProto, "0.0.0.0/0"},
		{"0.0.0.0/0/udp", "0.0.0.0/0", 0, 65535, UDP, "0.0.0.0/0/udp"},
		{"10.0.0.0/8:443", "10.0.0.0/8", 443, 443, AnyProto, "10.0.0.0/8:443"},
		{"10.0.0.0/8:443/tcp", "10.0.0.0/8", 443, 443, TCP, "10.0.0.0/8:443/tcp"},
		{"10.1.2.3:1-65535/udp", "10.1.2.3/32", 1, 65535, UDP, "10.1.2.3/32:1-65535/udp"},
		{"10.1.2.3:8000-8999", "10.1.2.3/32", 8000, 8999, AnyProto, "10.1.2.3/32:8000-8999"},
		{"10.1.2.3:80-80", "10.1.2.3/32", 80, 80, AnyProto, "10.1.2.3/32:80"},
		{"10.1.2.3/tcp", "10.1.2.3/32", 0, 65535, TCP, "10.1.2.3/32/tcp"},
		{"2001:db8::/32", "2001:db8::/32", 0, 65535, AnyProto, "2001:db8::/32"},
		{"2001:db8::/32/tcp", "2001:db8::/32", 0, 65535, TCP, "2001:db8::/32/tcp"},
		{"2001:DB8::1", "2001:db8::1/128", 0, 65535, AnyProto, "2001:db8::1/128"},
		{"[2001:db8::1]", "2001:db8::1/128", 0, 65535, AnyProto, "2001:db8::1/128"},
		{"[2001:db8::/32]:443/tcp", "2001:db8::/32", 443, 443, TCP, "[2001:db8::/32]:443/tcp"},
		{"[2001:db8::1]:53/udp", "2001:db8::1/128", 53, 53, UDP, "[2001:db8::1/128]:53/udp"},
		{"[::]:1-2", "::/128", 1, 2, AnyProto, "[::/128]:1-2"},
		{"::/0", "::/0", 0, 65535, AnyProto, "::/0"},
		{"::", "::/128", 0, 65535, AnyProto, "::/128"},
		{"[10.0.0.0/8]:80", "10.0.0.0/8", 80, 80, AnyProto, "10.0.0.0/8:80"},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8", 0, 65535, AnyProto, "10.0.0.0/8"},
		{"::ffff:10.1.2.3", "10.1.2.3/32", 0, 65535, AnyProto, "10.1.2.3/32"},
		{"::ffff:0:0/96", "0.0.0.0/0", 0, 65535, AnyProto, "0.0.0.0/0"},
		{"[::ffff:a01:203]:80", "10.1.2.3/32", 80, 80, AnyProto, "10.1.2.3/32:80"},
	}
	for _, tt := range tests {
		for _, deny := range []bool{false, true} {
			r, err := ParseRule(tt.in, deny)
			want := Rule{Prefix: netip.MustParsePrefix(tt.prefix), PortLo: tt.lo, PortHi: tt.hi, Proto: tt.proto, Deny: deny, Text: tt.in}
			if err != nil || r != want {
				t.Errorf("ParseRule(%q) = %+v, %v, want %+v", tt.in, r, err, want)
			}
			if got := r.String(); got != tt.canonical {
				t.Errorf("rule %q prints %q, want %q", tt.in, got, tt.canonical)
			}
		}
	}
}

func TestParseRuleBad(t *testing.T) {
	badGolden(t, "bad-rule.golden", plain(
		"", " ", "any", "*", "/tcp", ":443", "10.0.0.0/", "10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0/8", "10/8", "010.0.0.0/8", "0x0a.0.0.0/8", "167772160", "256.0.0.1",
		"10.1.2.3/8", "10.1.2.3/31:443-444/udp", "10.0.0.0/0", "2001:db8::1/32", "[2001:db8::1/32]:443/tcp", "::ffff:10.1.2.3/104",
		"::ffff:10.0.0.0/90", "2001:db8::/129", "fe80::1%eth0", "[fe80::%1/64]:80", "2001:db8::/32:443", "2001:db8::/32:443/tcp",
		"[2001:db8::/32", "2001:db8::/32]:443", "[2001:db8::]/32", "[2001:db8::]/32:443", "[2001:db8::]443", "[]:443", "[]",
		"10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536", "10.0.0.0/8:-1", "10.0.0.0/8:+1", "10.0.0.0/8:080", "10.0.0.0/8:https",
		"10.0.0.0/8:1-", "10.0.0.0/8:-", "10.0.0.0/8:2-1", "10.0.0.0/8:1-2-3", "10.0.0.0/8:1,2", "10.0.0.0/8:0-65535", "10.0.0.0/8:1-65536",
		"10.0.0.0/8/sctp", "10.0.0.0/8/TCP", "10.0.0.0/8/", "10.0.0.0/8/tcp/udp", "10.0.0.0/8/tcp:443", "example.org", "example.org:443/tcp",
		"10.0.0.0\x00/8", "１０.0.0.0/8",
	), func(s string) (any, error) { return ParseRule(s, true) })
}

// plain names each input by itself.
func plain(texts ...string) []input {
	in := make([]input, len(texts))
	for i, s := range texts {
		in[i] = input{quote(s), s}
	}
	return in
}

func TestRuleMatch(t *testing.T) {
	tests := []struct {
		rule, addr string
		port       uint16
		proto      Proto
		want       bool
	}{
		{"10.0.0.0/8:80-81/tcp", "10.255.0.1", 80, TCP, true},
		{"10.0.0.0/8:80-81/tcp", "::ffff:10.255.0.1", 81, TCP, true},
		{"10.0.0.0/8:80-81/tcp", "10.255.0.1", 79, TCP, false},
		{"10.0.0.0/8:80-81/tcp", "10.255.0.1", 82, TCP, false},
		{"10.0.0.0/8:80-81/tcp", "10.255.0.1", 80, UDP, false},
		{"10.0.0.0/8:80-81/tcp", "11.0.0.1", 80, TCP, false},
		{"10.0.0.0/8", "10.0.0.1", 0, UDP, true},
		{"10.0.0.0/8", "10.0.0.1", 65535, TCP, true},
		{"::/0", "10.0.0.1", 1, TCP, false},
		{"fe80::/10", "fe80::1%eth0", 1, TCP, true},
	}
	for _, tt := range tests {
		r, err := ParseRule(tt.rule, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Match(netip.MustParseAddr(tt.addr), tt.port, tt.proto); got != tt.want {
			t.Errorf("%s matches %s port %d %v: %v", tt.rule, tt.addr, tt.port, tt.proto, got)
		}
	}
}

func TestParseHost(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	l253 := l63 + "." + l63 + "." + l63 + "." + l63[:61]
	tests := []struct{ in, host string }{
		{"api.example.org", "api.example.org:443"},
		{"api.example.org:8443", "api.example.org:8443"},
		{"API.Example.ORG", "api.example.org:443"},
		{"api.example.org.", "api.example.org:443"},
		{"api.example.org.:80", "api.example.org:80"},
		{"localhost", "localhost:443"},
		{"a_b._tcp.example", "a_b._tcp.example:443"},
		{"3com.example", "3com.example:443"},
		{"10.in-addr.arpa", "10.in-addr.arpa:443"},
		{"1.2.3.4.example", "1.2.3.4.example:443"},
		{"0xg", "0xg:443"},
		{"x0", "x0:443"},
		{"deadbeef", "deadbeef:443"},
		{"*.files.example.org:8443", "*.files.example.org:8443"},
		{"*.Example", "*.example:443"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example:443"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example:443"},
		{l63 + ".example", l63 + ".example:443"},
		{l253, l253 + ":443"},
		{l253 + ".", l253 + ":443"},
		{"example.org:1", "example.org:1"},
		{"example.org:65535", "example.org:65535"},
	}
	for _, tt := range tests {
		h, err := ParseHost(tt.in)
		if err != nil || h.String() != tt.host {
			t.Errorf("ParseHost(%q) = %v, %v, want %s", tt.in, h, err, tt.host)
			continue
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Errorf("ParseHost(%q) = %v, %v, want the same again", h, again, err)
		}
	}
}

func TestParseHostBad(t *testing.T) {
	l64 := strings.Repeat("a", 64)
	long := strings.Repeat("abcdefg.", 31) + "abcdef"
	badGolden(t, "bad-host.golden", plain(
		"", ".", ":443", " ", "a b", "example.org ", "\texample.org", "..", "a..b", ".a", "a..", "a.example..", "*", "*.", "*.*.example", "*example.org",
		"a.*.example", "**.example", "*.:443", "example.org:", "example.org:0", "example.org:65536", "example.org:https", "example.org:+1", "example.org:080",
		"example.org:44 3", "http://example.org", "https://example.org:443/", "example.org/path", "user@example.org", "example.org?x", "example.org#x",
		"exa%6dple.org", "example.org%eth0", "-a.example", "a-.example", "a.-b", l64+".example", long+".", long,
		"127.0.0.1", "127.0.0.1:80", "127.0.0.1.", "127.1", "127.0.1", "1", "0", "2130706433", "0x7f000001", "0X7F000001", "0x7f.1", "0177.0.0.1", "017700000001",
		"0x", "1.2.3.0x4", "256.256.256.256", "1.2.3.4.5", "a.1", "a.0x7f", "[::1]", "[::1]:443", "[127.0.0.1]", "::1", "::ffff:127.0.0.1", "fe80::1%eth0", "2001:db8::1",
		"*.1", "*.0.0.1", "１２７.0.0.1", "127。0。0。1", "１", "①.example.1", "a\x00b", "a\x7fb", "a\nb", "bücher.example", "*.BÜCHER.example:80", "日本語。例え", "ｅｘａｍｐｌｅ.org", "\u212Aelvin.example", "xn--\u00fc", "xn---", "a\u200db.example", "\u200b", "\u00ad",
		"\xff.example", "a：80", "א.a1א.example", "example.org/\u2044",
	), func(s string) (any, error) { return ParseHost(s) })
}

func TestHostMatch(t *testing.T) {
	tests := []struct {
		entry, name string
		port        uint16
		want        bool
	}{
		{"example.org", "example.org", 443, true},
		{"example.org", "example.org", 80, false},
		{"example.org", "a.example.org", 443, false},
		{"example.org", "xexample.org", 443, false},
		{"*.example.org", "example.org", 443, false},
		{"*.example.org", "a.example.org", 443, true},
		{"*.example.org", "b.a.example.org", 443, true},
		{"*.example.org", "aexample.org", 443, false},
		{"*.example.org", ".example.org", 443, false},
		{"*.example.org", "example.org.evil", 443, false},
		{"*.example.org:80", "a.example.org", 443, false},
	}
	for _, tt := range tests {
		h, err := ParseHost(tt.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Match(tt.name, tt.port); got != tt.want {
			t.Errorf("%s matches %s port %d: %v", tt.entry, tt.name, tt.port, got)
		}
	}
}

func TestCanonicalName(t *testing.T) {
	if got, err := CanonicalName("WWW.Example.ORG."); err != nil || got != "www.example.org" {
		t.Errorf("CanonicalName = %q, %v", got, err)
	}
	for _, s := range []string{"*.example.org", "example.org:443", "127.1", ""} {
		if got, err := CanonicalName(s); err == nil || got != "" {
			t.Errorf("CanonicalName(%q) = %q, want an error", s, got)
		}
	}
}

func TestCleanPath(t *testing.T) {
	tests := []struct {
		style    style
		in, want string // want is empty where an error is due
	}{
		{posix, "/a", "/a"},
		{posix, "/a/", "/a"},
		{posix, "//a//b///", "/a/b"},
		{posix, "/a/./b/.", "/a/b"},
		{posix, "/a/..b/...", "/a/..b/..."},
		{posix, "/a b/ü", "/a b/ü"},
		{posix, "/" + strings.Repeat("a", maxPath-1), "/" + strings.Repeat("a", maxPath-1)},
		{posix, "/" + strings.Repeat("a", maxPath), ""},
		{posix, "", ""},
		{posix, "a", ""},
		{posix, "./a", ""},
		{posix, "~", ""},
		{posix, "/", ""},
		{posix, "///", ""},
		{posix, "/..", ""},
		{posix, "/a/../b", ""},
		{posix, "/a/..", ""},
		{posix, "/a\x00", ""},
		{posix, "/a\nb", ""},
		{posix, "/a\xff", ""},
		{posix, `C:\a`, ""},
		{windows, `C:\a`, `C:\a`},
		{windows, `c:/a\b/`, `C:\a\b`},
		{windows, `C:\a\\.\b`, `C:\a\b`},
		{windows, `C:\`, ""},
		{windows, `C:\.`, ""},
		{windows, `C:a`, ""},
		{windows, `\a`, ""},
		{windows, `/a`, ""},
		{windows, `\\server\share`, ""},
		{windows, `\\?\C:\a`, ""},
		{windows, `C:\a\..\b`, ""},
		{windows, `C:\a.txt:stream`, ""},
		{windows, `C:\a\nul `, ""},
		{windows, `C:\a.`, ""},
		{windows, `C:\a*`, ""},
		{windows, "C:\\a\x01", ""},
		{windows, "C:\\a\n", ""},
	}
	for _, tt := range tests {
		got, err := cleanPath(tt.style, tt.in)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("cleanPath(%d, %q) = %q, %v, want %q", tt.style, tt.in, got, err, tt.want)
		}
		if err != nil {
			checkError(t, err)
		}
	}
}

func TestCleanBroker(t *testing.T) {
	tests := []struct {
		style    style
		in, want string
	}{
		{posix, "/run/b.sock", "/run/b.sock"},
		{posix, `\\.\pipe\b`, ""},
		{windows, `\\.\PIPE\b`, `\\.\pipe\b`},
		{windows, `\\.\pipe\`, ""},
		{windows, `\\.\pipe\a\b`, ""},
		{windows, `\\host\pipe\b`, ""},
		{windows, `C:\b.sock`, `C:\b.sock`},
	}
	for _, tt := range tests {
		if got, err := cleanBroker(tt.style, tt.in); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("cleanBroker(%d, %q) = %q, %v, want %q", tt.style, tt.in, got, err, tt.want)
		}
	}
}
