// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Instruction codes (linux/bpf_common.h).
const (
	ldAbs = 0x20 // BPF_LD | BPF_W | BPF_ABS
	andK  = 0x54 // BPF_ALU | BPF_AND | BPF_K
	ja    = 0x05 // BPF_JMP | BPF_JA
	jeq   = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	jge   = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	jset  = 0x45 // BPF_JMP | BPF_JSET | BPF_K
	retK  = 0x06 // BPF_RET | BPF_K
)

// Offsets in struct seccomp_data. Both architectures are little-endian: the
// low half of an argument comes first.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// assembler builds a filter from its end: a place is the number of
// instructions from there to the end, so that every target is known when a
// jump to it is written.
type assembler struct {
	code []Filter // reversed
	rets []retAt  // the nearest return of each action
}

type retAt struct {
	action Action
	place  int
}

// maxReach is the farthest that a conditional jump goes.
const maxReach = 255

func (a *assembler) emit(f Filter) { a.code = append(a.code, f) }

// here returns the place of the instruction written last.
func (a *assembler) here() int { return len(a.code) }

// distance returns how many instructions lie between one that is written now
// and the target.
func (a *assembler) distance(target int) int { return len(a.code) - target }

// ret returns a place that returns the action, near enough for two jumps.
func (a *assembler) ret(act Action) int {
	for i, r := range a.rets {
		if r.action != act {
			continue
		}
		if a.distance(r.place) >= maxReach-1 {
			a.emit(Filter{Code: retK, K: uint32(act)})
			a.rets[i].place = a.here()
		}
		return a.rets[i].place
	}
	a.emit(Filter{Code: retK, K: uint32(act)})
	a.rets = append(a.rets, retAt{act, a.here()})
	return a.here()
}

// reach returns a place within reach that leads to the target; slack is how
// many more instructions may come before the jump.
func (a *assembler) reach(target, slack int) int {
	if a.distance(target)+slack <= maxReach {
		return target
	}
	if f := a.code[target-1]; f.Code == retK {
		return a.ret(Action(f.K))
	}
	a.emit(Filter{Code: ja, K: uint32(a.distance(target))})
	return a.here()
}

// jump writes a conditional jump to two places.
func (a *assembler) jump(code uint16, k uint32, yes, no int) {
	// The second detour may come between the first and the jump.
	yes = a.reach(yes, 1)
	no = a.reach(no, 0)
	a.emit(Filter{Code: code, Jt: uint8(a.distance(yes)), Jf: uint8(a.distance(no)), K: k})
}

// fallTo makes what is written next run on into the target.
func (a *assembler) fallTo(target int) {
	if a.here() != target {
		a.emit(Filter{Code: ja, K: uint32(a.distance(target))})
	}
}

func (a *assembler) finish() []Filter {
	out := make([]Filter, len(a.code))
	for i, f := range a.code {
		out[len(out)-1-i] = f
	}
	return out
}

// group writes the rules of one call and returns where they start.
func (a *assembler) group(rules []Rule, rest Action) int {
	no := -1
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if len(r.When) == 0 {
			no = a.ret(r.Action)
			continue
		}
		if no < 0 {
			no = a.ret(rest)
		}
		yes := a.ret(r.Action)
		for j := len(r.When) - 1; j >= 0; j-- {
			yes = a.cond(r.When[j], yes, no)
		}
		no = yes
	}
	return no
}

// cond writes a condition and returns where it starts.
func (a *assembler) cond(c Cond, yes, no int) int {
	if c.Not {
		yes, no = no, yes
	}
	lo, hi := uint32(c.Mask), uint32(c.Mask>>32)
	off := uint32(offArgs + 8*int(c.Arg))
	if hi == 0 {
		return a.half(off, lo, c.Values, 0, yes, no)
	}
	if lo == 0 {
		return a.half(off+4, hi, c.Values, 32, yes, no)
	}
	for i := len(c.Values) - 1; i >= 0; i-- {
		v := c.Values[i : i+1]
		low := a.half(off, lo, v, 0, yes, no)
		no = a.half(off+4, hi, v, 32, low, no)
	}
	return no
}

// half writes the comparison of half an argument with halves of the values.
func (a *assembler) half(off, mask uint32, values []uint64, shift uint, yes, no int) int {
	if len(values) == 1 && uint32(values[0]>>shift) == 0 && mask != low32 {
		a.jump(jset, mask, no, yes)
	} else {
		for i := len(values) - 1; i >= 0; i-- {
			a.jump(jeq, uint32(values[i]>>shift), yes, no)
			no = a.here()
		}
		if mask != low32 {
			a.emit(Filter{Code: andK, K: mask})
		}
	}
	a.emit(Filter{Code: ldAbs, K: off})
	return a.here()
}
