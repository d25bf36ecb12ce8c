// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// dispatchers are the ways of finding a number that were measured; the
// package keeps the first.
var dispatchers = map[string]dispatcher{
	"hybrid": dispatchHybrid,
	"halves": dispatchHalves,
	"chain":  dispatchChain,
}

// dispatchHalves halves down to single spans.
func dispatchHalves(a *assembler, spans []span, at func(fate) int) int {
	if len(spans) == 1 {
		return at(spans[0].fate)
	}
	mid := len(spans) / 2
	right := dispatchHalves(a, spans[mid:], at)
	left := dispatchHalves(a, spans[:mid], at)
	a.jump(jge, spans[mid].first, right, left)
	return a.here()
}

// dispatchChain asks one question after another, from the highest span down.
func dispatchChain(a *assembler, spans []span, at func(fate) int) int {
	next := at(spans[0].fate)
	for _, s := range spans[1:] {
		a.jump(jge, s.first, at(s.fate), next)
		next = a.here()
	}
	return next
}
