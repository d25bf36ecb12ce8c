// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"
)

// String returns the policy as text, one item per line, for people and for
// goldens. Two policies that mean the same print the same: lists are sorted,
// positions are left out. Rules keep their order, since it is their ids.
func (p *Policy) String() string {
	var t text
	t.word("module", p.Module)
	kind := p.Kind
	if kind == "" {
		kind = defaultKind
	}
	t.line("kind", kind)
	t.paths("ro", p.FS.RO)
	t.paths("rw", p.FS.RW)
	t.paths("rd", p.FS.RD)
	t.paths("wo", p.FS.WO)
	t.line("net", p.Net.Mode.String())
	t.list("allow", toStrings(p.Net.Allow, HostPort.String))
	t.number("proxy_port", uint64(p.Net.ProxyPort), "")
	for i, r := range p.Net.Rules {
		verdict := "allow"
		if r.Deny {
			verdict = "deny"
		}
		t.line("rule", strconv.Itoa(i), verdict, r.String())
	}
	if p.Net.Default != Unset {
		t.line("default", p.Net.Default.String())
	}
	t.flag("audit", p.Net.Audit)
	t.word("broker", p.Broker)
	t.flag("gpu", p.GPU)
	t.flag("exec_rw", p.ExecRW)
	t.word("exe", p.Exe)
	t.number("memory", p.Limits.MemoryBytes, " bytes")
	t.number("cpu", p.Limits.MilliCPU, " millis")
	t.number("pids", p.Limits.Pids, "")
	t.list("tool", toStrings(p.Tools, func(v Tool) string {
		if v.CodeExec {
			return v.ID + " code-exec"
		}
		return v.ID
	}))
	t.list("container", toStrings(p.Containers, func(c Container) string { return c.Platform + " " + c.Image }))
	return t.String()
}

// text collects lines of words.
type text struct{ strings.Builder }

func (t *text) line(words ...string) {
	t.WriteString(strings.Join(words, " "))
	t.WriteByte('\n')
}

// word writes a line whose value may hold anything, unless it is empty.
func (t *text) word(key, value string) {
	if value != "" {
		t.line(key, quote(value))
	}
}

func (t *text) flag(key string, on bool) {
	if on {
		t.line(key)
	}
}

func (t *text) number(key string, v uint64, unit string) {
	if v != 0 {
		t.line(key, strconv.FormatUint(v, 10)+unit)
	}
}

func (t *text) list(key string, items []string) {
	slices.Sort(items)
	for _, s := range items {
		t.line(key, s)
	}
}

func (t *text) paths(key string, paths []Path) {
	t.list(key, toStrings(paths, func(p Path) string { return quote(p.Path) }))
}

func toStrings[T any](list []T, f func(T) string) []string {
	s := make([]string, len(list))
	for i, v := range list {
		s[i] = f(v)
	}
	return s
}

// quote returns s as it is where it is plain, else as a Go string.
func quote(s string) string {
	if s == "" {
		return `""`
	}
	for i := range len(s) {
		if c := s[i]; !(isLetter(c) || isDigit(c) || strings.IndexByte("/._-+@:~", c) >= 0) {
			return strconv.Quote(s)
		}
	}
	return s
}
