// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Address families (linux/socket.h), socket types (linux/net.h; the same on
// both architectures) and protocols (linux/in.h).
const (
	afUnix       = 1
	afInet       = 2
	afInet6      = 10
	sockStream   = 1
	sockDgram    = 2
	sockSeqpkt   = 5
	sockPacket   = 10
	protoTCP     = 6
	protoUDP     = 17
	protoMPTCP   = 262
	msgFastOpen  = 0x20000000
	levelIP      = 0
	levelTCP     = 6
	levelUDP     = 17
	levelIPv6    = 41
	familyReason = "families that no other layer sees"
)

// socketRules decide which sockets can be made. Only inet sockets meet a
// cgroup program on their way; for every other family this is the one place.
func socketRules(b *builder, o Options) {
	b.refuse("a job never listens", "listen")

	inet := in(0, low32, afInet, afInet6)
	strict := o.InetStreamOnly || o.StrictTypes
	if o.Unix {
		b.rule(Allow, "decided by path", "socket", in(0, low32, afUnix))
	}
	switch {
	case !o.Inet:
	case !strict:
		// The kernel turns this one into AF_PACKET before any hook for inet.
		b.refuseIf("an old name of AF_PACKET", "socket",
			in(0, low32, afInet), in(1, sockType, sockPacket))
		b.rule(Allow, "decided by the cgroup program", "socket", inet)
	default:
		b.rule(Errno(EPROTONOSUPPORT), "multipath TCP passes rules on TCP; programs fall back", "socket",
			inet, in(2, low32, protoMPTCP))
		b.rule(Allow, "TCP", "socket", inet, in(1, sockType, sockStream), in(2, low32, 0, protoTCP))
		if !o.InetStreamOnly {
			b.rule(Allow, "UDP", "socket", inet, in(1, sockType, sockDgram), in(2, low32, 0, protoUDP))
		}
	}
	b.refuse(familyReason, "socket")

	b.refuseIf(familyReason, "socketpair", notIn(0, low32, afUnix))
	if !o.Unix {
		// An end of a datagram pair can be connected anew, and sends to any path.
		b.refuseIf("a datagram pair reaches other sockets", "socketpair",
			notIn(1, sockType, sockStream, sockSeqpkt))
	}
	if o.Inet && strict {
		const reason = "a connection that no rule on connect sees; programs fall back"
		b.rule(Errno(EOPNOTSUPP), reason, "sendto", anyBit(3, msgFastOpen))
		b.rule(Errno(EOPNOTSUPP), reason, "sendmsg", anyBit(2, msgFastOpen))
		b.rule(Errno(EOPNOTSUPP), reason, "sendmmsg", anyBit(3, msgFastOpen))
	}
}

// socketOptionRules refuse the options that emit packets, send them somewhere
// else than the address that was decided on, or put another protocol below a
// socket. They hold whatever the options: a socket may have come from outside.
func socketOptionRules(b *builder) {
	opt := func(reason string, level uint64, options ...uint64) {
		b.refuseIf(reason, "setsockopt", in(1, low32, level), in(2, low32, options...))
	}
	// By level, so that a call is compared with each level once. At the level of
	// IP: IP_OPTIONS carries a source route, and the packet goes to its first hop,
	// which connect's hook never saw (kernels that were not hardened take it
	// without CAP_NET_RAW); IP_ADD_MEMBERSHIP, IP_ADD_SOURCE_MEMBERSHIP,
	// MCAST_JOIN_GROUP and MCAST_JOIN_SOURCE_GROUP send reports; SET_REPLACE and
	// SET_ADD_COUNTERS of iptables, arptables and ebtables.
	opt("source routes, joining groups, packet filters", levelIP,
		4, 35, 39, 42, 46, 64, 65, 96, 97, 128, 129)
	// IPV6_ADDRFORM makes an IPv4 socket; IPV6_2292PKTOPTIONS and
	// IPV6_RTHDR carry a routing header; IPV6_JOIN_GROUP, IPV6_JOIN_ANYCAST and
	// MCAST_ as above; ip6tables.
	opt("routing headers, joining groups, packet filters, a change of family", levelIPv6,
		1, 6, 20, 27, 42, 46, 57, 64, 65)
	// TCP_REPAIR, TCP_ULP; UDP_ENCAP.
	opt("another protocol or a forged state below TCP", levelTCP, 19, 31)
	opt("another protocol below UDP", levelUDP, 100)
}
