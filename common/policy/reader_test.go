// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// plainJSON turns a node into what encoding/json makes of it; ok is false
// where a key is repeated, which that package allows.
func plainJSON(n *node) (v any, ok bool) {
	switch n.kind {
	case kindNull:
		return nil, true
	case kindBool:
		return n.truth, true
	case kindString:
		return n.text, true
	case kindArray:
		list := []any{}
		for _, e := range n.list {
			v, ok := plainJSON(e)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case kindTable:
		m := map[string]any{}
		for _, e := range n.members {
			if _, twice := m[e.key]; twice {
				return nil, false
			}
			v, ok := plainJSON(e.value)
			if !ok {
				return nil, false
			}
			m[e.key] = v
		}
		return m, true
	}
	return json.Number(n.text), true
}

// compareJSON reads data with the standard library, too. It must agree but
// for what is refused here alone: bad Unicode and deep nesting.
func compareJSON(t *testing.T, data []byte) {
	t.Helper()
	d, err := openDocument("f", data)
	if err != nil {
		return
	}
	n, err := readJSON(d)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var std any
	stdErr := dec.Decode(&std)
	if stdErr == nil {
		if _, e := dec.Token(); e != io.EOF {
			stdErr = e
			if e == nil {
				stdErr = strconv.ErrSyntax
			}
		}
	}
	switch {
	case err == nil && stdErr != nil:
		t.Fatalf("accepted, but encoding/json says %v", stdErr)
	case err != nil && stdErr == nil:
		if s := err.Error(); !strings.Contains(s, "invalid escape") && !strings.Contains(s, "nested deeper") {
			t.Fatalf("encoding/json accepts it: %v", err)
		}
	case err == nil:
		if v, ok := plainJSON(n); ok && !reflect.DeepEqual(v, std) {
			t.Fatalf("read %#v, encoding/json %#v", v, std)
		}
	}
}

func TestJSONLikeStandard(t *testing.T) {
	for _, in := range append(goodJSON, badJSON...) {
		compareJSON(t, []byte(in.text))
	}
	for _, s := range []string{"1", "-0", "0.5e+10", "1E-2", "-", "01", "1.", ".5", "1e", `"\u00e9\uD83D\uDE00"`, `""`, "[]", "[[],{}]", "nul", "nulll", "true false", "\f1", "\v1", "\u00a01"} {
		compareJSON(t, []byte(s))
	}
}

// plainTOML turns a node into what the TOML library makes of it. Numbers and
// dates become their kind: their values are read later.
func plainTOML(n *node) any {
	switch n.kind {
	case kindBool:
		return n.truth
	case kindString:
		return n.text
	case kindArray:
		list := []any{}
		for _, e := range n.list {
			list = append(list, plainTOML(e))
		}
		return list
	case kindTable:
		m := map[string]any{}
		for _, e := range n.members {
			m[e.key] = plainTOML(e.value)
		}
		return m
	}
	return n.kind
}

func likeTOML(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = likeTOML(e)
		}
		return m
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, likeTOML(e))
		}
		return list
	case bool, string:
		return v
	case int64:
		return kindInt
	case float64:
		return kindFloat
	}
	return kindOther
}

// compareTOML reads data with the TOML library's own decoder, too. Whatever
// is accepted here must be accepted there and mean the same; what is refused
// here may be accepted there only for the bounds and for the stricter reading
// of which table may be extended.
func compareTOML(t *testing.T, data []byte) {
	t.Helper()
	d, err := openDocument("f", data)
	if err != nil {
		return
	}
	n, err := readTOML(d)
	var std map[string]any
	stdErr := toml.Unmarshal(data, &std)
	if err != nil {
		if s := err.Error(); stdErr == nil && !strings.Contains(s, "there already") && !strings.Contains(s, "more than") && !strings.Contains(s, "deeper than") {
			t.Fatalf("the library accepts it: %v", err)
		}
		return
	}
	if stdErr != nil {
		// Values of numbers and dates are not looked at here.
		if strings.Contains(stdErr.Error(), "key") || strings.Contains(stdErr.Error(), "table") {
			t.Fatalf("accepted, but the library says %v", stdErr)
		}
		return
	}
	want := likeTOML(std)
	if std == nil {
		want = map[string]any{}
	}
	if got := plainTOML(n); !reflect.DeepEqual(got, want) {
		t.Fatalf("read %#v, the library %#v", got, want)
	}
}

