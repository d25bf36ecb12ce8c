// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Filter is one instruction of classic BPF, laid out as struct sock_filter
// (linux/filter.h).
type Filter struct {
	Code uint16
	Jt   uint8
	Jf   uint8
	K    uint32
}

// ErrProgram is the error that a program which cannot be compiled matches.
// Rules makes none such: it is a mistake in a program built by hand.
var ErrProgram = errors.New("invalid seccomp program")

// maxInstructions is BPF_MAXINSNS (linux/bpf_common.h).
const maxInstructions = 4096

// Compile turns a program into instructions. Numbers are found by halving,
// over spans of neighbours that meet the same fate, so that a call passes a
// handful of comparisons. Errors match ErrProgram.
func Compile(p Program) ([]Filter, error) {
	return compile(p, dispatchHybrid)
}

// span is a run of call numbers from first to the next span's first that share
// one fate: an action, or the rules of one call.
type span struct {
	first uint32
	fate  fate
}

// fate is what happens to a call: rules, or an action if there are none. Fates
// of spans are compared by index into the list of rules and by action.
type fate struct {
	rules  int // 1 + index of the group of rules, or 0
	action Action
}

// dispatcher emits the choice between spans and returns where it starts.
type dispatcher func(a *assembler, spans []span, at func(fate) int) int

func compile(p Program, d dispatcher) ([]Filter, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	groups, spans := plan(p)

	// Backwards: what is jumped to is there before what jumps.
	a := &assembler{code: make([]Filter, 0, 256)}
	starts := make([]int, len(groups))
	for i, g := range groups {
		starts[i] = a.group(g, p.Default)
	}
	start := d(a, spans, func(f fate) int {
		if f.rules > 0 {
			return starts[f.rules-1]
		}
		return a.ret(f.action)
	})
	a.fallTo(start)
	a.emit(Filter{Code: ldAbs, K: offNr})
	native := a.here()
	foreign := a.ret(p.Foreign)
	a.jump(jeq, p.Arch.Audit(), native, foreign)
	a.emit(Filter{Code: ldAbs, K: offArch})
	if len(a.code) > maxInstructions {
		return nil, fmt.Errorf("compile filter: %w: %d instructions, the kernel takes %d", ErrProgram, len(a.code), maxInstructions)
	}
	return a.finish(), nil
}

// check refuses what Compile cannot mean.
func check(p Program) error {
	if p.Arch.Audit() == 0 {
		return fmt.Errorf("compile filter: %w: no architecture", ErrProgram)
	}
	actions := []Action{p.Foreign, p.Unknown, p.Default}
	if p.Arch == AMD64 {
		actions = append(actions, p.X32)
	}
	for _, a := range actions {
		if err := checkAction(a); err != nil {
			return err
		}
	}
	rows, _ := p.Arch.calls()
	closed := make([]bool, rows[len(rows)-1].nr+1)
	for _, r := range p.Rules {
		bad := func(msg string) error {
			return fmt.Errorf("compile filter: %w: %s: %s", ErrProgram, r, msg)
		}
		if name, ok := p.Arch.Name(r.Nr); !ok || name != r.Call {
			return bad("the number is not this call's")
		}
		if closed[r.Nr] {
			return bad("an earlier rule matches always")
		}
		closed[r.Nr] = len(r.When) == 0
		if err := checkAction(r.Action); err != nil {
			return err
		}
		for _, c := range r.When {
			if c.Arg > 5 {
				return bad("no such argument")
			}
			if c.Mask == 0 || len(c.Values) == 0 {
				return bad("a condition compares nothing")
			}
			for _, v := range c.Values {
				if v&^c.Mask != 0 {
					return bad("a value lies outside the mask")
				}
			}
		}
	}
	return nil
}

func checkAction(a Action) error {
	if a != Allow && (a.Errno() == 0 || a.Errno() > 4095) {
		return fmt.Errorf("compile filter: %w: %s", ErrProgram, a)
	}
	return nil
}

// plan groups the rules by call and lays the fates over all numbers. Only
// groups that need code are returned.
func plan(p Program) (groups [][]Rule, spans []span) {
	rules := slices.Clone(p.Rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(a.Nr, b.Nr) })
	groups = make([][]Rule, 0, 32)
	spans = make([]span, 0, 2*len(rules)+8)
	add := func(first uint32, f fate) {
		if n := len(spans); n == 0 || spans[n-1].fate != f {
			spans = append(spans, span{first, f})
		}
	}
	rows, _ := p.Arch.calls()
	next := uint32(0)
	for _, c := range rows {
		if c.nr > next {
			add(next, fate{action: p.Unknown})
		}
		n := 0
		for n < len(rules) && rules[n].Nr == c.nr {
			n++
		}
		if action, one := oneAction(rules[:n], p.Default); one {
			add(c.nr, fate{action: action})
		} else {
			groups = append(groups, rules[:n])
			add(c.nr, fate{rules: len(groups)})
		}
		rules = rules[n:]
		next = c.nr + 1
	}
	add(next, fate{action: p.Unknown})
	if p.Arch == AMD64 {
		add(x32Bit, fate{action: p.X32})
	}
	return groups, spans
}

// oneAction returns the action that all rules of a call and the rest of its
// uses share, if they do.
func oneAction(rules []Rule, rest Action) (Action, bool) {
	if n := len(rules); n > 0 && len(rules[n-1].When) == 0 {
		rest = rules[n-1].Action
	}
	for _, r := range rules {
		if r.Action != rest {
			return 0, false
		}
	}
	return rest, true
}
