// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// options returns every combination of the options for an architecture.
func options(a Arch) []Options {
	var all []Options
	for bits := range 1 << 9 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		all = append(all, Options{
			Arch: a, Unix: on(0), Inet: on(1), StrictTypes: on(2), InetStreamOnly: on(3),
			NoSysV: on(4), NoSetID: on(5), NoExecMemfd: on(6), Log: on(7), NoLink: on(8),
		})
	}
	return all
}

// arches are the audit values that a kernel of either architecture shows, and
// a few that none does.
var arches = []uint32{0xc000003e, 0xc00000b7, 0x40000003, 0x40000028, 0, 0xffffffff}

// numbers returns the interesting numbers of an architecture: all of the
// table and its gaps, and those around each boundary above it.
func numbers() []uint32 {
	var n []uint32
	for i := range uint32(640) {
		n = append(n, i, i|x32Bit)
	}
	return append(n, 1000, 0xf0001, 0x3fffffff, x32Bit+0x1000, 0x7fffffff, 0x80000000, 0xbfffffff, 0xfffffffe, 0xffffffff)
}

// argument returns a value that is likely to sit at an edge of a condition.
func argument(r *rand.Rand, p Program, nr uint32, arg int) uint64 {
	var pool []uint64
	for i := range p.Rules {
		if p.Rules[i].Nr != nr {
			continue
		}
		for _, c := range p.Rules[i].When {
			if int(c.Arg) == arg {
				pool = append(pool, c.Mask, ^c.Mask, c.Mask&-c.Mask)
				pool = append(pool, c.Values...)
			}
		}
	}
	v := r.Uint64()
	if len(pool) > 0 && r.IntN(8) > 0 {
		v = pool[r.IntN(len(pool))]
	} else if r.IntN(2) == 0 {
		v = uint64(r.IntN(300))
	}
	switch r.IntN(6) {
	case 0:
		v |= uint64(r.Uint32()) << 32
	case 1:
		v ^= 1 << r.IntN(64)
	case 2:
		v |= 0xffffffff << 32
	case 3:
		v += uint64(r.IntN(3)) - 1
	}
	return v
}

func compare(t *testing.T, p Program, code []Filter, d data) {
	t.Helper()
	want := naive(p, d)
	if got, _ := interpret(code, d); got != want {
		t.Fatalf("arch %#x nr %d args %#x: filter says %s, rules say %s\n%s", d.arch, d.nr, d.args, got, want, p)
	}
}

func mustCompile(t testing.TB, p Program) []Filter {
	t.Helper()
	code, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(code); err != nil {
		t.Fatalf("the kernel would refuse this filter: %v", err)
	}
	return code
}

// TestEveryNumber runs each number of each architecture through each filter.
func TestEveryNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	nrs := numbers()
	for _, a := range []Arch{AMD64, ARM64} {
		for i, o := range options(a) {
			p := Rules(o)
			code := mustCompile(t, p)
			if testing.Short() && i%16 != 0 {
				continue
			}
			for _, nr := range nrs {
				d := data{nr: nr, arch: a.Audit()}
				compare(t, p, code, d)
				for i := range d.args {
					d.args[i] = r.Uint64()
				}
				compare(t, p, code, d)
				d.arch = arches[r.IntN(len(arches))]
				compare(t, p, code, d)
			}
		}
	}
}

// TestArguments puts arguments at the edges of the conditions.
func TestArguments(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, a := range []Arch{AMD64, ARM64} {
		for _, o := range options(a) {
			p := Rules(o)
			code := mustCompile(t, p)
			for _, rule := range p.Rules {
				if len(rule.When) == 0 {
					continue
				}
				for range 20 {
					d := data{nr: rule.Nr, arch: a.Audit(), ip: r.Uint64()}
					for i := range d.args {
						d.args[i] = argument(r, p, rule.Nr, i)
					}
					compare(t, p, code, d)
				}
			}
		}
	}
}

