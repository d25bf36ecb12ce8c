// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"slices"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/common/addr"
)

// Errno values of refusals, as Linux numbers them.
const (
	errPerm            = 1  // EPERM
	errProtoNotSupport = 93 // EPROTONOSUPPORT
)

// Env is what of the host a decision depends on.
type Env struct {
	Own       []netip.Addr // the host's own addresses
	Resolvers []netip.Addr // its configured resolvers
	// NotListed says that Own was never given for the socket's network
	// namespace: any address may be the host's own.
	NotListed bool
}

// Act is one call that the programs judge.
type Act struct {
	Hook flat.Hook
	Type uint8  // SOCK_STREAM is 1, SOCK_DGRAM is 2
	Prot uint16 // IANA's number; 262 is MPTCP
	Addr netip.Addr
	Port uint16
	Path string // unix hooks: as the caller wrote it, an abstract name after a NUL
}

// Decision is the answer to an Act.
type Decision struct {
	Allow bool
	// WouldDeny is set with Allow where audit mode lets a refusal pass.
	WouldDeny bool
	Rule      uint32 // what refused, see Reason; 0 if nothing did
	Class     addr.Class
	Own       bool   // the address is the host's own
	Errno     uint16 // what the caller sees if it is refused
}

// Decide judges an act as the programs do. It is written from abi.h and shares
// no code with [Compile]: tests hold the two against each other and against
// the kernel.
func Decide(p *Policy, env *Env, a Act) Decision {
	d := judge(p, env, a)
	switch {
	case d.Allow:
		d.Rule, d.Errno = 0, 0
	case d.Errno == 0:
		d.Errno = errPerm
	}
	if !d.Allow && p.Audit {
		d.Allow, d.WouldDeny = true, true
	}
	return d
}

func judge(p *Policy, env *Env, a Act) Decision {
	switch a.Hook {
	case flat.HookSockCreate:
		return judgeSocket(p, a)
	case flat.HookBind4, flat.HookBind6:
		return judgeBind(p, a)
	case flat.HookConnectUnix, flat.HookSendmsgUnix:
		path := a.Path
		for i := 1; i < len(path); i++ {
			if path[i] == 0 {
				path = path[:i]
				break
			}
		}
		return Decision{Allow: p.Mode == Rules || p.Broker != "" && path == p.Broker, Rule: uint32(flat.RuleUnix)}
	}
	return judgeAddress(p, env, a)
}

func judgeSocket(p *Policy, a Act) Decision {
	const stream, dgram = 1, 2
	switch {
	case a.Type == stream && (a.Prot == 0 || a.Prot == uint16(TCP)),
		a.Type == dgram && (a.Prot == 0 || a.Prot == uint16(UDP)),
		p.Mode == Rules && p.DefaultAllow:
		return Decision{Allow: true}
	case a.Prot == 262:
		return Decision{Rule: uint32(flat.RuleMptcp), Errno: errProtoNotSupport}
	}
	return Decision{Rule: uint32(flat.RuleSocketType)}
}

func judgeBind(p *Policy, a Act) Decision {
	switch {
	case p.Mode == Rules:
		return Decision{Allow: true}
	case a.Port != 0:
		return Decision{Rule: uint32(flat.RuleBind)}
	case a.Prot == uint16(TCP) || p.Mode == Any:
		return Decision{Allow: true}
	}
	return Decision{Rule: uint32(flat.RuleBindUdp)}
}

// target is one address with what the table says of it.
type target struct {
	addr  netip.Addr // unmapped
	class addr.Class
	own   bool
}

func (t target) local() bool { return t.class == addr.Loopback || t.class == addr.LinkLocal }

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// look returns what is known of an address, and the IPv4 address inside it.
func look(env *Env, a netip.Addr) (t target, inner netip.Addr) {
	t = target{addr: a, own: env.NotListed || slices.ContainsFunc(env.Own, func(o netip.Addr) bool { return o.Unmap() == a })}
	best := -1
	for _, e := range addr.Table() {
		if e.Prefix.Addr().Is4In6() || e.Prefix.Addr().Is4() != a.Is4() || !e.Prefix.Contains(a) || e.Prefix.Bits() <= best {
			continue
		}
		best, t.class, inner = e.Prefix.Bits(), e.Class, netip.Addr{}
		if e.Embeds >= 0 {
			b := a.As16()
			inner = v4(netip.AddrFrom4([4]byte(b[e.Embeds : e.Embeds+4])))
		}
	}
	return t, inner
}

