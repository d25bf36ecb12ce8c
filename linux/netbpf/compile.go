// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/common/addr"
)

// Image is a compiled policy: the value and the trie nodes that the programs
// read. It is immutable and may be put for any number of sandboxes.
type Image struct {
	policy flat.Policy
	nodes  []node
}

type node struct {
	prefix netip.Prefix // IPv4 unmapped
	flat.Node
}

// Compile checks a policy and lays it out for the programs. It allocates
// nothing per prefix beyond the nodes themselves.
func Compile(p *Policy) (*Image, error) {
	im := &Image{policy: flat.Policy{Abi: uint32(flat.Abi), Mode: uint8(p.Mode), ProxyPort: p.ProxyPort}}
	switch {
	case p.Mode > Rules:
		return nil, &PolicyError{Text: p.Mode.String() + " is unknown"}
	case p.Mode == Allowlist && p.ProxyPort == 0:
		return nil, &PolicyError{Text: "mode egress-allowlist needs the proxy's port"}
	case p.Mode != Allowlist && p.ProxyPort != 0:
		return nil, &PolicyError{Text: "a proxy port has no meaning in mode " + p.Mode.String()}
	case p.DefaultAllow && p.Mode != Rules:
		return nil, &PolicyError{Text: "a default to allow has no meaning in mode " + p.Mode.String()}
	}
	if p.Audit {
		im.policy.Flags |= uint8(flat.Audit)
	}
	if p.DefaultAllow {
		im.policy.Flags |= uint8(flat.DefaultAllow)
	}
	if err := im.broker(p.Broker); err != nil {
		return nil, err
	}
	if len(p.Rules) == 0 {
		return im, nil
	}
	im.policy.Flags |= uint8(flat.HasRules)
	return im, im.rules(p.Rules)
}

func (im *Image) broker(path string) error {
	switch {
	case path == "":
		return nil
	case path[0] != '/':
		return &PolicyError{Text: "broker path " + strconv.Quote(path) + " is not absolute"}
	case strings.IndexByte(path, 0) >= 0:
		return &PolicyError{Text: "broker path " + strconv.Quote(path) + " holds a NUL"}
	case len(path) >= int(flat.PathMax):
		return &PolicyError{Text: "broker path " + strconv.Quote(path) + " is longer than 107 bytes"}
	}
	im.policy.BrokerLen = uint16(len(path))
	for i := range len(path) {
		im.policy.Broker[i] = int8(path[i])
	}
	return nil
}

