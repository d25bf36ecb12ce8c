// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package addr

// row is an [Entry] as the table is written: plain numbers, so that the
// linker lays the array out and no code runs at start.
type row struct {
	hi, lo uint64 // the address; IPv4 in its IPv4-mapped form
	bits   uint8  // the prefix length, of 128
	class  Class
	embeds int8
	name   string
	source string
}

const (
	none = NoEmbed
	v4   = 0xffff << 32 // ::ffff:0:0/96, under which IPv4 lies
	m    = 96           // the bits before an IPv4 address there
)

// rows is ordered by address, of two equal addresses the shorter prefix first.
var rows = [...]row{
	// Only 2000::/3 is global unicast space. What is outside it and has no row
	// of its own is reserved; ::ffff:0:a.b.c.d/96 (RFC 2765) falls here.
	{0, 0, 3, Reserved, none, "Reserved by IETF", "RFC 4291, 2.4"},
	{0, 0, 96, V4Compatible, none, "IPv4-Compatible Address", "RFC 4291, 2.5.5.1"},
	{0, 0, 128, Unspecified, none, "Unspecified Address", "RFC 4291"},
	{0, 1, 128, Loopback, none, "Loopback Address", "RFC 4291"},

	// IPv4, plain and IPv4-mapped: one and the same range.
	{0, v4, m, Public, 12, "IPv4-mapped Address", "RFC 4291"},
	{0, v4, m + 8, ThisNetwork, none, "This network", "RFC 791, 3.2"},
	{0, v4 | 0x0a000000, m + 8, Private, none, "Private-Use", "RFC 1918"},
	{0, v4 | 0x64400000, m + 10, SharedCGN, none, "Shared Address Space", "RFC 6598"},
	{0, v4 | 0x7f000000, m + 8, Loopback, none, "Loopback", "RFC 1122, 3.2.1.3"},
	{0, v4 | 0xa9fe0000, m + 16, LinkLocal, none, "Link Local", "RFC 3927"},
	{0, v4 | 0xac100000, m + 12, Private, none, "Private-Use", "RFC 1918"},
	{0, v4 | 0xc0000000, m + 24, IETFProtocol, none, "IETF Protocol Assignments", "RFC 6890, 2.1"},
	{0, v4 | 0xc0000009, m + 32, Public, none, "Port Control Protocol Anycast", "RFC 7723"},
	{0, v4 | 0xc000000a, m + 32, Public, none, "Traversal Using Relays around NAT Anycast", "RFC 8155"},
	{0, v4 | 0xc0000200, m + 24, Documentation, none, "Documentation (TEST-NET-1)", "RFC 5737"},
	// The registry no longer calls this range reachable (deprecated 6to4
	// relays), and 192.88.99.2 in it (6a44) not beyond its provider.
	{0, v4 | 0xc0586300, m + 24, IETFProtocol, none, "Deprecated (6to4 Relay Anycast)", "RFC 7526"},
	{0, v4 | 0xc0a80000, m + 16, Private, none, "Private-Use", "RFC 1918"},
	{0, v4 | 0xc6120000, m + 15, Benchmarking, none, "Benchmarking", "RFC 2544"},
	{0, v4 | 0xc6336400, m + 24, Documentation, none, "Documentation (TEST-NET-2)", "RFC 5737"},
	{0, v4 | 0xcb007100, m + 24, Documentation, none, "Documentation (TEST-NET-3)", "RFC 5737"},
	{0, v4 | 0xe0000000, m + 4, Multicast, none, "Multicast", "RFC 5771"},
	{0, v4 | 0xf0000000, m + 4, Reserved, none, "Reserved", "RFC 1112, 4"},
	{0, v4 | 0xffffffff, m + 32, Broadcast, none, "Limited Broadcast", "RFC 919, 7"},

	{0x0064ff9b00000000, 0, 96, Public, 12, "IPv4-IPv6 Translation (NAT64)", "RFC 6052"},
	{0x0064ff9b00010000, 0, 48, Translation, none, "Local-Use IPv4/IPv6 Translation", "RFC 8215"},
	{0x0100000000000000, 0, 64, Discard, none, "Discard-Only Address Block", "RFC 6666"},
	{0x0100000000000001, 0, 64, Discard, none, "Dummy IPv6 Prefix", "RFC 9780"},

	// 2001::/23 and what the registry calls globally reachable inside it.
	{0x2001000000000000, 0, 23, IETFProtocol, none, "IETF Protocol Assignments", "RFC 2928"},
	{0x2001000000000000, 0, 32, IETFProtocol, none, "TEREDO", "RFC 4380"},
	{0x2001000100000000, 1, 128, Public, none, "Port Control Protocol Anycast", "RFC 7723"},
	{0x2001000100000000, 2, 128, Public, none, "Traversal Using Relays around NAT Anycast", "RFC 8155"},
	{0x2001000100000000, 3, 128, Public, none, "DNS-SD Service Registration Protocol Anycast", "RFC 9665"},
	{0x2001000200000000, 0, 48, Benchmarking, none, "Benchmarking", "RFC 5180"},
	{0x2001000300000000, 0, 32, Public, none, "AMT", "RFC 7450"},
	{0x2001000401120000, 0, 48, Public, none, "AS112-v6", "RFC 7535"},
	{0x2001001000000000, 0, 28, IETFProtocol, none, "Deprecated (previously ORCHID)", "RFC 4843"},
	{0x2001002000000000, 0, 28, Public, none, "ORCHIDv2", "RFC 7343"},
	{0x2001003000000000, 0, 28, Public, none, "Drone Remote ID Protocol Entity Tags", "RFC 9374"},

	{0x20010db800000000, 0, 32, Documentation, none, "Documentation", "RFC 3849"},
	{0x2002000000000000, 0, 16, Public, 2, "6to4", "RFC 3056"},
	{0x3fff000000000000, 0, 20, Documentation, none, "Documentation", "RFC 9637"},
	{0x4000000000000000, 0, 2, Reserved, none, "Reserved by IETF", "RFC 4291, 2.4"},
	{0x5f00000000000000, 0, 16, SegmentRouting, none, "Segment Routing (SRv6) SIDs", "RFC 9602"},
	{0x8000000000000000, 0, 1, Reserved, none, "Reserved by IETF", "RFC 4291, 2.4"},
	{0xfc00000000000000, 0, 7, UniqueLocal, none, "Unique-Local", "RFC 4193"},
	{0xfe80000000000000, 0, 10, LinkLocal, none, "Link-Local Unicast", "RFC 4291"},
	{0xfec0000000000000, 0, 10, SiteLocal, none, "Deprecated (previously Site-Local)", "RFC 3879"},
	{0xff00000000000000, 0, 8, Multicast, none, "Multicast", "RFC 4291, 2.7"},
}