// v4 replaces 0.0.0.0, which reaches the host itself.
func v4(a netip.Addr) netip.Addr {
	if a == netip.IPv4Unspecified() {
		return loopback4
	}
	return a
}

func judgeAddress(p *Policy, env *Env, a Act) Decision {
	to := v4(a.Addr.Unmap().WithZone(""))
	unspec := to == netip.IPv6Unspecified()
	if unspec {
		to = loopback6
	}
	t, in := look(env, to)
	if unspec {
		in = loopback4
	}
	var inside target
	if in.IsValid() {
		inside, _ = look(env, in)
		if t.class == addr.Public {
			t.class = inside.class
		}
	}
	d := Decision{Class: t.class, Own: !env.NotListed && (t.own || inside.own)}

	if i := ruleFor(p.Rules, to, a); i >= 0 || in.IsValid() {
		r := &Rule{}
		if i >= 0 {
			r = &p.Rules[i]
		}
		if i >= 0 && r.Deny {
			d.Rule = uint32(flat.RuleOperator) + uint32(i)
			return d
		}
		if k := ruleFor(p.Rules, inside.addr, a); in.IsValid() && k >= 0 && p.Rules[k].Deny {
			d.Rule = uint32(flat.RuleOperator) + uint32(k)
			return d
		}
		if i >= 0 && opens(r, t, inside) {
			d.Allow = true
			return d
		}
	}

	switch p.Mode {
	case Allowlist:
		d.Allow = a.Prot == uint16(TCP) && to == loopback4 && a.Port == p.ProxyPort
		d.Rule = uint32(flat.RuleNotProxy)
	case Any:
		resolver := a.Port == 53 && slices.ContainsFunc(env.Resolvers, func(r netip.Addr) bool { return r.Unmap() == to })
		switch {
		case a.Prot != uint16(TCP) && a.Prot != uint16(UDP):
			d.Rule = uint32(flat.RuleSocketType)
		case resolver:
			d.Allow = true
		case env.NotListed:
			d.Rule = uint32(flat.RuleNotListed)
		case d.Own:
			d.Rule = uint32(flat.RuleOwnAddress)
		case t.class == addr.Public:
			d.Allow = true
		case t.class == addr.Loopback:
			d.Rule = uint32(flat.RuleLoopback)
		case t.class == addr.LinkLocal:
			d.Rule = uint32(flat.RuleLinkLocal)
		default:
			d.Rule = uint32(flat.RuleNotPublic)
		}
	case Rules:
		d.Allow, d.Rule = p.DefaultAllow, uint32(flat.RuleDefault)
	default:
		d.Rule = uint32(flat.RuleNetNone)
	}
	return d
}

// ruleFor returns the index of the rule that decides, or -1.
func ruleFor(rules []Rule, to netip.Addr, a Act) int {
	found, bits := -1, -1
	for i := range rules {
		r := &rules[i]
		p, ok := normal(r.Prefix)
		if !ok || !p.Contains(to) || p.Bits() < bits {
			continue
		}
		switch a.Prot {
		case uint16(TCP):
			if !r.covers(TCP, a.Port) {
				continue
			}
		case uint16(UDP), 136:
			if !r.covers(UDP, a.Port) {
				continue
			}
		default:
			if r.Proto != AnyProto || r.PortHi != 0 {
				continue
			}
		}
		if p.Bits() > bits || r.Deny && !rules[found].Deny {
			found, bits = i, p.Bits()
		}
	}
	return found
}

// opens reports whether an allow rule reaches a destination of this kind.
func opens(r *Rule, t, inside target) bool {
	p, _ := normal(r.Prefix)
	switch {
	case inside.local() || inside.own:
		return false
	case t.own && !p.IsSingleIP():
		return false
	case t.local():
		return insideLocal(p)
	}
	return true
}
