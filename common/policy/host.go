// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	defaultPort = 443
	maxName     = 253 // RFC 1035, 2.3.4, in text form without the root's dot
	maxLabel    = 63
	hostSyntax  = "an entry is host[:port] or *.domain[:port]"
)

// ParseHost reads an entry of an allow list: host[:port], or *.domain[:port]
// for the names below a domain. The port is 443 where none is given. The name
// becomes lower case, and one trailing dot is dropped. Every spelling of an IP
// address is refused. The error is an *Error without a file.
//
// An international name has to stand in its ASCII form (xn--..., RFC 5890).
// The tables of IDNA cost a Go program a twentieth of its start-up time,
// which the launcher, who reads no names, would pay as well.
func ParseHost(s string) (HostPort, error) {
	h, err := parseHost(s)
	if err != nil {
		return HostPort{}, err
	}
	return h, nil
}

func parseHost(s string) (HostPort, *Error) {
	h := HostPort{Port: defaultPort}
	name := s
	if i := strings.Index(s, "://"); i >= 0 {
		return h, stringError(s, i, "leave the scheme out: "+hostSyntax, "%q is a URL, not a host name", s)
	}
	switch strings.Count(s, ":") {
	case 0:
	case 1:
		i := strings.IndexByte(s, ':')
		var ok bool
		if h.Port, ok = parsePort(s[i+1:]); !ok {
			return h, stringError(s, i+1, "", "port %q in %q is not a number from 1 to 65535", s[i+1:], s)
		}
		name = s[:i]
	default:
		return h, addressError(s, 0)
	}
	if strings.HasPrefix(name, "[") {
		return h, addressError(s, 0)
	}
	if strings.HasPrefix(name, "*") {
		if !strings.HasPrefix(name, "*.") || len(name) == 2 {
			hint := "write *.domain for the names below a domain"
			if name == "*" {
				hint = "for every host ask for mode egress-any"
			}
			return h, stringError(s, 0, hint, "wildcard in %q does not stand for a label", s)
		}
		h.Wildcard = true
		name = name[2:]
	}
	var err *Error
	h.Host, err = canonicalName(s, len(s)-len(strings.TrimPrefix(s, "*.")), name)
	return h, err
}

// CanonicalName brings a host name into the form that allow lists are compared
// in: ASCII, lower case, without one trailing dot. Names that are none (an
// address in any spelling, a character that host names do not have, labels or
// a name of a wrong length) are refused with an *Error. Names in other
// alphabets are brought into ASCII by the caller before.
func CanonicalName(name string) (string, error) {
	n, err := canonicalName(name, 0, name)
	if err != nil {
		return "", err
	}
	return n, nil
}

// canonicalName works on name, which stands at offset off of the entry s.
func canonicalName(s string, off int, name string) (string, *Error) {
	if name == "" {
		return "", stringError(s, off, hostSyntax, "%q has no host name", s)
	}
	// Before ToLower, which makes ASCII of some other letters (the Kelvin sign).
	for i := range len(name) {
		c := name[i]
		switch {
		case isLetter(c) || isDigit(c) || c == '-' || c == '_' || c == '.':
		case c >= utf8.RuneSelf:
			return "", stringError(s, off+i, "write the name as DNS has it, in its ASCII form (xn--...)", "%q is not an ASCII name", s)
		default:
			return "", stringError(s, off+i, charHint(c), "%q in %q does not belong in a host name", c, s)
		}
	}
	n := strings.TrimSuffix(strings.ToLower(name), ".")
	if len(n) > maxName {
		return "", stringError(s, off+maxName, "", "the name in %q is %d bytes long, the limit is %d", s, len(n), maxName)
	}
	i, last := 0, ""
	for label := range strings.SplitSeq(n, ".") {
		switch {
		case label == "":
			return "", stringError(s, off+i, hostSyntax, "%q has an empty label", s)
		case len(label) > maxLabel:
			return "", stringError(s, off+i+maxLabel, "", "a label of %q is %d bytes long, the limit is %d", s, len(label), maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", stringError(s, off+i, "", "a label of %q starts or ends with a hyphen", s)
		}
		i += len(label) + 1
		last = label
	}
	if isNumber(last) {
		return "", addressError(s, off)
	}
	return n, nil
}

// isNumber reports whether a name that ends in this label is read as an IPv4
// address by inet_aton or a browser (WHATWG URL, "ends in a number"): decimal,
// octal, or hexadecimal, of one to four parts.
func isNumber(label string) bool {
	digits, hex := label, false
	if strings.HasPrefix(label, "0x") {
		digits, hex = label[2:], true
	}
	for i := range len(digits) {
		if c := digits[i]; !isDigit(c) && !(hex && c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func charHint(c byte) string {
	switch c {
	case '*':
		return "a wildcard stands only at the front: *.domain"
	case '/':
		return "leave scheme and path out: " + hostSyntax
	case '@':
		return "leave the user out: " + hostSyntax
	}
	return hostSyntax
}

// Match reports whether the entry covers a name in canonical form and a port.
// A wildcard covers the names below its domain, not the domain itself.
func (h HostPort) Match(name string, port uint16) bool {
	if port != h.Port {
		return false
	}
	if !h.Wildcard {
		return name == h.Host
	}
	sub, ok := strings.CutSuffix(name, h.Host)
	return ok && len(sub) > 1 && sub[len(sub)-1] == '.'
}

// String returns the entry in canonical form, with its port.
func (h HostPort) String() string {
	s := h.Host + ":" + strconv.Itoa(int(h.Port))
	if h.Wildcard {
		return "*." + s
	}
	return s
}

// addressError refuses an address where a name is due.
func addressError(s string, off int) *Error {
	return stringError(s, off, "name the host; rules for addresses belong in an operator's [net]",
		"%q is an IP address, not a host name", s)
}
