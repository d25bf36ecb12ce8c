// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

const ruleSyntax = "a rule is cidr[:port[-port]][/tcp|/udp], as 10.0.0.0/8:443/tcp or [2001:db8::/32]:443/tcp"

// ParseRule reads one rule, cidr[:port[-port]][/tcp|/udp]. An IPv6 range with
// a port stands in brackets; a bare address is its own range. Host bits must
// be zero. An IPv4-mapped range becomes the IPv4 range. The error is an
// *Error without a file.
func ParseRule(s string, deny bool) (Rule, error) {
	r, err := parseRule(s)
	if err != nil {
		return Rule{}, err
	}
	r.Deny = deny
	return r, nil
}

func parseRule(s string) (Rule, *Error) {
	r := Rule{PortHi: 65535, Text: s}
	rest, err := r.protocol(s)
	if err != nil {
		return r, err
	}
	cidr, cidrOff, ports := rest, 0, ""
	switch {
	case strings.HasPrefix(rest, "["):
		i := strings.IndexByte(rest, ']')
		if i < 0 {
			return r, stringError(s, 0, ruleSyntax, "rule %q lacks the closing bracket", s)
		}
		cidr, cidrOff, ports = rest[1:i], 1, rest[i+1:]
		if strings.HasPrefix(ports, "/") {
			return r, stringError(s, i+1, "put the prefix length inside the brackets", "rule %q has text behind the bracket", s)
		}
		if ports != "" && ports[0] != ':' {
			return r, stringError(s, i+1, ruleSyntax, "rule %q has text behind the bracket", s)
		}
	case strings.Count(rest, ":") == 1:
		i := strings.IndexByte(rest, ':')
		cidr, ports = rest[:i], rest[i:]
	}
	if r.Prefix, err = parseCIDR(s, cidr, cidrOff); err != nil {
		return r, err
	}
	if ports == "" {
		return r, nil
	}
	return r, r.ports(s, ports[1:], len(rest)-len(ports)+1)
}

// protocol takes "/tcp" or "/udp" off the end.
func (r *Rule) protocol(s string) (string, *Error) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 || i+1 < len(s) && !isLetter(s[i+1]) {
		return s, nil
	}
	name, port, hasPort := strings.Cut(s[i+1:], ":")
	switch {
	case hasPort && (name == "tcp" || name == "udp"):
		return "", stringError(s, i+1, "write "+s[:i]+":"+port+"/"+name, "the port of rule %q stands behind the protocol", s)
	case name == "tcp":
		r.Proto = TCP
	case name == "udp":
		r.Proto = UDP
	default:
		return "", stringError(s, i+1, "the protocols are: tcp, udp; without one a rule holds for both", "unknown protocol %q in rule %q", s[i+1:], s)
	}
	return s[:i], nil
}

// ports reads "443" or "8000-8999", which starts at offset off of s.
func (r *Rule) ports(s, ports string, off int) *Error {
	lo, hi, isRange := strings.Cut(ports, "-")
	var ok bool
	if r.PortLo, ok = parsePort(lo); !ok {
		return stringError(s, off, "", "port %q in rule %q is not a number from 1 to 65535", lo, s)
	}
	r.PortHi = r.PortLo
	if !isRange {
		return nil
	}
	if r.PortHi, ok = parsePort(hi); !ok {
		return stringError(s, off+len(lo)+1, "", "port %q in rule %q is not a number from 1 to 65535", hi, s)
	}
	if r.PortLo > r.PortHi {
		return stringError(s, off, "write "+hi+"-"+lo, "port range %s in rule %q is upside down", ports, s)
	}
	return nil
}

// parsePort reads a port as people write it: decimal, no sign, no leading zero.
func parsePort(s string) (uint16, bool) {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 16)
	return uint16(v), err == nil
}

// parseCIDR reads an address or a range that starts at offset off of the rule s.
func parseCIDR(s, cidr string, off int) (netip.Prefix, *Error) {
	fail := func(at int, hint, format string, args ...any) (netip.Prefix, *Error) {
		return netip.Prefix{}, stringError(s, off+at, hint, format, args...)
	}
	text, length, hasLength := strings.Cut(cidr, "/")
	a, err := netip.ParseAddr(text)
	if err != nil {
		hint := ruleSyntax
		if h, herr := ParseHost(text); herr == nil {
			hint = "rules take addresses; the host " + h.Host + " belongs in [sandbox] net.allow"
		}
		return fail(0, hint, "%q in rule %q is not an IP address", text, s)
	}
	if a.Zone() != "" {
		return fail(len(text)-len(a.Zone())-1, "leave the zone out", "rule %q has a zone", s)
	}
	bits := a.BitLen()
	if hasLength {
		v, ok := parseLength(length)
		if !ok || v > a.BitLen() {
			hint := ""
			if n, ports, ok := strings.Cut(length, ":"); ok && len(n) < 4 && strings.Trim(n, "0123456789") == "" {
				hint = "write [" + text + "/" + n + "]:" + ports + s[off+len(cidr):]
			}
			return fail(len(text)+1, hint, "prefix length %q in rule %q is not a number from 0 to %d", length, s, a.BitLen())
		}
		bits = v
	}
	if a.Is4In6() && bits >= 96 {
		a, bits = a.Unmap(), bits-96
	}
	p := netip.PrefixFrom(a, bits)
	if m := p.Masked(); m != p {
		fixed := s[:off] + m.String() + s[off+len(cidr):]
		return fail(0, "write "+fixed+", or "+a.String()+" for the one address", "range %s in rule %q has host bits set", cidr, s)
	}
	return p, nil
}

// parseLength reads a prefix length: decimal, no sign, no leading zero.
func parseLength(s string) (int, bool) {
	if s == "" || len(s) > 3 || s[0] == '0' && s != "0" {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 8)
	return int(v), err == nil
}

// Match reports whether the rule covers a destination. proto is TCP or UDP.
func (r Rule) Match(a netip.Addr, port uint16, proto Proto) bool {
	return r.Prefix.Contains(a.Unmap().WithZone("")) && r.PortLo <= port && port <= r.PortHi &&
		(r.Proto == AnyProto || r.Proto == proto)
}

// String returns the rule in canonical form, as ParseRule reads it. Whether
// it allows or denies is not part of it.
func (r Rule) String() string {
	s := r.Prefix.String()
	if r.PortLo != 0 || r.PortHi != 65535 {
		if r.Prefix.Addr().Is6() {
			s = "[" + s + "]"
		}
		s += ":" + strconv.Itoa(int(r.PortLo))
		if r.PortHi != r.PortLo {
			s += "-" + strconv.Itoa(int(r.PortHi))
		}
	}
	if r.Proto != AnyProto {
		s += "/" + r.Proto.String()
	}
	return s
}
