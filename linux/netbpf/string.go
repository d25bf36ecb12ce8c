// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"strconv"
	"strings"

	"github.com/tholehq/thole/bpf/flat"
)

// String lists the image line by line, the same for the same policy: the
// value, then each prefix with the ranges of ports and what decides there.
func (im *Image) String() string {
	var b strings.Builder
	p := &im.policy
	b.WriteString("mode " + Mode(p.Mode).String() + "\n")
	if p.Flags&uint8(flat.Audit) != 0 {
		b.WriteString("audit\n")
	}
	if Mode(p.Mode) == Rules {
		b.WriteString("default " + verdictText(p.Flags&uint8(flat.DefaultAllow) != 0) + "\n")
	}
	if p.ProxyPort != 0 {
		b.WriteString("proxy 127.0.0.1:" + strconv.Itoa(int(p.ProxyPort)) + "\n")
	}
	if p.BrokerLen != 0 {
		path := make([]byte, p.BrokerLen)
		for i := range path {
			path[i] = byte(p.Broker[i])
		}
		b.WriteString("broker " + strconv.Quote(string(path)) + "\n")
	}
	for i := range im.nodes {
		n := &im.nodes[i]
		b.WriteString(n.prefix.String() + "\n")
		tcp := n.Segs[n.TcpOff : n.TcpOff+n.TcpN]
		udp := n.Segs[n.UdpOff : n.UdpOff+n.UdpN]
		if n.UdpOff == n.TcpOff {
			list(&b, "tcp,udp", tcp)
		} else {
			list(&b, "tcp", tcp)
			list(&b, "udp", udp)
		}
		b.WriteString("  other " + segText(n.Other) + "\n")
	}
	return b.String()
}

func verdictText(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func list(b *strings.Builder, proto string, segs []flat.Seg) {
	for i, s := range segs {
		hi := 65535
		if i+1 < len(segs) {
			hi = int(segs[i+1].Lo) - 1
		}
		b.WriteString("  " + proto + " " + strconv.Itoa(int(s.Lo)) + "-" + strconv.Itoa(hi) + " " + segText(s) + "\n")
	}
}

func segText(s flat.Seg) string {
	if s.Verdict == uint8(flat.NoVerdict) {
		return "mode"
	}
	t := verdictText(s.Verdict == uint8(flat.Allow)) + " rule " + strconv.Itoa(int(s.Rule)-int(flat.RuleOperator))
	if s.Flags&uint8(flat.NamesLocal) != 0 {
		t += " names-local"
	}
	if s.Flags&uint8(flat.NamesOne) != 0 {
		t += " names-one"
	}
	return t
}
