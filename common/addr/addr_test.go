// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package addr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// naive is Lookup as the documentation words it, over the public table and
// netip's own prefix matching.
func naive(a netip.Addr, table []Entry) Entry {
	a = a.WithZone("").Unmap()
	best := Entry{Class: Public, Embeds: NoEmbed}
	for _, e := range table {
		if e.Embeds == 12 && a.Is4() {
			continue // the range of IPv4 itself
		}
		if e.Prefix.Contains(a) && (!best.Prefix.IsValid() || e.Prefix.Bits() > best.Prefix.Bits()) {
			best = e
		}
	}
	if best.Embeds != NoEmbed {
		b := a.As16()
		return naive(netip.AddrFrom4([4]byte(b[best.Embeds:best.Embeds+4])), table)
	}
	return best
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	var last Entry
	for i, e := range Table() {
		if e.Prefix != e.Prefix.Masked() {
			t.Errorf("row %d: %v has host bits", i, e.Prefix)
		}
		bits, key := e.Key()
		id := fmt.Sprint(bits, key)
		if seen[id] {
			t.Errorf("row %d: %v is there twice", i, e.Prefix)
		}
		seen[id] = true
		if e.Name == "" || !strings.HasPrefix(e.Source, "RFC ") {
			t.Errorf("row %d: %v lacks a name or a source: %q, %q", i, e.Prefix, e.Name, e.Source)
		}
		if e.Embeds != NoEmbed && (e.Class != Public || e.Embeds < 0 || e.Embeds > 12) {
			t.Errorf("row %d: %v embeds at %d with class %v", i, e.Prefix, e.Embeds, e.Class)
		}
		if i > 0 {
			lb, lk := last.Key()
			if c := netip.AddrFrom16(lk).Compare(netip.AddrFrom16(key)); c > 0 || c == 0 && lb >= bits {
				t.Errorf("row %d: %v is out of order behind %v", i, e.Prefix, last.Prefix)
			}
		}
		last = e
	}
}

func TestTableGolden(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "IANA %s %s\n", IPv4RegistryDate, IPv6RegistryDate)
	for _, e := range Table() {
		bits, key := e.Key()
		fmt.Fprintf(&b, "%v\t%v\t%d\t%x/%d\t%s\t%s\n", e.Prefix, e.Class, e.Embeds, key, bits, e.Name, e.Source)
	}
	golden := filepath.Join("testdata", "table.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("table differs from %s; run with -update and review:\n%s", golden, got)
	}
}

