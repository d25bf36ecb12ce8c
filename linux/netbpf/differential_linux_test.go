// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// TestDifferential gives sandboxes random policies and compares what the
// kernel does, and the events it sends, with Decide. Each sandbox is in a
// network namespace of its own: two have different own addresses and
// resolvers, listed at the same time, the third is not listed at all.
func TestDifferential(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	policies, acts := 120, 150
	if testing.Short() {
		policies = 10
	}
	j := newJail(t)
	var tried tally
	cells := []*trial{newTrial(j, true), newTrial(j, true), newTrial(j, false)}
	if a, b := cells[0].netns(), cells[1].netns(); a == b {
		t.Fatalf("two namespaces have the cookie %d", a)
	}
	for range policies {
		// One address is the own one of the first namespace and a stranger in
		// the second.
		shared := g.addr()
		for i, c := range cells {
			c.renew(&g)
			if i == 0 && !shared.IsUnspecified() && shared.Unmap() != netip.IPv4Unspecified() {
				c.env.Own = append(c.env.Own, shared)
			}
			c.give()
		}
		for _, c := range cells {
			c.compare(t, &g, acts, shared, &tried)
		}
	}
	t.Logf("%d acts, %d refused, %d to an address that only the other namespace owns", tried.acts, tried.denied, tried.foreign)
	if tried.denied == 0 || tried.denied == tried.acts || tried.foreign == 0 && !testing.Short() {
		t.Error("the random acts show nothing")
	}
}

type tally struct{ acts, denied, foreign int }

// trial is a sandbox with what it is given at the moment.
type trial struct {
	*cell
	ring   *Ring
	listed bool
	policy *Policy
	env    Env
}

func newTrial(j *jail, listed bool) *trial {
	c := &trial{cell: j.cell("prisoner"), listed: listed}
	c.ring = c.cell.ring(1 << 18)
	if listed {
		c.netns()
	}
	return c
}

// renew chooses a policy and addresses.
func (c *trial) renew(g *generator) {
	c.policy = g.policy()
	c.env = Env{NotListed: true}
	if c.listed {
		c.env = Env{Own: g.addrs(3), Resolvers: g.addrs(2)}
	}
}

func (c *trial) give() {
	c.j.t.Helper()
	c.put(c.policy)
	if c.listed {
		c.addresses(&c.env)
	}
}

// compare has the prisoner do random acts, some of them towards shared.
func (c *trial) compare(t *testing.T, g *generator, acts int, shared netip.Addr, n *tally) {
	t.Helper()
	p := c.policy
	calls := make([]call, acts)
	want := make([]Decision, acts)
	model := make([]Act, acts)
	for i := range calls {
		calls[i], model[i] = g.act(p, &c.env)
		if i < 3 {
			calls[i], model[i] = g.actTo(shared, p)
		}
		want[i] = Decide(p, &c.env, model[i])
		if i < 3 && want[i].Allow && !want[i].WouldDeny && p.Mode == Any {
			n.foreign++
		}
	}
	got := c.act(calls...)
	ev := events(t, c.ring)
	for i, e := range got {
		refused := e == perm || e == int(unix.EPROTONOSUPPORT)
		if refused == want[i].Allow {
			t.Fatalf("policy %+v\nenv %+v\nact %+v: errno %v, model says %+v", *p, c.env, calls[i], unix.Errno(e), want[i])
		}
		n.acts++
		if want[i].Allow && !want[i].WouldDeny {
			continue
		}
		n.denied++
		if len(ev) == 0 {
			t.Fatalf("no event for act %+v", calls[i])
		}
		x := ev[0]
		ev = ev[1:]
		class := uint8(want[i].Class)
		if x.Rule != want[i].Rule || x.Hook != model[i].Hook || x.Port != model[i].Port && model[i].Hook != flat.HookSockCreate ||
			x.Class != class && x.Class != uint8(flat.ClassOwn) || x.Verdict == flat.WouldDeny != p.Audit || x.Cgroup != c.id {
			t.Fatalf("policy %+v\nenv %+v\nact %+v\nevent %+v, model says %+v", *p, c.env, calls[i], x, want[i])
		}
	}
	if len(ev) != 0 {
		t.Fatalf("%d events too many, first %+v", len(ev), ev[0])
	}
}

type generator struct{ *rand.Rand }