// randomProgram returns a program that no options give, with 64-bit
// conditions, long lists and every number of rules.
func randomProgram(r *rand.Rand) Program {
	actions := []Action{Allow, Errno(EPERM), Errno(ENOSYS), Errno(95), Errno(7)}
	pick := func() Action { return actions[r.IntN(len(actions))] }
	p := Program{Arch: Arch(1 + r.IntN(2)), Foreign: pick(), X32: pick(), Unknown: pick(), Default: pick()}
	rows, _ := p.Arch.calls()
	density := r.IntN(len(rows))
	for _, c := range rows {
		if r.IntN(len(rows)) > density {
			continue
		}
		for range r.IntN(4) {
			rule := Rule{Call: c.name, Nr: c.nr, Action: pick()}
			for range 1 + r.IntN(3) {
				mask := []uint64{low32, low32 << 32, ^uint64(0), r.Uint64() | 1, 1 << r.IntN(64)}[r.IntN(5)]
				cond := Cond{Arg: uint8(r.IntN(6)), Mask: mask, Not: r.IntN(2) == 0}
				for range 1 + r.IntN(4) {
					cond.Values = append(cond.Values, []uint64{0, r.Uint64(), uint64(r.IntN(4))}[r.IntN(3)]&mask)
				}
				rule.When = append(rule.When, cond)
			}
			p.Rules = append(p.Rules, rule)
		}
		if r.IntN(2) == 0 {
			p.Rules = append(p.Rules, Rule{Call: c.name, Nr: c.nr, Action: pick()})
		}
	}
	return p
}

// TestRandomPrograms compiles programs of all sizes, whose jumps pass 255
// instructions, with each way of finding the number.
func TestRandomPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	long := 0
	for range 150 {
		p := randomProgram(r)
		for name, d := range dispatchers {
			code, err := compile(p, d)
			if errors.Is(err, ErrProgram) && strings.Contains(err.Error(), "the kernel takes 4096") {
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := verify(code); err != nil {
				t.Fatalf("%s: the kernel would refuse this filter: %v", name, err)
			}
			if len(code) > 600 {
				long++
			}
			for nr := range uint32(560) {
				x := data{nr: nr, arch: p.Arch.Audit()}
				for i := range x.args {
					x.args[i] = argument(r, p, nr, i)
				}
				compare(t, p, code, x)
			}
			compare(t, p, code, data{nr: 1, arch: 5})
			compare(t, p, code, data{nr: x32Bit, arch: p.Arch.Audit()})
		}
	}
	if long < 50 {
		t.Errorf("%d filters of more than 600 instructions: too few to try far jumps", long)
	}
}

// TestReach jumps over every distance around the farthest, to returns and to
// other instructions, with either target the nearer one.
func TestReach(t *testing.T) {
	for gap := range 4 {
		for near := 245; near < 262; near++ {
			for kind := range 4 {
				a := &assembler{}
				fill := func(n int) {
					for range n {
						a.emit(Filter{Code: ldAbs, K: offNr})
					}
				}
				target := func(act Action, ret bool) int {
					a.emit(Filter{Code: retK, K: uint32(act)})
					if !ret {
						fill(1)
					}
					return a.here()
				}
				far := target(Errno(1), kind&1 == 0)
				fill(gap)
				close := target(Errno(2), kind&2 == 0)
				fill(near)
				yes, no := close, far
				if gap%2 == 1 {
					yes, no = far, close
				}
				a.jump(jeq, 7, yes, no)
				a.emit(Filter{Code: ldAbs, K: offNr})
				code := a.finish()
				if err := verify(code); err != nil {
					t.Fatalf("near %d gap %d kind %d: %v", near, gap, kind, err)
				}
				for nr, at := range map[uint32]int{7: yes, 8: no} {
					want := Errno(1)
					if at == close {
						want = Errno(2)
					}
					if got, _ := interpret(code, data{nr: nr}); got != want {
						t.Errorf("near %d gap %d kind %d nr %d: %s, want %s", near, gap, kind, nr, got, want)
					}
				}
			}
		}
	}
}

