// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// maxSingles is how many single numbers are picked out one by one before a
// span of numbers is halved.
const maxSingles = 2

// dispatchHybrid halves the spans; a part that is one fate but for a few
// single numbers becomes a comparison with each, which takes one instruction
// a number where halving takes two.
func dispatchHybrid(a *assembler, spans []span, at func(fate) int) int {
	if base, singles, ok := pick(spans); ok {
		next := at(base)
		for i := len(singles) - 1; i >= 0; i-- {
			a.jump(jeq, singles[i].first, at(singles[i].fate), next)
			next = a.here()
		}
		return next
	}
	mid := len(spans) / 2
	right := dispatchHybrid(a, spans[mid:], at)
	left := dispatchHybrid(a, spans[:mid], at)
	a.jump(jge, spans[mid].first, right, left)
	return a.here()
}

// pick reports whether the spans are one fate with at most maxSingles single
// numbers of other fates, and returns both.
func pick(spans []span) (base fate, singles []span, ok bool) {
	if len(spans) == 1 {
		return spans[0].fate, nil, true
	}
	if len(spans) > 2*maxSingles+1 {
		return fate{}, nil, false
	}
	// Where this part of the spans ends is not known here, so the last span is
	// taken as wide and gives the base.
	base = spans[len(spans)-1].fate
	for i, s := range spans[:len(spans)-1] {
		if s.fate == base {
			continue
		}
		if spans[i+1].first-s.first != 1 {
			return fate{}, nil, false
		}
		singles = append(singles, s)
	}
	return base, singles, len(singles) <= maxSingles
}