func TestTOMLLikeLibrary(t *testing.T) {
	var inputs []input
	for _, l := range [][]input{goodSandbox, goodOperator, badSandbox, badOperator} {
		inputs = append(inputs, l...)
	}
	for _, s := range []string{
		"a.b.c = 1\na.b.d = 2\n", "[a.b.c]\n[a]\n[a.b]\n", "[a.b]\nx.y = 1\n[a.b.x.z]\n", "[[a]]\n[[a.b]]\n[[a.b]]\n[a.b.c]\n[[a]]\n[a.b]\n",
		"a = [[1, [2]], [], # c\n [ ] ]\nb = 1\n", "a = { b = [ { c = [] } , ], d.e = {} }\n", "\"a b\".'c' = '''\nx\n'''\n", "a = 1979-05-27T07:32:00Z\n", "a = [1, 2.5, nan]\n",
	} {
		inputs = append(inputs, input{s, s})
	}
	for _, in := range inputs {
		t.Run(in.name[:min(len(in.name), 40)], func(t *testing.T) { compareTOML(t, []byte(in.text)) })
	}
}

// TestTOMLPositions: a value's offset is that of its first character, however
// deep it lies.
func TestTOMLPositions(t *testing.T) {
	doc := "# é\nv1 = [ # ]\n  [1], [\n[ ] ], { a = [], b.c = { d = [ true ] } } ,\n  'x' ]\nv2 = { }\nv3 = \"\"\"\n\"\"\"\n"
	d, err := openDocument("f", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	root, err := readTOML(d)
	if err != nil {
		t.Fatal(err)
	}
	first := map[kind]string{kindArray: "[", kindTable: "{", kindBool: "t", kindInt: "1", kindString: "'\""}
	n := 0
	var walk func(*node)
	walk = func(v *node) {
		n++
		if v.dotted {
			if doc[v.off] != 'b' {
				t.Errorf("dotted table at %d: %q", v.off, doc[v.off:])
			}
		} else if strings.IndexByte(first[v.kind], doc[v.off]) < 0 {
			t.Errorf("%v at %d: %q", v.kind, v.off, doc[v.off:])
		}
		for _, e := range v.list {
			walk(e)
		}
		for _, m := range v.members {
			walk(m.value)
		}
	}
	for _, m := range root.members {
		walk(m.value)
	}
	if n != 14 {
		t.Errorf("walked %d values", n)
	}
}

// TestPosition compares positions, asked for in any order, with counting.
func TestPosition(t *testing.T) {
	text := "a\nžluť\n\n日本\r\n\tx"
	d, err := openDocument("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		off := r.IntN(len(text) + 1)
		for off < len(text) && !utf8.RuneStart(text[off]) {
			off++
		}
		before := text[:off]
		line := strings.Count(before, "\n") + 1
		column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
		if l, c := d.position(off); l != line || c != column {
			t.Errorf("offset %d is %d:%d, want %d:%d", off, l, c, line, column)
		}
	}
}

// manyRules is an operator's file with n rules.
func manyRules(n int) []byte {
	var b strings.Builder
	b.WriteString("[net]\ndeny = [\n")
	for i := range n {
		b.WriteString("  \"10." + strconv.Itoa(i>>8&255) + "." + strconv.Itoa(i&255) + ".0/24:1000-2000/tcp\",\n")
	}
	b.WriteString("]\n")
	return []byte(b.String())
}

// manyPaths is a POLICY.json with n paths on one line.
func manyPaths(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"ro": [`)
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"/some/directory/é/` + strconv.Itoa(i) + `"`)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func TestLargeDocuments(t *testing.T) {
	posixOnly(t)
	p, err := ParseJSON("POLICY.json", manyPaths(10000))
	if err != nil || len(p.FS.RO) != 10000 || p.FS.RO[9999].Path != "/some/directory/é/9999" {
		t.Fatalf("10,000 paths: %v", err)
	}
	last := p.FS.RO[9999].Pos
	if want := strings.Count(string(manyPaths(10000)), "") - len(`"/some/directory/é/9999"]}`) + 1; last.Line != 1 || last.Column != want {
		t.Errorf("the last path is at %v, want column %d", last, want)
	}
	p, err = ParseOperator("policy.toml", manyRules(10000))
	if err != nil || len(p.Net.Rules) != 10000 {
		t.Fatalf("10,000 rules: %v", err)
	}
	if got := p.Net.Rules[9999].Pos.String(); got != "policy.toml:10002:3" {
		t.Errorf("the last rule is at %s", got)
	}
}

func BenchmarkParseOperator10000Rules(b *testing.B) {
	data := manyRules(10000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ParseOperator("policy.toml", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseJSON10000Paths(b *testing.B) {
	data := manyPaths(10000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ParseJSON("POLICY.json", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseJSONSmall(b *testing.B) {
	for b.Loop() {
		if _, err := ParseJSON("POLICY.json", []byte(fullJSON)); err != nil {
			b.Fatal(err)
		}
	}
}
