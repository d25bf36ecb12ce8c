// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"slices"
	"strconv"
)

// maxGroups bounds a Summary's memory: a program that tries every address must
// not grow its launcher. What comes after is counted without its target.
const maxGroups = 4096

// A Group is refusals that share type, capability, target and rule.
type Group struct {
	Type       Type
	Capability Capability
	Target     string
	Rule       string
	Count      uint64
}

// A Summary adds up the refusals and losses of one run, to print at its end.
// Its zero value is empty and ready. It may not be used by two goroutines at
// once.
type Summary struct {
	groups map[Group]uint64
	lost   uint64
	more   bool
}

// Add counts e if it is a refusal or a loss, and ignores other records.
func (s *Summary) Add(e *Event) {
	switch {
	case e.Type == Lost:
		s.lost += e.N()
		return
	case !e.Type.refusal():
		return
	}
	g := Group{Type: e.Type, Capability: e.Capability, Target: e.Target, Rule: e.Rule}
	if s.groups == nil {
		s.groups = make(map[Group]uint64)
	}
	if _, ok := s.groups[g]; !ok && len(s.groups) >= maxGroups {
		s.more = true
		g.Target, g.Rule = "", ""
	}
	s.groups[g] += e.N()
}

// AddLost counts n refusals whose records could not be made.
func (s *Summary) AddLost(n uint64) { s.lost += n }

// Lost is the number of refusals that are not in Groups.
func (s *Summary) Lost() uint64 { return s.lost }

// Count is the number of refusals of type t that are in Groups.
func (s *Summary) Count(t Type) uint64 {
	var n uint64
	for g, c := range s.groups {
		if g.Type == t {
			n += c
		}
	}
	return n
}

// Groups returns the groups, the most frequent first, then by type,
// capability, target and rule.
func (s *Summary) Groups() []Group {
	out := make([]Group, 0, len(s.groups))
	for g, n := range s.groups {
		g.Count = n
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Capability, b.Capability),
			cmp.Compare(a.Target, b.Target),
			cmp.Compare(a.Rule, b.Rule),
		)
	})
	return out
}

// AppendText appends at most limit groups (0: all), one line each, then how
// many refusals were left out and how many were lost, and nothing at all when
// there was neither. Text from the confined program is quoted where it holds
// anything that a terminal could obey.
//
//	denied 3 net.connect 192.0.2.1:443/tcp (net none)
func (s *Summary) AppendText(b []byte, limit int) []byte {
	groups := s.Groups()
	shown := groups
	if limit > 0 && len(shown) > limit {
		shown = shown[:limit]
	}
	for _, g := range shown {
		b = append(b, Printable(string(g.Type))...)
		b = append(b, ' ')
		b = strconv.AppendUint(b, g.Count, 10)
		b = append(b, ' ')
		b = append(b, Printable(string(g.Capability))...)
		switch {
		case g.Target != "":
			b = append(b, ' ')
			b = append(b, Printable(g.Target)...)
		case s.more:
			b = append(b, " (other targets)"...)
		}
		if g.Rule != "" {
			b = append(b, " ("...)
			b = append(b, Printable(g.Rule)...)
			b = append(b, ')')
		}
		b = append(b, '\n')
	}
	var rest uint64
	for _, g := range groups[len(shown):] {
		rest += g.Count
	}
	if rest > 0 {
		b = strconv.AppendUint(b, rest, 10)
		b = append(b, " more not shown\n"...)
	}
	if s.lost > 0 {
		b = strconv.AppendUint(b, s.lost, 10)
		b = append(b, " more whose records were lost\n"...)
	}
	return b
}

// Printable returns s, or its quoted form where a part of it could drive a
// terminal, break the line, or not be seen for what it is.
func Printable(s string) string {
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if unsafeRune(r) || r == '\uFFFD' {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}
