// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAddOwn: a starter that sees other addresses leaves the first one's in
// force; a table that is full begins anew.
func TestAddOwn(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	c.put(&Policy{Mode: Any})
	own := func(want int, addrs ...string) {
		t.Helper()
		for _, a := range addrs {
			got := c.act(call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_DGRAM, IP: a, Port: 443})[0]
			if refused := got == int(unix.EPERM); refused != (want != 0) {
				t.Errorf("connect to %s: %v", a, unix.Errno(got))
			}
		}
	}
	add := func(addrs ...netip.Addr) {
		t.Helper()
		if err := j.e.AddOwn(addrs); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "198.41.0.4", "198.41.0.5"
	own(0, first, second)
	add(netip.MustParseAddr(first), netip.Addr{})
	own(1, first)
	own(0, second)
	add(netip.MustParseAddr(second))
	own(1, first, second)

	const size = 4095 // one less than the map holds (net.bpf.c)
	many := make([]netip.Addr, size)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{199, 0, byte(i >> 8), byte(i)})
	}
	add(many...)
	own(1, "199.0.0.0", "199.0.15.254")
	own(0, first, second)
}
