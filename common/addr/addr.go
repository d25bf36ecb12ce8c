// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package addr holds the one table of IP addresses that are not public, and
// the look-up over it. The egress proxy asks [Lookup]; the kernel's programs
// are given [Table] as a longest-prefix-match map whose keys [Entry.Key]
// makes. Both therefore judge an address alike.
//
// The rows come from IANA's IPv4 and IPv6 special-purpose address registries
// (RFC 6890, RFC 8190), from the multicast ranges (RFC 5771, RFC 4291), and
// from the few forms that older RFCs deprecated and that a host may still
// route: each row names its source.
package addr

import "net/netip"

// IPv4RegistryDate and IPv6RegistryDate are the "last updated" dates of the
// editions of the IANA registries that the table was compared with.
const (
	IPv4RegistryDate = "2020-09-04"
	IPv6RegistryDate = "2025-10-09"
)

// Class says what kind of address a prefix holds. The zero value is Public.
type Class uint8

// The classes. Their numbers are shared with programs in the kernel and never
// change; a new class goes to the end.
const (
	Public         Class = iota // globally reachable
	Unspecified                 // :: (RFC 4291); 0.0.0.0 is ThisNetwork
	ThisNetwork                 // 0.0.0.0/8, "this host on this network" (RFC 791)
	Private                     // private use (RFC 1918)
	SharedCGN                   // shared address space of carriers' NATs (RFC 6598)
	Loopback                    // the host itself (RFC 1122, RFC 4291)
	LinkLocal                   // one link (RFC 3927, RFC 4291)
	IETFProtocol                // protocol assignments, none of them a public host
	Documentation               // examples in documents (RFC 5737, RFC 3849, RFC 9637)
	Benchmarking                // laboratories (RFC 2544, RFC 5180)
	Multicast                   // groups, not hosts (RFC 5771, RFC 4291)
	Reserved                    // reserved by the IETF for later (RFC 1112)
	Broadcast                   // limited broadcast (RFC 919)
	V4Compatible                // deprecated IPv4-compatible IPv6 (RFC 4291, 2.5.5.1)
	UniqueLocal                 // IPv6's private use (RFC 4193)
	SiteLocal                   // deprecated IPv6 site-local (RFC 3879)
	Discard                     // discard-only (RFC 6666)
	SegmentRouting              // segment routing SIDs (RFC 9602)
	Translation                 // IPv4/IPv6 translation within one network (RFC 8215)

	numClasses
)

var classNames = [numClasses]string{
	Public:         "public",
	Unspecified:    "unspecified",
	ThisNetwork:    "this-network",
	Private:        "private",
	SharedCGN:      "shared-cgn",
	Loopback:       "loopback",
	LinkLocal:      "link-local",
	IETFProtocol:   "ietf-protocol",
	Documentation:  "documentation",
	Benchmarking:   "benchmarking",
	Multicast:      "multicast",
	Reserved:       "reserved",
	Broadcast:      "broadcast",
	V4Compatible:   "v4-compatible",
	UniqueLocal:    "unique-local",
	SiteLocal:      "site-local",
	Discard:        "discard",
	SegmentRouting: "segment-routing",
	Translation:    "translation",
}

// String returns the class's name in lower case, as events print it.
func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return "unknown"
}

// NoEmbed is Entry.Embeds of a row that holds no IPv4 address to judge.
const NoEmbed = -1

// Entry is one row of the table.
type Entry struct {
	// Prefix is the range; its host bits are zero.
	Prefix netip.Prefix
	// Class is the verdict on the range. A row with an embedded IPv4 address
	// is Public itself: the embedded address decides.
	Class Class
	// Embeds is the byte offset within the 16-byte address of an IPv4 address
	// that is to be judged instead, once, or NoEmbed.
	Embeds int8
	// Name is the registry's name of the range.
	Name string
	// Source is the document that defines it.
	Source string
}

// Key returns the row's key in a longest-prefix-match map over 16-byte
// addresses: the number of leading bits that count, and the address. An IPv4
// prefix a.b.c.d/n becomes ::ffff:a.b.c.d/(96+n), so that an IPv4 address and
// its IPv4-mapped form are one key.
func (e Entry) Key() (bits int, addr [16]byte) {
	bits = e.Prefix.Bits()
	if e.Prefix.Addr().Is4() {
		bits += 96
	}
	return bits, e.Prefix.Addr().As16()
}

// IsPublic reports whether a connection to a may leave for the public
// Internet. The invalid zero Addr is not public.
func IsPublic(a netip.Addr) bool {
	return Lookup(a).Class == Public
}
