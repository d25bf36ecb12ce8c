// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// Validate checks a whole policy, above all one that was filled from flags:
// the rules that concern two of its parts, and every path. Whatever the
// parsers return passes. The error is an *Error.
func (p *Policy) Validate() error {
	if p.Kind != "" && !slices.Contains(Kinds(), p.Kind) {
		pos, _ := p.PosOf(KeyKind)
		return pos.err(KeyKind, "", "unknown kind %q", p.Kind)
	}
	lists := [...]struct {
		key   string
		paths []Path
	}{{"ro", p.FS.RO}, {"rw", p.FS.RW}, {"rd", p.FS.RD}, {"wo", p.FS.WO}}
	for _, l := range lists {
		for _, r := range l.paths {
			c, err := cleanPath(hostStyle(), r.Path)
			if err != nil {
				return r.Pos.err(l.key, err.Hint, "%s", err.Msg)
			}
			if c != r.Path {
				return r.Pos.err(l.key, "write "+quote(c), "path %q is not in clean form", r.Path)
			}
		}
	}
	for i, r := range p.Net.Rules {
		if !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked() || r.Prefix.Addr().Is4In6() && r.Prefix.Bits() >= 96 || r.PortLo > r.PortHi || r.Proto > UDP {
			return r.Pos.err(index("net.rules", i), "", "rule %q is not in normal form", r.Text)
		}
	}
	return p.validateNet()
}

func (p *Policy) validateNet() error {
	mode, _ := p.PosOf(KeyNetMode)
	switch n := &p.Net; {
	case n.Mode > Any:
		return mode.err(KeyNetMode, "", "unknown mode %d", n.Mode)
	case n.Mode != Allowlist && len(n.Allow) > 0:
		return n.Allow[0].Pos.err("net.allow", "ask for egress-allowlist, or leave the hosts out", "a list of hosts has no use with mode %q", n.Mode)
	case n.Mode != Allowlist && n.ProxyPort != 0:
		pos, _ := p.PosOf(KeyProxyPort)
		return pos.err(KeyProxyPort, "ask for egress-allowlist, or leave the port out", "a proxy's port has no use with mode %q", n.Mode)
	case n.Mode == Allowlist && len(n.Allow) == 0 && n.ProxyPort == 0:
		return mode.err("net.allow", "list the hosts that may be reached", "mode %q needs a list of hosts", n.Mode)
	}
	return nil
}

// err makes an error at a position; a flag is named in the message.
func (p Pos) err(key, hint, format string, args ...any) *Error {
	msg := message(format, args)
	if p.Flag != "" {
		msg += " (" + p.Flag + ")"
	}
	return &Error{File: p.File, Line: p.Line, Column: p.Column, Key: key, Msg: msg, Hint: hint}
}