func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, a := range []Arch{AMD64, ARM64} {
		for _, o := range []Options{
			{Arch: a, Log: true},
			{Arch: a, Inet: true, StrictTypes: true},
			{Arch: a, Inet: true, InetStreamOnly: true, NoSetID: true},
		} {
			p := Rules(o)
			loud, quiet := p.Split()
			if loud.Flags() != p.Flags() || quiet.Flags() != 0 {
				t.Errorf("flags %d, %d of %d", loud.Flags(), quiet.Flags(), p.Flags())
			}
			l, q := mustCompile(t, loud), mustCompile(t, quiet)
			for _, nr := range numbers() {
				d := data{nr: nr, arch: a.Audit()}
				if nr%7 == 0 {
					d.arch = arches[r.IntN(len(arches))]
				}
				for range 4 {
					want := naive(p, d)
					la, _ := interpret(l, d)
					qa, _ := interpret(q, d)
					// The kernel takes the smaller action; both here are
					// errors or Allow, and never two errors at once.
					if min(la, qa) != want || (la != Allow && qa != Allow) || (qa != Allow && qa.Errno() == EPERM) {
						t.Fatalf("arch %#x nr %d: loud %s, quiet %s, whole %s", d.arch, nr, la, qa, want)
					}
					for i := range d.args {
						d.args[i] = argument(r, p, nr, i)
					}
				}
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	unshare, _ := AMD64.Number("unshare")
	with := func(rules ...Rule) Program {
		return Program{Arch: AMD64, Foreign: Errno(1), X32: Errno(1), Unknown: Errno(38), Default: Allow, Rules: rules}
	}
	rule := func(c ...Cond) Rule { return Rule{Call: "unshare", Nr: unshare, When: c, Action: Errno(1)} }
	noDefault := with()
	noDefault.Default = 0
	big := with()
	for range 3000 {
		big.Rules = append(big.Rules, rule(in(0, low32, 1)))
	}
	for _, c := range []struct {
		name, want string
		p          Program
	}{
		{"zero", "no architecture", Program{}},
		{"unknown arch", "no architecture", Rules(Options{Arch: 9})},
		{"kill by omission", "action 0x0", noDefault},
		{"errno over the cap", "errno 4096", with(Rule{Call: "unshare", Nr: unshare, Action: Errno(4096)})},
		{"errno 0", "errno 0", with(Rule{Call: "unshare", Nr: unshare, Action: Errno(0)})},
		{"wrong number", "number is not this call's", with(Rule{Call: "unshare", Nr: unshare + 1, Action: Errno(1)})},
		{"no such number", "number is not this call's", with(Rule{Call: "unshare", Nr: 5000, Action: Errno(1)})},
		{"argument 6", "no such argument", with(rule(in(6, low32, 1)))},
		{"no mask", "compares nothing", with(rule(in(0, 0, 0)))},
		{"no values", "compares nothing", with(rule(in(0, low32)))},
		{"value outside", "outside the mask", with(rule(in(0, 0xf, 0x10)))},
		{"unreachable", "earlier rule matches always", with(rule(), rule(in(0, low32, 1)))},
		{"too long", "the kernel takes 4096", big},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, err := Compile(c.p)
			if code != nil || !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Compile = %d instructions, %v; want an error with %q", len(code), err, c.want)
			}
		})
	}
}

// TestLayout holds Filter to struct sock_filter.
func TestLayout(t *testing.T) {
	var f Filter
	if unsafe.Sizeof(f) != 8 || unsafe.Offsetof(f.Jt) != 2 || unsafe.Offsetof(f.Jf) != 3 || unsafe.Offsetof(f.K) != 4 {
		t.Errorf("layout of %T", f)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(uint8(1), uint32(0xc000003e), uint32(16), uint64(0), uint64(0xdeadbeef00005412), uint64(0), uint64(0))
	f.Add(uint8(3), uint32(0xc00000b7), uint32(220), uint64(0x40000011), uint64(0), uint64(0), uint64(0))
	f.Add(uint8(7), uint32(0xc000003e), uint32(41), uint64(2), uint64(1|0o2000000), uint64(262), uint64(0))
	f.Add(uint8(0), uint32(0x40000003), uint32(4), uint64(1), uint64(0), uint64(0), uint64(0))
	f.Add(uint8(0), uint32(0xc000003e), uint32(x32Bit|520), uint64(1), uint64(0), uint64(0), uint64(0))
	f.Add(uint8(0xff), uint32(0xc000003e), uint32(0xffffffff), uint64(1), uint64(0), uint64(0), uint64(0))
	sets := append(options(AMD64), options(ARM64)...)
	programs, filters := make([]Program, len(sets)), make([][]Filter, len(sets))
	for i, o := range sets {
		programs[i] = Rules(o)
		filters[i] = mustCompile(f, programs[i])
	}
	f.Fuzz(func(t *testing.T, pick uint8, arch, nr uint32, a0, a1, a2, a3 uint64) {
		for _, i := range []int{int(pick), int(pick) + 256} {
			d := data{nr: nr, arch: arch, args: [6]uint64{a0, a1, a2, a3}}
			compare(t, programs[i], filters[i], d)
			d.arch = programs[i].Arch.Audit()
			compare(t, programs[i], filters[i], d)
			// A large number taken into the table, to meet rules more often.
			d.nr = nr % 480
			compare(t, programs[i], filters[i], d)
		}
	})
}
