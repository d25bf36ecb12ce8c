// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"socket": func(a []string) (string, error) {
			fd, err := open(a[0])
			if err == nil {
				unix.Close(fd)
			}
			return "", err
		},
		"connect":         onSocket(connect),
		"connect-block":   onSocket(connectBlocking),
		"connect-unspec":  onSocket(connectUnspec),
		"sendto":          onSocket(sendto),
		"sendmsg":         onSocket(sendmsg),
		"sendmmsg":        onSocket(sendmmsg),
		"sendto-unspec":   onSocket(sendtoUnspec),
		"fastopen":        onSocket(fastopen),
		"fastopen-option": onSocket(fastopenOption),
		"connect-send":    onSocket(connectSend),
		"broadcast":       onSocket(broadcast),
		"multicast-join":  onSocket(multicastJoin),
		"bind":            onSocket(bind),
		"bind-unspec":     onSocket(bindUnspec),
		"listen":          onSocket(listen),
		"listen-unbound":  onSocket(listenUnbound),
		"bindtodevice":    onSocket(bindToDevice),
		"tcp-repair":      onSocket(tcpRepair),
		"tcp-ulp":         onSocket(tcpULP),
	})
}

// kinds are the sockets that acts name: family, type and protocol.
var kinds = map[string][3]int{
	"tcp4": {unix.AF_INET, unix.SOCK_STREAM, 0}, "tcp6": {unix.AF_INET6, unix.SOCK_STREAM, 0},
	"tcp4-named": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP},
	"udp4":       {unix.AF_INET, unix.SOCK_DGRAM, 0}, "udp6": {unix.AF_INET6, unix.SOCK_DGRAM, 0},
	"mptcp4": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, "mptcp6": {unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	"udplite4": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, "udplite6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
	"raw4": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "raw6": {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
	"raw4-raw": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW}, "raw4-packet": {unix.AF_INET, unix.SOCK_PACKET, 0x300},
	"ping4": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, "ping6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6},
	"sctp4": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "sctp4-seq": {unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
	"dccp4": {unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP}, "smc4": {unix.AF_INET, unix.SOCK_STREAM, 256},
	"unix": {unix.AF_UNIX, unix.SOCK_STREAM, 0}, "unix-seq": {unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, "unix-dgram": {unix.AF_UNIX, unix.SOCK_DGRAM, 0},
	"netlink": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, "netlink-audit": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
	"netlink-uevent": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, "netlink-diag": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG},
	"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "packet": {unix.AF_PACKET, unix.SOCK_RAW, 0x300}, "packet-dgram": {unix.AF_PACKET, unix.SOCK_DGRAM, 0x300},
	"xdp": {unix.AF_XDP, unix.SOCK_RAW, 0}, "alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "key": {unix.AF_KEY, unix.SOCK_RAW, 2},
	"can": {unix.AF_CAN, unix.SOCK_RAW, unix.CAN_RAW}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 1}, "tipc": {unix.AF_TIPC, unix.SOCK_RDM, 0},
	"rds": {unix.AF_RDS, unix.SOCK_SEQPACKET, 0}, "kcm": {unix.AF_KCM, unix.SOCK_SEQPACKET, 0}, "qipcrtr": {unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0},
	"smc": {unix.AF_SMC, unix.SOCK_STREAM, 0}, "ax25": {unix.AF_AX25, unix.SOCK_DGRAM, 0}, "llc": {unix.AF_LLC, unix.SOCK_DGRAM, 0},
	"pppox": {unix.AF_PPPOX, unix.SOCK_STREAM, 0}, "phonet": {unix.AF_PHONET, unix.SOCK_DGRAM, 0}, "nfc": {unix.AF_NFC, unix.SOCK_SEQPACKET, 0},
	"mctp": {unix.AF_MCTP, unix.SOCK_DGRAM, 0}, "ieee802154": {unix.AF_IEEE802154, unix.SOCK_DGRAM, 0},
}

func open(kind string) (int, error) {
	k, ok := kinds[kind]
	if !ok {
		return -1, fmt.Errorf("no kind of socket is called %s", kind)
	}
	fd, err := unix.Socket(k[0], k[1]|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, k[2])
	return fd, err
}

// target is where an act goes.
type target struct {
	family int
	to     netip.AddrPort
}

func (t target) sockaddr() unix.Sockaddr {
	if t.family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(t.to.Port()), Addr: t.to.Addr().Unmap().As4()}
	}
	return &unix.SockaddrInet6{Port: int(t.to.Port()), Addr: t.to.Addr().As16(), ZoneId: scope(t.to.Addr())}
}

// scope gives link-local addresses the loopback device: with none the kernel
// refuses them before any hook.
func scope(a netip.Addr) uint32 {
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return 1
	}
	return 0
}