// TestBoundaries tries the first and the last address of every row and their
// neighbours outside, in every form that means the same.
func TestBoundaries(t *testing.T) {
	table := Table()
	for _, e := range table {
		first, last := e.Prefix.Addr(), lastOf(e.Prefix)
		for _, a := range []netip.Addr{first, last} {
			got := Lookup(a)
			if e.Embeds != NoEmbed {
				if want := naive(a, table); got != want {
					t.Errorf("Lookup(%v) = %+v, want %+v", a, got, want)
				}
				continue
			}
			if !got.Prefix.IsValid() || got.Prefix.Bits() < e.Prefix.Bits() || !e.Prefix.Overlaps(got.Prefix) {
				t.Errorf("Lookup(%v) = %v, want %v or a row inside it", a, got.Prefix, e.Prefix)
			}
		}
		for _, a := range []netip.Addr{first, last, first.Prev(), last.Next()} {
			if !a.IsValid() {
				continue // the edge of the address space
			}
			want := naive(a, table)
			for _, form := range forms(a) {
				if got := Lookup(form); got != want {
					t.Errorf("Lookup(%v) = %+v, want %+v", form, got, want)
				}
				if got := IsPublic(form); got != (want.Class == Public) {
					t.Errorf("IsPublic(%v) = %v, want class %v", form, got, want.Class)
				}
			}
		}
		for _, a := range []netip.Addr{first.Prev(), last.Next()} {
			if a.IsValid() && Lookup(a).Prefix == e.Prefix && e.Embeds == NoEmbed {
				t.Errorf("Lookup(%v) is still row %v", a, e.Prefix)
			}
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// forms returns the spellings of an address that must be judged alike.
func forms(a netip.Addr) []netip.Addr {
	if !a.Is4() {
		return []netip.Addr{a, a.WithZone("eth0")}
	}
	v4 := a.As4()
	embed := func(prefix string, at int) netip.Addr {
		b := netip.MustParseAddr(prefix).As16()
		copy(b[at:], v4[:])
		return netip.AddrFrom16(b)
	}
	mapped := netip.AddrFrom16(a.As16())
	return []netip.Addr{a, mapped, mapped.WithZone("1"), embed("64:ff9b::", 12), embed("2002::", 2), embed("2002::1:2:3", 2)}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		addr  string
		class Class
	}{
		{"0.0.0.0", ThisNetwork},
		{"0.255.255.255", ThisNetwork},
		{"1.0.0.0", Public},
		{"9.255.255.255", Public},
		{"10.0.0.0", Private},
		{"100.63.255.255", Public},
		{"100.64.0.0", SharedCGN},
		{"100.128.0.0", Public},
		{"127.0.0.1", Loopback},
		{"127.255.255.255", Loopback},
		{"128.0.0.0", Public},
		{"169.254.169.254", LinkLocal},
		{"172.15.255.255", Public},
		{"172.16.0.0", Private},
		{"172.32.0.0", Public},
		{"192.0.0.8", IETFProtocol},
		{"192.0.0.9", Public},
		{"192.0.0.10", Public},
		{"192.0.0.11", IETFProtocol},
		{"192.0.0.170", IETFProtocol},
		{"192.0.2.1", Documentation},
		{"192.88.99.1", IETFProtocol},
		{"192.168.1.1", Private},
		{"198.17.255.255", Public},
		{"198.19.255.255", Benchmarking},
		{"198.51.100.7", Documentation},
		{"203.0.113.7", Documentation},
		{"224.0.0.1", Multicast},
		{"239.255.255.255", Multicast},
		{"240.0.0.1", Reserved},
		{"255.255.255.254", Reserved},
		{"255.255.255.255", Broadcast},
		{"8.8.8.8", Public},
		{"::", Unspecified},
		{"::1", Loopback},
		{"::2", V4Compatible},
		{"::127.0.0.1", V4Compatible},
		{"::ffff:127.0.0.1", Loopback},
		{"::ffff:8.8.8.8", Public},
		{"::ffff:0:8.8.8.8", Reserved},
		{"64:ff9b::7f00:1", Loopback},
		{"64:ff9b::a9fe:a9fe", LinkLocal},
		{"64:ff9b::808:808", Public},
		{"64:ff9b:1::808:808", Translation},
		{"100::1", Discard},
		{"100:0:0:1::1", Discard},
		{"2001::1", IETFProtocol},
		{"2001:1::1", Public},
		{"2001:1::2", Public},
		{"2001:1::3", Public},
		{"2001:1::4", IETFProtocol},
		{"2001:2::1", Benchmarking},
		{"2001:3::1", Public},
		{"2001:4:112::1", Public},
		{"2001:4:113::1", IETFProtocol},
		{"2001:10::1", IETFProtocol},
		{"2001:20::1", Public},
		{"2001:30::1", Public},
		{"2001:40::1", IETFProtocol},
		{"2001:1ff:ffff::1", IETFProtocol},
		{"2001:200::1", Public},
		{"2001:db8::1", Documentation},
		{"2002:7f00:1::", Loopback},
		{"2002:c0a8:101::1", Private},
		{"2002:808:808::1", Public},
		{"2606:4700::1111", Public},
		{"3ffe:ffff::1", Public},
		{"3fff::1", Documentation},
		{"3fff:1000::1", Public},
		{"4000::1", Reserved},
		{"5f00::1", SegmentRouting},
		{"fbff::1", Reserved},
		{"fc00::1", UniqueLocal},
		{"fd12:3456::1", UniqueLocal},
		{"fe00::1", Reserved},
		{"fe80::1%eth0", LinkLocal},
		{"fec0::1", SiteLocal},
		{"ff02::1", Multicast},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast},
	}
	for _, tt := range tests {
		if got := Lookup(netip.MustParseAddr(tt.addr)); got.Class != tt.class || got.Embeds != NoEmbed {
			t.Errorf("Lookup(%s) = %v, embeds %d, want %v", tt.addr, got.Class, got.Embeds, tt.class)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("the invalid address is public")
	}
	if e := Lookup(netip.MustParseAddr("8.8.8.8")); e.Prefix.IsValid() {
		t.Errorf("an address without a row has prefix %v", e.Prefix)
	}
}

func TestKey(t *testing.T) {
	e := Entry{Prefix: netip.MustParsePrefix("10.0.0.0/8")}
	bits, key := e.Key()
	if want := netip.MustParseAddr("::ffff:10.0.0.0").As16(); bits != 104 || key != want {
		t.Errorf("Key = %d, %x, want 104, %x", bits, key, want)
	}
	e.Prefix = netip.MustParsePrefix("2001:db8::/32")
	bits, key = e.Key()
	if want := netip.MustParseAddr("2001:db8::").As16(); bits != 32 || key != want {
		t.Errorf("Key = %d, %x, want 32, %x", bits, key, want)
	}
}

// TestKeysDecideAlike looks addresses up as a longest-prefix-match map over
// Key does, judging an embedded address once, and compares.
func TestKeysDecideAlike(t *testing.T) {
	table := Table()
	lpm := func(k [16]byte) (Class, int8) {
		class, embeds, best := Public, int8(NoEmbed), -1
		for _, e := range table {
			bits, key := e.Key()
			if bits > best && netip.PrefixFrom(netip.AddrFrom16(k), bits).Masked() == netip.PrefixFrom(netip.AddrFrom16(key), bits) {
				class, embeds, best = e.Class, e.Embeds, bits
			}
		}
		return class, embeds
	}
	check := func(a netip.Addr) {
		k := a.As16()
		class, embeds := lpm(k)
		if embeds != NoEmbed {
			class, _ = lpm(netip.AddrFrom4([4]byte(k[embeds : embeds+4])).As16())
		}
		if got := Lookup(a).Class; got != class {
			t.Fatalf("Lookup(%v) = %v, by its keys %v", a, got, class)
		}
	}
	for _, e := range table {
		for _, a := range []netip.Addr{e.Prefix.Addr(), lastOf(e.Prefix), lastOf(e.Prefix).Next()} {
			if a.IsValid() {
				for _, f := range forms(a) {
					check(f)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		check(randomAddr(r, table))
	}
}

func TestDifferential(t *testing.T) {
	table := Table()
	r := rand.New(rand.NewPCG(3, 4))
	for range 50000 {
		a := randomAddr(r, table)
		if got, want := Lookup(a), naive(a, table); got != want {
			t.Fatalf("Lookup(%v) = %+v, want %+v", a, got, want)
		}
	}
}

// randomAddr returns an address anywhere, or inside or next to a row.
func randomAddr(r *rand.Rand, table []Entry) netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	a := netip.AddrFrom16(b)
	switch r.IntN(4) {
	case 0:
		return netip.AddrFrom4([4]byte(b[:4]))
	case 1:
		return a
	default:
		_, k := table[r.IntN(len(table))].Key()
		n := r.IntN(129)
		for i := n; i < 128; i++ {
			m := byte(0x80 >> (i % 8))
			k[i/8] = k[i/8]&^m | b[i/8]&m
		}
		return netip.AddrFrom16(k)
	}
}

func TestClassString(t *testing.T) {
	seen := map[string]bool{}
	for c := range numClasses {
		s := c.String()
		if s == "" || s == "unknown" || seen[s] {
			t.Errorf("class %d has no name of its own: %q", c, s)
		}
		seen[s] = true
	}
	if got := numClasses.String(); got != "unknown" {
		t.Errorf("class %d = %q", numClasses, got)
	}
}

func FuzzLookup(f *testing.F) {
	table := Table()
	for _, e := range table {
		f.Add(e.Prefix.Addr().AsSlice())
		f.Add(lastOf(e.Prefix).AsSlice())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		got := Lookup(a)
		if want := naive(a, table); got != want {
			t.Fatalf("Lookup(%v) = %+v, want %+v", a, got, want)
		}
		if a.Is4() && got != Lookup(netip.AddrFrom16(a.As16())) {
			t.Fatalf("%v and its mapped form differ", a)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	a := netip.MustParseAddr("93.184.216.34")
	for b.Loop() {
		Lookup(a)
	}
}