var interesting = []string{
	"0.0.0.0", "::", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "10.0.0.1", "10.1.2.3", "::ffff:10.1.2.3",
	"169.254.1.1", "fe80::1", "192.0.0.9", "192.0.0.8", "1.1.1.1", "8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1", "64:ff9b::8.8.8.8",
	"64:ff9b::10.1.2.3", "64:ff9b::127.0.0.1", "2002:a01:203::1", "2002:808:808::", "64:ff9b::0.0.0.0", "::8.8.8.8", "ff02::1", "224.0.0.1", "255.255.255.255",
	"100.64.0.1", "198.18.0.1", "2001::1", "2001:db8::1", "fc00::1", "fec0::1", "3fff::1", "5f00::1", "4000::1",
}

func (g generator) addr() netip.Addr {
	if g.IntN(4) > 0 {
		return netip.MustParseAddr(interesting[g.IntN(len(interesting))])
	}
	if g.IntN(2) == 0 {
		v := g.Uint32()
		return netip.AddrFrom4([4]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
	}
	var b [16]byte
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	b[0] = 0x20 | b[0]&0x1f
	return netip.AddrFrom16(b)
}

func (g generator) addrs(n int) []netip.Addr {
	var out []netip.Addr
	for range g.IntN(n + 1) {
		if a := g.addr(); !a.IsUnspecified() && a.Unmap() != netip.IPv4Unspecified() {
			out = append(out, a)
		}
	}
	return out
}

func (g generator) port() uint16 {
	return [...]uint16{1, 53, 80, 81, 443, 444, 8080, 65535, uint16(1 + g.IntN(65535))}[g.IntN(9)]
}

func (g generator) rule() Rule {
	a := g.addr()
	r := Rule{Prefix: netip.PrefixFrom(a, a.BitLen()-g.IntN(3)*g.IntN(a.BitLen()/2+1)), Deny: g.IntN(2) == 0}
	switch g.IntN(6) {
	case 0:
		r.Prefix = netip.PrefixFrom(a, 0)
	case 1:
		r.Prefix = netip.PrefixFrom(a, a.BitLen())
	}
	r.Proto = [...]uint8{AnyProto, TCP, UDP}[g.IntN(3)]
	if g.IntN(2) == 0 {
		r.PortLo, r.PortHi = g.port(), g.port()
		if r.PortLo > r.PortHi {
			r.PortLo, r.PortHi = r.PortHi, r.PortLo
		}
	}
	return r
}

// policy returns a random policy that compiles.
func (g generator) policy() *Policy {
	for {
		p := &Policy{Mode: Mode(g.IntN(4)), Audit: g.IntN(6) == 0}
		switch p.Mode {
		case Allowlist:
			p.ProxyPort = g.port()
		case Rules:
			p.DefaultAllow = g.IntN(2) == 0
		}
		if g.IntN(4) > 0 {
			for range g.IntN(12) {
				p.Rules = append(p.Rules, g.rule())
			}
		}
		if _, err := Compile(p); err == nil {
			return p
		}
	}
}

// act returns a random act and what the model is to make of it.
func (g generator) act(p *Policy, env *Env) (call, Act) {
	a := g.addr()
	switch {
	case len(p.Rules) > 0 && g.IntN(3) == 0:
		a = p.Rules[g.IntN(len(p.Rules))].Prefix.Addr()
	case len(env.Own) > 0 && g.IntN(6) == 0:
		a = env.Own[0]
	case len(env.Resolvers) > 0 && g.IntN(6) == 0:
		a = env.Resolvers[0]
	}
	return g.actTo(a, p)
}

// actTo returns a random act towards an address, or under a proxy at times
// towards that.
func (g generator) actTo(a netip.Addr, p *Policy) (call, Act) {
	c := call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: a.String(), Port: int(g.port())}
	if p.Mode == Allowlist && g.IntN(3) == 0 {
		c.IP, c.Port = "127.0.0.1", int(p.ProxyPort)
		a = netip.MustParseAddr(c.IP)
	}
	m := Act{Hook: flat.HookConnect4, Type: uint8(c.Type), Prot: uint16(TCP), Addr: a, Port: uint16(c.Port)}
	if g.IntN(2) == 0 {
		c.Type, m.Type, m.Prot = unix.SOCK_DGRAM, 2, uint16(UDP)
		if g.IntN(2) == 0 {
			c.Op, m.Hook = "sendto", flat.HookSendmsg4
		}
	}
	if !a.Is4() || g.IntN(3) == 0 {
		c.Family = unix.AF_INET6
		m.Hook++
		// A datagram to a mapped address goes out by IPv4.
		if c.Op == "sendto" && (a.Is4() || a.Is4In6()) {
			m.Hook--
		}
	}
	return c, m
}
