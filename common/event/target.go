// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// Target writes a network destination as address:port/protocol, an IPv6
// address in brackets: "192.0.2.1:443/tcp", "[2001:db8::1]:53/udp". An
// IPv4-mapped address is written as the IPv4 address that it means.
func Target(ap netip.AddrPort, protocol int) string {
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	return ap.String() + "/" + ProtocolName(protocol)
}

// ParseTarget reads what Target writes. It answers false for every other kind
// of target.
func ParseTarget(s string) (ap netip.AddrPort, protocol int, ok bool) {
	addr, name, found := strings.Cut(s, "/")
	if !found {
		return ap, 0, false
	}
	ap, err := netip.ParseAddrPort(addr)
	protocol, known := protocolNumber(name)
	if err != nil || !known || Target(ap, protocol) != s {
		return netip.AddrPort{}, 0, false
	}
	return ap, protocol, true
}

// protocols are the names of IANA's protocol numbers that a socket can ask
// for; 262 is Linux's own number for Multipath TCP.
var protocols = [...]struct {
	number int
	name   string
}{
	{0, "ip"}, {1, "icmp"}, {6, "tcp"}, {17, "udp"}, {33, "dccp"}, {58, "icmpv6"},
	{132, "sctp"}, {136, "udplite"}, {255, "raw"}, {262, "mptcp"},
}

// ProtocolName is the lower-case name of an IP protocol number, or the number.
func ProtocolName(number int) string {
	for _, p := range protocols {
		if p.number == number {
			return p.name
		}
	}
	return strconv.Itoa(number)
}

func protocolNumber(name string) (int, bool) {
	for _, p := range protocols {
		if p.name == name {
			return p.number, true
		}
	}
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0
}

// UnixTarget writes the path of a unix socket address as programs name it. An
// abstract name (first byte NUL, unix(7)) begins with "@" and shows its other
// NULs as "@" too; a path that itself begins with "@" is written "./@…". A
// path ends at its first NUL. An unnamed address is "@" alone.
func UnixTarget(path []byte) string {
	if len(path) == 0 {
		return "@"
	}
	if path[0] == 0 {
		return string(bytes.ReplaceAll(path, []byte{0}, []byte{'@'}))
	}
	if i := bytes.IndexByte(path, 0); i >= 0 {
		path = path[:i]
	}
	if path[0] == '@' {
		return "./" + string(path)
	}
	return string(path)
}

// LinuxErrno is the symbolic name of the Linux error numbers that an enforcer
// answers with (asm-generic/errno.h), "errno N" for the others, "" for 0.
func LinuxErrno(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "EPERM"
	case 2:
		return "ENOENT"
	case 13:
		return "EACCES"
	case 18:
		return "EXDEV"
	case 22:
		return "EINVAL"
	case 30:
		return "EROFS"
	case 38:
		return "ENOSYS"
	case 93:
		return "EPROTONOSUPPORT"
	case 94:
		return "ESOCKTNOSUPPORT"
	case 97:
		return "EAFNOSUPPORT"
	case 101:
		return "ENETUNREACH"
	case 111:
		return "ECONNREFUSED"
	}
	return "errno " + strconv.Itoa(n)
}
