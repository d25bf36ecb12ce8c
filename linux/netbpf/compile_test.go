// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"flag"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/bpf/flat"
)

var update = flag.Bool("update", false, "write the golden files")

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestImageString(t *testing.T) {
	tests := []struct {
		name string
		p    Policy
	}{
		{"none", Policy{}},
		{"allowlist", Policy{Mode: Allowlist, ProxyPort: 4443, Broker: "/run/thole/broker \"x\".sock"}},
		{"any-audit", Policy{Mode: Any, Audit: true}},
		{"rules", Policy{Mode: Rules, DefaultAllow: true, Rules: []Rule{
			{Prefix: pfx("10.0.0.0/8"), Deny: true},
			{Prefix: pfx("10.1.0.0/16"), PortLo: 443, PortHi: 443, Proto: TCP},
			{Prefix: pfx("10.1.0.0/16"), PortLo: 400, PortHi: 500, Deny: true, Proto: UDP},
			{Prefix: pfx("127.0.0.1/32"), PortLo: 5432, PortHi: 5432},
			{Prefix: pfx("fe80::/16"), Deny: false},
			{Prefix: pfx("::/0"), PortLo: 0, PortHi: 1023, Deny: true},
			{Prefix: pfx("::ffff:192.0.2.0/120"), PortLo: 65535, PortHi: 65535},
			{Prefix: pfx("10.0.0.0/8"), PortLo: 1, PortHi: 1},
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			im, err := Compile(&tt.p)
			if err != nil {
				t.Fatal(err)
			}
			path := "testdata/" + tt.name + ".golden"
			if *update {
				if err := os.WriteFile(path, []byte(im.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if im.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", im, want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	many := Policy{Mode: Rules}
	for i := range 40 {
		many.Rules = append(many.Rules, Rule{Prefix: pfx("10.0.0.0/8"), PortLo: uint16(2*i + 1), PortHi: uint16(2*i + 1)})
	}
	tests := []struct {
		name string
		p    Policy
		want string
	}{
		{"mode", Policy{Mode: 9}, "mode 9 is unknown"},
		{"no port", Policy{Mode: Allowlist}, "needs the proxy's port"},
		{"stray port", Policy{ProxyPort: 1}, "no meaning in mode none"},
		{"stray default", Policy{Mode: Any, DefaultAllow: true}, "no meaning in mode egress-any"},
		{"relative broker", Policy{Broker: "x"}, `"x" is not absolute`},
		{"NUL in broker", Policy{Broker: "/x\x00y"}, "holds a NUL"},
		{"long broker", Policy{Broker: "/" + strings.Repeat("x", 107)}, "longer than 107"},
		{"no prefix", Policy{Rules: []Rule{{}}}, "rule 0 has no valid prefix"},
		{"protocol", Policy{Rules: []Rule{{Prefix: pfx("10.0.0.0/8"), Proto: 1}}}, "neither tcp nor udp"},
		{"ports", Policy{Rules: []Rule{{Prefix: pfx("10.0.0.0/8"), PortLo: 2, PortHi: 1}}}, "2-1 are in the wrong order"},
		{"too many", many, "10.0.0.0/8 divide its ports into 81 ranges, more than 64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(&tt.p)
			var pe *PolicyError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	longest := Policy{Broker: "/" + strings.Repeat("x", 106)}
	if _, err := Compile(&longest); err != nil {
		t.Error(err)
	}
}

// find evaluates an image as the programs do: longest prefix, then segment.
func (im *Image) find(to netip.Addr, proto uint8, port uint16) flat.Seg {
	var best *node
	for i := range im.nodes {
		if n := &im.nodes[i]; n.prefix.Contains(to) && (best == nil || n.prefix.Bits() > best.prefix.Bits()) {
			best = n
		}
	}
	var segs []flat.Seg
	switch proto {
	case TCP:
		segs = best.Segs[best.TcpOff : best.TcpOff+best.TcpN]
	case UDP:
		segs = best.Segs[best.UdpOff : best.UdpOff+best.UdpN]
	default:
		return best.Other
	}
	got := segs[0]
	for _, s := range segs {
		if s.Lo <= port {
			got = s
		}
	}
	return got
}

// checkFold compares an image with the naive reading of its rules.
func checkFold(t *testing.T, p *Policy, to netip.Addr, proto uint8, port uint16) {
	t.Helper()
	im, err := Compile(p)
	var pe *PolicyError
	if errors.As(err, &pe) || len(p.Rules) == 0 {
		return
	}
	got := im.find(to.Unmap(), proto, port)
	i := ruleFor(p.Rules, to.Unmap(), Act{Prot: uint16(proto), Port: port})
	want := flat.Seg{}
	if i >= 0 {
		want = flat.Seg{Verdict: uint8(flat.Allow)}
		if p.Rules[i].Deny {
			want.Verdict = uint8(flat.Deny)
		}
	}
	// Of equal rules either may be named; the verdict must agree.
	if got.Verdict != want.Verdict {
		t.Fatalf("%v to %v:%d/%d: image says %+v, rule %d decides\n%s", p.Rules, to, port, proto, got, i, im)
	}
	for k := range im.nodes {
		for _, list := range [][]flat.Seg{im.nodes[k].Segs[im.nodes[k].TcpOff:][:im.nodes[k].TcpN], im.nodes[k].Segs[im.nodes[k].UdpOff:][:im.nodes[k].UdpN]} {
			for s := range list {
				if s == 0 && list[s].Lo != 0 || s > 0 && list[s].Lo <= list[s-1].Lo {
					t.Fatalf("segments out of order in\n%s", im)
				}
			}
		}
	}
}

func FuzzFold(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		var p Policy
		base := [...]string{"10.0.0.0", "10.1.0.0", "::ffff:10.1.2.0", "127.0.0.1", "2001:db8::", "::", "fe80::1"}
		ports := [...]uint16{0, 1, 80, 81, 443, 65534, 65535}
		for range r.IntN(10) {
			ad := netip.MustParseAddr(base[r.IntN(len(base))])
			rule := Rule{Prefix: netip.PrefixFrom(ad, r.IntN(ad.BitLen()+1)), Deny: r.IntN(2) == 0, Proto: [...]uint8{0, TCP, UDP}[r.IntN(3)]}
			if r.IntN(3) > 0 {
				rule.PortLo, rule.PortHi = ports[r.IntN(7)], ports[r.IntN(7)]
			}
			p.Rules = append(p.Rules, rule)
		}
		for range 20 {
			checkFold(t, &p, netip.MustParseAddr(base[r.IntN(len(base))]), [...]uint8{TCP, UDP, 1}[r.IntN(3)], ports[r.IntN(7)])
		}
	})
}

func TestDecide(t *testing.T) {
	to := func(ip string, port uint16) Act {
		return Act{Hook: flat.HookConnect4, Type: 1, Prot: uint16(TCP), Addr: netip.MustParseAddr(ip), Port: port}
	}
	abi := []Rule{{Prefix: pfx("10.0.0.0/8"), Deny: true}, {Prefix: pfx("10.1.0.0/16"), PortLo: 443, PortHi: 443, Proto: TCP}, {Prefix: pfx("0.0.0.0/0")}}
	tests := []struct {
		name string
		p    Policy
		a    Act
		rule uint32
	}{
		{"abi.h, allowed", Policy{Rules: abi}, to("10.1.2.3", 443), 0},
		{"abi.h, falls through", Policy{Rules: abi}, to("10.1.2.3", 80), 1000},
		{"abi.h, shorter", Policy{Rules: abi}, to("10.9.9.9", 443), 1000},
		{"abi.h, no rule", Policy{Rules: abi[:2]}, to("192.0.2.1", 443), uint32(flat.RuleNetNone)},
		{"abi.h, loopback", Policy{Rules: abi}, to("127.0.0.1", 443), uint32(flat.RuleNetNone)},
		{"named loopback", Policy{Rules: []Rule{{Prefix: pfx("127.0.0.0/8")}}}, to("127.0.0.1", 443), 0},
		{"0.0.0.0 is loopback", Policy{Rules: []Rule{{Prefix: pfx("127.0.0.1/32"), Deny: true}}, Mode: Rules, DefaultAllow: true}, to("0.0.0.0", 1), 1000},
		{":: is both", Policy{Rules: []Rule{{Prefix: pfx("127.0.0.1/32"), Deny: true}}, Mode: Rules, DefaultAllow: true}, to("::", 1), 1000},
		{":: is opened by no rule", Policy{Rules: []Rule{{Prefix: pfx("::1/128")}}}, to("::", 1), uint32(flat.RuleNetNone)},
		{"carried address denied", Policy{Mode: Any, Rules: []Rule{{Prefix: pfx("8.8.8.8/32"), Deny: true}}}, to("64:ff9b::8.8.8.8", 1), 1000},
		{"carried address not opened", Policy{Rules: []Rule{{Prefix: pfx("8.8.8.8/32")}}}, to("64:ff9b::8.8.8.8", 1), uint32(flat.RuleNetNone)},
		{"own by a range", Policy{Mode: Any, Rules: []Rule{{Prefix: pfx("9.9.9.0/24")}}}, to("9.9.9.9", 1), uint32(flat.RuleOwnAddress)},
		{"own by name", Policy{Mode: Any, Rules: []Rule{{Prefix: pfx("9.9.9.9/32")}}}, to("9.9.9.9", 1), 0},
		{"deny wins a tie", Policy{Mode: Any, Rules: []Rule{{Prefix: pfx("1.1.1.1/32")}, {Prefix: pfx("1.1.1.1/32"), Deny: true}}}, to("1.1.1.1", 1), 1001},
		{"IPv6 rule and IPv4", Policy{Mode: Any, Rules: []Rule{{Prefix: pfx("::/0"), Deny: true}}}, to("1.1.1.1", 1), 0},
	}
	env := &Env{Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(&tt.p, env, tt.a)
			if d.Rule != tt.rule || d.Allow != (tt.rule == 0) {
				t.Errorf("%+v, want rule %d", d, tt.rule)
			}
		})
	}
}