var (
	all4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	all6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// normal returns the prefix without host bits, IPv4-mapped ones as IPv4.
func normal(p netip.Prefix) (netip.Prefix, bool) {
	if !p.IsValid() || p.Addr().Zone() != "" {
		return p, false
	}
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

// rules makes one node for each distinct prefix, with what the shorter
// prefixes around it say folded in, and one for each whole family, so that
// the programs find a node for every address.
func (im *Image) rules(rules []Rule) error {
	byPrefix := make(map[netip.Prefix][]int, len(rules)+2)
	byPrefix[all4], byPrefix[all6] = nil, nil
	var lengths [2][129]bool // of IPv4, of IPv6
	for i, r := range rules {
		p, ok := normal(r.Prefix)
		switch {
		case !ok:
			return &PolicyError{Rules: []int{i}, Text: "rule " + strconv.Itoa(i) + " has no valid prefix"}
		case r.Proto != AnyProto && r.Proto != TCP && r.Proto != UDP:
			return &PolicyError{Rules: []int{i}, Text: "rule " + r.String() + ": protocol " + strconv.Itoa(int(r.Proto)) + " is neither tcp nor udp"}
		case r.PortLo > r.PortHi:
			return &PolicyError{Rules: []int{i}, Text: "rule " + strconv.Itoa(i) + ": ports " + strconv.Itoa(int(r.PortLo)) + "-" + strconv.Itoa(int(r.PortHi)) + " are in the wrong order"}
		}
		byPrefix[p] = append(byPrefix[p], i)
		lengths[family(p)][p.Bits()] = true
	}
	prefixes := make([]netip.Prefix, 0, len(byPrefix))
	for p := range byPrefix {
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, comparePrefix)
	im.nodes = make([]node, 0, len(prefixes))
	var cover [][]int
	for _, p := range prefixes {
		cover = cover[:0]
		for bits := p.Bits(); bits >= 0; bits-- {
			if !lengths[family(p)][bits] {
				continue
			}
			if at := byPrefix[netip.PrefixFrom(p.Addr(), bits).Masked()]; at != nil {
				cover = append(cover, at)
			}
		}
		n, err := fold(p, rules, cover)
		if err != nil {
			return err
		}
		im.nodes = append(im.nodes, node{p, n})
	}
	return nil
}

func family(p netip.Prefix) int {
	if p.Addr().Is4() {
		return 0
	}
	return 1
}

func comparePrefix(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// seg returns the segment's content for a deciding rule, or nil for none.
func seg(rules []Rule, i int) flat.Seg {
	if i < 0 {
		return flat.Seg{}
	}
	s := flat.Seg{Verdict: uint8(flat.Allow), Rule: uint32(flat.RuleOperator) + uint32(i)}
	if rules[i].Deny {
		s.Verdict = uint8(flat.Deny)
	}
	p, _ := normal(rules[i].Prefix)
	if p.IsSingleIP() {
		s.Flags |= uint8(flat.NamesOne)
	}
	if insideLocal(p) {
		s.Flags |= uint8(flat.NamesLocal)
	}
	return s
}

// localRanges are the loopback and link-local rows of the table.
var localRanges = sync.OnceValue(func() []netip.Prefix {
	var out []netip.Prefix
	for _, e := range addr.Table() {
		if e.Class == addr.Loopback || e.Class == addr.LinkLocal {
			out = append(out, e.Prefix)
		}
	}
	return out
})

// insideLocal reports whether p lies inside a loopback or link-local range.
func insideLocal(p netip.Prefix) bool {
	for _, l := range localRanges() {
		if l.Bits() <= p.Bits() && l.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// decide returns the index of the rule that decides, or -1: cover holds the
// rules of the prefix and of those around it, the longest first.
func decide(rules []Rule, cover [][]int, matches func(*Rule) bool) int {
	for _, level := range cover {
		found := -1
		for _, i := range level {
			if r := &rules[i]; matches(r) && (found < 0 || r.Deny && !rules[found].Deny) {
				found = i
			}
		}
		if found >= 0 {
			return found
		}
	}
	return -1
}

// fold lays out one node.
func fold(p netip.Prefix, rules []Rule, cover [][]int) (flat.Node, error) {
	var n flat.Node
	n.Other = seg(rules, decide(rules, cover, func(r *Rule) bool { return r.Proto == AnyProto && r.PortHi == 0 }))
	tcp, udp := segments(rules, cover, TCP), segments(rules, cover, UDP)
	total := len(tcp)
	n.TcpN, n.UdpN = uint8(min(len(tcp), 255)), uint8(min(len(udp), 255))
	if !slices.Equal(tcp, udp) {
		n.UdpOff = n.TcpN
		total += len(udp)
	}
	if total > len(n.Segs) {
		err := &PolicyError{Text: "the rules that cover " + p.String() + " divide its ports into " + strconv.Itoa(total) +
			" ranges, more than " + strconv.Itoa(len(n.Segs)) + ": merge neighbouring ports, or use fewer; rules"}
		for _, level := range cover {
			err.Rules = append(err.Rules, level...)
		}
		slices.Sort(err.Rules)
		for k, i := range err.Rules {
			if k == 8 {
				err.Text += " …"
				break
			}
			err.Text += " \"" + rules[i].String() + "\""
		}
		return n, err
	}
	copy(n.Segs[:], tcp)
	if n.UdpOff != 0 {
		copy(n.Segs[n.UdpOff:], udp)
	}
	return n, nil
}

// segments divides the ports of one protocol where the deciding rule changes.
func segments(rules []Rule, cover [][]int, proto uint8) []flat.Seg {
	cuts := []int{0}
	for _, level := range cover {
		for _, i := range level {
			if r := &rules[i]; r.PortHi != 0 && (r.Proto == AnyProto || r.Proto == proto) {
				cuts = append(cuts, int(r.PortLo), int(r.PortHi)+1)
			}
		}
	}
	slices.Sort(cuts)
	var out []flat.Seg
	for _, lo := range slices.Compact(cuts) {
		if lo > 65535 {
			break
		}
		i := decide(rules, cover, func(r *Rule) bool { return r.covers(proto, uint16(lo)) })
		s := seg(rules, i)
		if k := len(out); k > 0 && out[k-1].Rule == s.Rule {
			continue
		}
		s.Lo = uint16(lo)
		out = append(out, s)
	}
	return out
}

// covers reports whether the rule speaks about a port of a protocol.
func (r *Rule) covers(proto uint8, port uint16) bool {
	return (r.Proto == AnyProto || r.Proto == proto) && (r.PortHi == 0 || r.PortLo <= port && port <= r.PortHi)
}

// key returns the node's key for a sandbox.
func (n *node) key(cgroup uint64, generation uint32) flat.RuleKey {
	bits := n.prefix.Bits()
	if n.prefix.Addr().Is4() {
		bits += 96
	}
	return flat.RuleKey{Prefixlen: uint32(96 + bits), Generation: generation, Cgroup: cgroup, Addr: n.prefix.Addr().As16()}
}
