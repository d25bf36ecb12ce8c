// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

func TestNetnsCookie(t *testing.T) {
	a, err := NetnsCookie()
	if errors.Is(err, unix.ENOPROTOOPT) {
		if Remedy(err) == "" {
			t.Error("no remedy")
		}
		t.Skip("before Linux 5.14: ", err)
	}
	if err != nil || a == 0 {
		t.Fatalf("cookie %d, %v", a, err)
	}
	if b, err := NetnsCookie(); err != nil || b != a {
		t.Errorf("cookie %d, then %d, %v", a, b, err)
	}
}

func publicTCP(ip string) call {
	return call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: ip, Port: 443}
}

// listed returns the namespaces that have a mark, and how many entries each
// namespace has in a map.
func (j *jail) listed(name string) (marks map[uint64]bool, entries map[uint64]int) {
	j.t.Helper()
	fd, err := j.e.fd(name)
	if err != nil {
		j.t.Fatal(err)
	}
	keys, err := mapKeys[flat.NsAddr](fd)
	if err != nil {
		j.t.Fatal(err)
	}
	marks, entries = map[uint64]bool{}, map[uint64]int{}
	for _, k := range keys {
		if k.Addr == [16]byte{} {
			marks[k.Netns] = true
		} else {
			entries[k.Netns]++
		}
	}
	return marks, entries
}

// TestNamespacesApart: what is written for one namespace changes nothing for
// another, and one that is not listed opens nothing.
func TestNamespacesApart(t *testing.T) {
	j := newJail(t)
	a, b := j.cell("prisoner"), j.cell("prisoner")
	one, two, res := netip.MustParseAddr("9.9.9.1"), netip.MustParseAddr("9.9.9.2"), netip.MustParseAddr("10.0.0.53")
	dns := call{Op: "sendto", Family: unix.AF_INET, Type: unix.SOCK_DGRAM, IP: "10.0.0.53", Port: 53}
	dial := []call{publicTCP("9.9.9.1"), publicTCP("9.9.9.2"), publicTCP("9.9.9.3"), dns}
	check := func(when string, c *cell, passes ...bool) {
		t.Helper()
		for i, e := range c.act(dial...) {
			if (e != perm) != passes[i] {
				t.Errorf("%s: %s: %v, want passing %t", when, dial[i].IP, unix.Errno(e), passes[i])
			}
		}
	}
	ra := a.ring(1 << 16)
	for _, c := range []*cell{a, b} {
		c.netns()
		c.put(&Policy{Mode: Any})
	}
	check("nothing listed", a, false, false, false, false)
	if ev := events(t, ra); len(ev) != 4 || ev[0].Rule != uint32(flat.RuleNotListed) {
		t.Errorf("events %+v", ev)
	}
	a.addresses(&Env{Own: []netip.Addr{one}, Resolvers: []netip.Addr{res}})
	check("a listed, in a", a, false, true, true, true)
	check("a listed, in b", b, false, false, false, false)
	b.addresses(&Env{Own: []netip.Addr{two}})
	check("both listed, in a", a, false, true, true, true)
	check("both listed, in b", b, true, false, true, false)
	b.addresses(&Env{})
	check("b without addresses, in a", a, false, true, true, true)
	check("b without addresses, in b", b, true, true, true, false)
	// An allow rule of a namespace that is not listed opens what it names only.
	c := j.cell("prisoner")
	c.put(&Policy{Rules: []Rule{{Prefix: netip.MustParsePrefix("9.0.0.0/8")}, {Prefix: netip.MustParsePrefix("9.9.9.2/32")}}})
	check("rules, not listed", c, false, true, false, false)
	if err := j.e.SyncOwn(0, nil); !errors.Is(err, unix.EINVAL) {
		t.Errorf("cookie 0: %v", err)
	}
}

// named puts a policy that names a namespace and lists it.
func (c *cell) named(e *Enforcer, netns uint64, own ...netip.Addr) error {
	im, err := Compile(&Policy{Mode: Any})
	if err != nil {
		return err
	}
	if err := e.Put(c.id, im.InNetns(netns)); err != nil {
		return err
	}
	return e.SyncOwn(netns, own)
}

