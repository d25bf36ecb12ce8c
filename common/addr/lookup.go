// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package addr

import (
	"encoding/binary"
	"net/netip"
)

// Table returns a copy of the whole table, ordered by address, of two equal
// addresses the shorter prefix first. It holds the public exceptions, too, as
// rows of class Public: the longest prefix decides.
func Table() []Entry {
	t := make([]Entry, len(rows))
	for i := range rows {
		t[i] = rows[i].entry()
	}
	return t
}

// Lookup returns the row that decides on a: that of the longest prefix, and,
// where that row embeds an IPv4 address (IPv4-mapped, NAT64, 6to4), the row
// of the embedded address. A zone is ignored. An address that no row covers
// is answered by an Entry of class Public without a prefix; the invalid zero
// Addr by one of class Reserved.
func Lookup(a netip.Addr) Entry {
	if !a.IsValid() {
		return Entry{Class: Reserved, Embeds: NoEmbed, Name: "invalid address"}
	}
	b := a.As16()
	r := match(b)
	if r != nil && r.embeds >= 0 {
		// An embedded address is IPv4, which embeds nothing: one step ends it.
		i := r.embeds
		r = match(netip.AddrFrom4([4]byte(b[i : i+4])).As16())
	}
	if r == nil || r.embeds >= 0 {
		return Entry{Class: Public, Embeds: NoEmbed}
	}
	return r.entry()
}

// match returns the row with the longest prefix over b, or nil. The table is
// short enough that walking it costs less than a tree would.
func match(b [16]byte) *row {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var best *row
	for i := range rows {
		r := &rows[i]
		mhi, mlo := mask(r.bits)
		if (hi^r.hi)&mhi|(lo^r.lo)&mlo == 0 && (best == nil || r.bits > best.bits) {
			best = r
		}
	}
	return best
}

// mask returns a 128-bit mask of the given number of leading ones.
func mask(bits uint8) (hi, lo uint64) {
	if bits <= 64 {
		return ^(^uint64(0) >> bits), 0
	}
	return ^uint64(0), ^(^uint64(0) >> (bits - 64))
}

func (r *row) entry() Entry {
	return Entry{Prefix: r.prefix(), Class: r.class, Embeds: r.embeds, Name: r.name, Source: r.source}
}

// prefix returns rows under ::ffff:0:0/96 as IPv4 prefixes; the row of that
// range itself stays IPv6.
func (r *row) prefix() netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.hi)
	binary.BigEndian.PutUint64(b[8:], r.lo)
	a, bits := netip.AddrFrom16(b), int(r.bits)
	if a.Is4In6() && bits > m {
		a, bits = a.Unmap(), bits-m
	}
	return netip.PrefixFrom(a, bits)
}
