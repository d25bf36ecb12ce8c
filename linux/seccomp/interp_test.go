// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// data is struct seccomp_data (linux/seccomp.h).
type data struct {
	nr   uint32
	arch uint32
	ip   uint64
	args [6]uint64
}

func (d data) bytes() []byte {
	b := make([]byte, 0, 64)
	b = binary.LittleEndian.AppendUint32(b, d.nr)
	b = binary.LittleEndian.AppendUint32(b, d.arch)
	b = binary.LittleEndian.AppendUint64(b, d.ip)
	for _, a := range d.args {
		b = binary.LittleEndian.AppendUint64(b, a)
	}
	return b
}

// verify applies the kernel's conditions on a filter (bpf_check_classic,
// seccomp_check_filter) to the instructions that this package emits.
func verify(code []Filter) error {
	if len(code) == 0 || len(code) > 4096 {
		return fmt.Errorf("%d instructions", len(code))
	}
	for pc, f := range code {
		left := len(code) - pc - 1
		switch f.Code {
		case 0x20:
			if f.K%4 != 0 || f.K > 60 {
				return fmt.Errorf("%d: load at %d", pc, f.K)
			}
		case 0x54:
		case 0x05:
			if uint64(f.K) >= uint64(left) {
				return fmt.Errorf("%d: jump by %d of %d", pc, f.K, left)
			}
		case 0x15, 0x35, 0x45:
			if int(f.Jt) >= left || int(f.Jf) >= left {
				return fmt.Errorf("%d: jump by %d, %d of %d", pc, f.Jt, f.Jf, left)
			}
		case 0x06:
		default:
			return fmt.Errorf("%d: code %#x", pc, f.Code)
		}
	}
	if code[len(code)-1].Code != 0x06 {
		return errors.New("last instruction is no return")
	}
	return nil
}

// interpret runs a filter and returns its answer and how many instructions ran.
func interpret(code []Filter, d data) (Action, int) {
	mem, acc, steps := d.bytes(), uint32(0), 0
	for pc := 0; ; pc++ {
		f := code[pc]
		steps++
		branch := func(yes bool) {
			if yes {
				pc += int(f.Jt)
			} else {
				pc += int(f.Jf)
			}
		}
		switch f.Code {
		case 0x20:
			acc = binary.LittleEndian.Uint32(mem[f.K:])
		case 0x54:
			acc &= f.K
		case 0x05:
			pc += int(f.K)
		case 0x15:
			branch(acc == f.K)
		case 0x35:
			branch(acc >= f.K)
		case 0x45:
			branch(acc&f.K != 0)
		case 0x06:
			return Action(f.K), steps
		default:
			panic(fmt.Sprintf("code %#x", f.Code))
		}
	}
}

// known holds the numbers of each table.
var known = func() map[Arch]map[uint32]bool {
	m := map[Arch]map[uint32]bool{}
	for _, a := range []Arch{AMD64, ARM64} {
		m[a] = map[uint32]bool{}
		rows, _ := a.calls()
		for _, c := range rows {
			m[a][c.nr] = true
		}
	}
	return m
}()

// naive answers as the rule list reads, from the rules alone.
func naive(p Program, d data) Action {
	switch {
	case p.Arch == AMD64 && d.arch != 0xc000003e, p.Arch == ARM64 && d.arch != 0xc00000b7:
		return p.Foreign
	case p.Arch == AMD64 && d.nr >= 0x40000000:
		return p.X32
	}
	if !known[p.Arch][d.nr] {
		return p.Unknown
	}
rules:
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Nr != d.nr {
			continue
		}
		for _, c := range r.When {
			found := false
			for _, v := range c.Values {
				found = found || d.args[c.Arg]&c.Mask == v
			}
			if found == c.Not {
				continue rules
			}
		}
		return r.Action
	}
	return p.Default
}
