// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"os"
	"testing"
)

func BenchmarkOpenAdopt(b *testing.B) {
	j := newJail(b)
	for b.Loop() {
		e, err := Open(j.options())
		if err != nil {
			b.Fatal(err)
		}
		e.Close()
	}
}

func BenchmarkPut(b *testing.B) {
	rules := func(n int) *Policy {
		p := &Policy{Mode: Rules}
		for i := range n {
			p.Rules = append(p.Rules, Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 8), byte(i), 1}), 32)})
		}
		return p
	}
	for _, bb := range []struct {
		name string
		p    *Policy
	}{{"none", &Policy{}}, {"rules4", rules(4)}, {"rules64", rules(64)}} {
		b.Run(bb.name, func(b *testing.B) {
			j := newJail(b)
			im, err := Compile(bb.p)
			if err != nil {
				b.Fatal(err)
			}
			id := uint64(1 << 50)
			for b.Loop() {
				id++
				if err := j.e.Put(id, im); err != nil {
					b.Fatal(err)
				}
				if err := j.e.Remove(id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile10000(b *testing.B) {
	p := &Policy{Mode: Rules}
	for i := range 10000 {
		p.Rules = append(p.Rules, Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 8), byte(i), 1}), 32), PortLo: 443, PortHi: 443})
	}
	for b.Loop() {
		if _, err := Compile(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRing(b *testing.B) {
	j := newJail(b)
	for b.Loop() {
		r, err := j.e.NewRing(1 << 16)
		if err != nil {
			b.Fatal(err)
		}
		r.Attach(1)
		r.Close()
	}
}

// BenchmarkConnect is a socket and a connect to a closed loopback port, which
// is answered at once: without programs, under an open policy, and refused.
func BenchmarkConnect(b *testing.B) {
	for _, bb := range []struct {
		name string
		p    *Policy
	}{{"outside", nil}, {"default-allow", &Policy{Mode: Rules, DefaultAllow: true}},
		{"rule", &Policy{Mode: Rules, Rules: []Rule{{Prefix: netip.MustParsePrefix("127.0.0.1/32")}}}}, {"refused", &Policy{}}} {
		b.Run(bb.name, func(b *testing.B) {
			j := newJail(b)
			c := j.cell("prisoner-hostnet")
			if bb.p != nil {
				c.put(bb.p)
			} else {
				// A cgroup beside the parent: no program runs for its sockets.
				dir := j.root + "/" + j.name + "-beside"
				if err := os.Mkdir(dir, 0o755); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { os.Remove(dir) })
				moveTo(b, c.cmd.Process.Pid, dir)
				b.Cleanup(func() { moveTo(b, c.cmd.Process.Pid, c.dir) })
			}
			loop := refusedDial
			loop.Op, loop.N = "loop", 1000
			c.act(loop)
			b.ResetTimer()
			for b.Loop() {
				c.act(loop)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/connect")
		})
	}
}