// onSocket makes an act of f: its words are a kind of socket and an
// address:port.
func onSocket(f func(fd int, t target) error) act {
	return func(a []string) (string, error) {
		t := target{family: kinds[a[0]][0]}
		if len(a) > 1 {
			to, err := netip.ParseAddrPort(a[1])
			if err != nil {
				return "", err
			}
			t.to = to
		}
		fd, err := open(a[0])
		if err != nil {
			return "", at("socket", err)
		}
		defer unix.Close(fd)
		return "", f(fd, t)
	}
}

func connect(fd int, t target) error { return unix.Connect(fd, t.sockaddr()) }

// connectBlocking waits for the answer, at most a second.
func connectBlocking(fd int, t target) error {
	if err := unix.SetNonblock(fd, false); err != nil {
		return at("block", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return at("timeout", err)
	}
	return unix.Connect(fd, t.sockaddr())
}

// unspec4 is an IPv4 address in a sockaddr that says AF_UNSPEC.
func unspec4(t target) *unix.RawSockaddrInet4 {
	return &unix.RawSockaddrInet4{Family: unix.AF_UNSPEC, Port: t.to.Port()<<8 | t.to.Port()>>8, Addr: t.to.Addr().Unmap().As4()}
}

func connectUnspec(fd int, t target) error {
	raw := unspec4(t)
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(raw)), unsafe.Sizeof(*raw))
	return errno(e)
}

func errno(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func sendto(fd int, t target) error  { return unix.Sendto(fd, []byte("x"), 0, t.sockaddr()) }
func sendmsg(fd int, t target) error { return unix.Sendmsg(fd, []byte("x"), nil, t.sockaddr(), 0) }

func sendtoUnspec(fd int, t target) error {
	raw, b := unspec4(t), [1]byte{'x'}
	_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1, 0, uintptr(unsafe.Pointer(raw)), unsafe.Sizeof(*raw))
	return errno(e)
}

// sendmmsg sends two messages by one call. The answer is the first one's
// error, or how many went.
func sendmmsg(fd int, t target) error {
	type mmsghdr struct {
		hdr unix.Msghdr
		_   [2]uint32 // msg_len, which the kernel writes, and padding
	}
	b := [1]byte{'x'}
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(1)
	name, size := rawAddress(t)
	var v [2]mmsghdr
	for i := range v {
		v[i].hdr.Name, v[i].hdr.Namelen = name, size
		v[i].hdr.Iov = &iov
		v[i].hdr.SetIovlen(1)
	}
	_, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&v)), 2, 0, 0, 0)
	return errno(e)
}

func rawAddress(t target) (*byte, uint32) {
	port := t.to.Port()<<8 | t.to.Port()>>8
	if t.family == unix.AF_INET {
		raw := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: t.to.Addr().Unmap().As4()}
		return (*byte)(unsafe.Pointer(raw)), uint32(unsafe.Sizeof(*raw))
	}
	raw := &unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: t.to.Addr().As16(), Scope_id: scope(t.to.Addr())}
	return (*byte)(unsafe.Pointer(raw)), uint32(unsafe.Sizeof(*raw))
}

func fastopen(fd int, t target) error {
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, t.sockaddr())
}

// fastopenOption connects without a packet; the first write sends it.
func fastopenOption(fd int, t target) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return at("option", err)
	}
	if err := unix.Connect(fd, t.sockaddr()); err != nil {
		return err
	}
	_, err := unix.Write(fd, []byte("x"))
	return at("write", err)
}

// connectSend connects a datagram socket and sends without an address.
func connectSend(fd int, t target) error {
	if err := unix.Connect(fd, t.sockaddr()); err != nil {
		return err
	}
	_, err := unix.Write(fd, []byte("x"))
	return at("write", err)
}

func broadcast(fd int, t target) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return at("option", err)
	}
	return sendto(fd, t)
}

func multicastJoin(fd int, t target) error {
	if t.family == unix.AF_INET {
		return unix.SetsockoptIPMreq(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreq{Multiaddr: t.to.Addr().As4(), Interface: [4]byte{127, 0, 0, 1}})
	}
	return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: t.to.Addr().As16(), Interface: 1})
}

func bind(fd int, t target) error { return unix.Bind(fd, t.sockaddr()) }

func bindUnspec(fd int, t target) error {
	raw := unspec4(t)
	_, _, e := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(raw)), unsafe.Sizeof(*raw))
	return errno(e)
}

func listen(fd int, t target) error {
	if err := unix.Bind(fd, t.sockaddr()); err != nil {
		return at("bind", err)
	}
	return unix.Listen(fd, 1)
}

func listenUnbound(fd int, t target) error { return unix.Listen(fd, 1) }

func bindToDevice(fd int, t target) error {
	return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo")
}

func tcpRepair(fd int, t target) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1)
}

func tcpULP(fd int, t target) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP, "tls")
}