// TestNamespacesGo: a namespace stays listed while a policy names it, and its
// entries go when the next one comes, or by a sweep.
func TestNamespacesGo(t *testing.T) {
	j := newJail(t)
	addr := netip.MustParseAddr("9.9.9.1")
	a, a2, b := j.cell(""), j.cell(""), j.cell("")
	for _, c := range []struct {
		*cell
		netns uint64
	}{{a, 1001}, {a2, 1001}, {b, 1002}} {
		if err := c.named(j.e, c.netns, addr); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.e.SyncResolvers(1001, []netip.Addr{addr}); err != nil {
		t.Fatal(err)
	}
	want := func(when string, netns ...uint64) {
		t.Helper()
		marks, entries := j.listed("own")
		_, resolvers := j.listed("resolvers")
		if len(marks) != len(netns) || len(entries) != len(netns) {
			t.Errorf("%s: listed %v with %v, want %v", when, marks, entries, netns)
		}
		for _, n := range netns {
			if !marks[n] || entries[n] != 1 {
				t.Errorf("%s: %d is not listed", when, n)
			}
		}
		if keep := slices.Contains(netns, 1001); (resolvers[1001] == 1) != keep {
			t.Errorf("%s: resolvers %v", when, resolvers)
		}
	}
	want("three sandboxes", 1001, 1002)
	remove := func(c *cell) {
		t.Helper()
		if err := j.e.Remove(c.id); err != nil {
			t.Fatal(err)
		}
	}
	remove(a)
	if err := b.named(j.e, 1003, addr); err != nil { // as if it had moved
		t.Fatal(err)
	}
	want("one of two gone, another moved", 1001, 1003)
	remove(a2)
	want("nobody came since", 1001, 1003)
	if err := a.named(j.e, 1004, addr); err != nil {
		t.Fatal(err)
	}
	want("the next namespace came", 1003, 1004)
	if n, err := j.e.Sweep(func(id uint64) bool { return id == a.id }); err != nil || n != 1 {
		t.Errorf("swept %d, %v", n, err)
	}
	want("swept", 1004)
}

// TestAddressesFull: garbage makes room, and where there is none the namespace
// is not listed.
func TestAddressesFull(t *testing.T) {
	j := newJail(t)
	c, live := j.cell(""), j.cell("")
	fd, err := j.e.fd("own")
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		one := uint32(1)
		for i := uint32(1); ; i++ {
			k := flat.NsAddr{Netns: 7, Addr: netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}).As16()}
			if err := mapUpdate(fd, &k, &one, 0); isFull(err) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	addrs := []netip.Addr{netip.MustParseAddr("9.9.9.1"), netip.MustParseAddr("9.9.9.2")}
	// Listed before, so that only the full map makes it look for garbage.
	if err := c.named(j.e, 8, addrs[0]); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := c.named(j.e, 8, addrs...); err != nil {
		t.Fatalf("with garbage: %v", err)
	}
	marks, entries := j.listed("own")
	if !marks[8] || entries[8] != 2 || entries[7] != 0 {
		t.Errorf("listed %v with %v", marks, entries)
	}
	if err := live.named(j.e, 7, addrs[0]); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := c.named(j.e, 8, append(addrs, netip.MustParseAddr("9.9.9.3"))...); !isFull(errors.Unwrap(err)) {
		t.Errorf("with a sandbox in each namespace: %v", err)
	}
	if marks, _ := j.listed("own"); marks[8] || !marks[7] {
		t.Errorf("listed %v: a namespace with an address missing must not be", marks)
	}
}

// TestNamespacesAtOnce has many starters list namespaces of their own at the
// same time: none loses its own to another's sweep.
func TestNamespacesAtOnce(t *testing.T) {
	j := newJail(t)
	const starters, rounds = 8, 25
	var cells [starters]*cell
	for i := range cells {
		cells[i] = j.cell("")
	}
	var wg sync.WaitGroup
	for i, c := range cells {
		wg.Go(func() {
			e, err := Open(j.options())
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			own, err := e.fd("own")
			if err != nil {
				t.Error(err)
				return
			}
			for r := range rounds {
				netns := uint64(1 + i*rounds + r)
				if err := c.named(e, netns, netip.MustParseAddr("9.9.9.9")); err != nil {
					t.Error(err)
					return
				}
				var v uint32
				if err := mapLookup(own, &flat.NsAddr{Netns: netns}, &v); err != nil {
					t.Errorf("namespace %d is not listed: %v", netns, err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := j.e.Sweep(func(uint64) bool { return true }); err != nil {
		t.Error(err)
	}
	if marks, _ := j.listed("own"); len(marks) != starters {
		t.Errorf("%d namespaces listed, want one for each of %d sandboxes", len(marks), starters)
	}
}
