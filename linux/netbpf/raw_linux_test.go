// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSendto sends to a sockaddr whose family the library would not write.
func rawSendto(fd int, to *unix.RawSockaddrInet4) int {
	b := []byte("x")
	_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, 0, uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
	return int(e)
}

// rawUnix connects or sends to exactly the bytes of path, without a NUL after.
func rawUnix(fd int, path []byte, send bool) int {
	var to unix.RawSockaddrUnix
	to.Family = unix.AF_UNIX
	for i, c := range path {
		to.Path[i] = int8(c)
	}
	n := 2 + uintptr(len(path))
	if send {
		b := []byte("x")
		_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, 0, uintptr(unsafe.Pointer(&to)), n)
		return int(e)
	}
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to)), n)
	return int(e)
}

// loopbackUp brings lo up, in the prisoner's own network namespace.
func loopbackUp() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return -1
	}
	r.SetUint16(unix.IFF_UP)
	return errno(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r))
}

// rawAddr returns a sockaddr of IPv4 or IPv6 as bytes.
func (c *call) rawAddr(ip string) []byte {
	a := netip.MustParseAddr(ip)
	if c.Family == unix.AF_INET {
		sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(c.Port>>8 | c.Port&0xff<<8), Addr: a.Unmap().As4()}
		return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))...)
	}
	sa := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: uint16(c.Port>>8 | c.Port&0xff<<8), Addr: a.As16()}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))...)
}

// sendmmsg sends one message to IP and one to Then by one call.
func (c *call) sendmmsg(fd int) int {
	type mmsghdr struct {
		hdr unix.Msghdr
		n   uint32
		_   [4]byte
	}
	data := []byte("x")
	iov := unix.Iovec{Base: &data[0], Len: 1}
	to := [2][]byte{c.rawAddr(c.IP), c.rawAddr(c.Then)}
	var msgs [2]mmsghdr
	for i := range msgs {
		msgs[i].hdr = unix.Msghdr{Name: &to[i][0], Namelen: uint32(len(to[i])), Iov: &iov, Iovlen: 1}
	}
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), 0, 0, 0)
	runtime.KeepAlive(to)
	runtime.KeepAlive(data)
	if e != 0 {
		return int(e)
	}
	return sent + int(n)
}
