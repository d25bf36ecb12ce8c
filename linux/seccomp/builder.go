// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// builder collects rules. A call that the architecture lacks (arm64 has no
// open) leaves no rule; missing lists those names, so that a test can tell a
// misspelt one, which no architecture has.
type builder struct {
	p       Program
	missing []string
}

func (b *builder) rule(a Action, reason, name string, when ...Cond) {
	nr, ok := b.p.Arch.Number(name)
	if !ok {
		b.missing = append(b.missing, name)
		return
	}
	b.p.Rules = append(b.p.Rules, Rule{Call: name, Nr: nr, When: when, Action: a, Reason: reason})
}

func (b *builder) answer(errno uint16, reason string, names ...string) {
	for _, n := range names {
		b.rule(Errno(errno), reason, n)
	}
}

func (b *builder) refuse(reason string, names ...string) {
	b.answer(EPERM, reason, names...)
}

func (b *builder) refuseIf(reason, name string, when ...Cond) {
	b.rule(Errno(EPERM), reason, name, when...)
}

// in holds if the masked argument is one of the values.
func in(arg uint8, mask uint64, values ...uint64) Cond {
	return Cond{Arg: arg, Mask: mask, Values: values}
}

// notIn holds if the masked argument is none of the values.
func notIn(arg uint8, mask uint64, values ...uint64) Cond {
	return Cond{Arg: arg, Mask: mask, Values: values, Not: true}
}

// anyBit holds if the argument has a bit of the mask.
func anyBit(arg uint8, mask uint64) Cond { return notIn(arg, mask, 0) }

// noBit holds if the argument has no bit of the mask.
func noBit(arg uint8, mask uint64) Cond { return in(arg, mask, 0) }
