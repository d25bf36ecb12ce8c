// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"ip-options":  onSocket(ipOptions),
		"route-cmsg":  by(sourceRoute),
		"route6-cmsg": by(routingHeader),
	})
}

// A destination may be public and the packet go elsewhere first: no hook sees
// the first hop.

// looseRoute is a loose source route by one hop (RFC 791, 3.1).
func looseRoute(hop [4]byte) []byte {
	return []byte{131, 7, 4, hop[0], hop[1], hop[2], hop[3], 0}
}

// ipOptions asks for a loose source route by way of t.
func ipOptions(fd int, t target) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(looseRoute(t.to.Addr().As4())))
}

// by sends a datagram: its words are a kind of socket, a destination and a
// hop, which the control message names.
func by(message func(hop netip.Addr) []byte) act {
	return func(a []string) (string, error) {
		hop, err := netip.ParseAddr(a[2])
		if err != nil {
			return "", err
		}
		return onSocket(func(fd int, t target) error {
			return unix.Sendmsg(fd, []byte("x"), message(hop), t.sockaddr(), 0)
		})(a[:2])
	}
}

// sourceRoute is the options of one packet (IP_RETOPTS, ip(7)).
func sourceRoute(hop netip.Addr) []byte {
	return control(unix.IPPROTO_IP, unix.IP_RETOPTS, looseRoute(hop.As4()))
}

// routingHeader is a routing header of type 2 (RFC 6275, 6.4; RFC 3542, 7).
func routingHeader(hop netip.Addr) []byte {
	h := make([]byte, 24)
	h[1], h[2], h[3] = 2, 2, 1
	a := hop.As16()
	copy(h[8:], a[:])
	return control(unix.IPPROTO_IPV6, unix.IPV6_RTHDR, h)
}

func control(level, kind int32, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[unix.CmsgLen(0):], data)
	return b
}
