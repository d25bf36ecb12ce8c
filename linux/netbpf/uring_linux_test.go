// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The part of io_uring that a prisoner uses, as include/uapi/linux/io_uring.h
// lays it out.
type (
	uringParams struct {
		sqEntries, cqEntries, flags, cpu, idle, features, wq uint32
		_                                                    [3]uint32
		sq                                                   struct {
			head, tail, mask, entries, flags, dropped, array, _ uint32
			_                                                   uint64
		}
		cq struct {
			head, tail, mask, entries, overflow, cqes, flags, _ uint32
			_                                                   uint64
		}
	}
	uringSQE struct {
		opcode, flags uint8
		_             uint16
		fd            int32
		off, addr     uint64
		len, opFlags  uint32
		user          uint64
		_, _          uint16
		addrLen       uint16 // of send; shares its place with others
		_             [18]byte
	}
	uringCQE struct {
		user       uint64
		res, flags int32
	}
)

const (
	_ = uint(unsafe.Sizeof(uringParams{}) - 120)
	_ = uint(120 - unsafe.Sizeof(uringParams{}))
	_ = uint(unsafe.Sizeof(uringSQE{}) - 64)
	_ = uint(64 - unsafe.Sizeof(uringSQE{}))

	opSendmsg = 9
	opConnect = 16
	opSend    = 26
	opSocket  = 45
	opBind    = 56

	sqeAsync      = 1 << 4
	registerProbe = 8
	offSQ         = 0
	offCQ         = 0x8000000
	offSQE        = 0x10000000
)

// uring does one act by a ring of its own and returns its errno.
func (c *call) uring(sock int) int {
	p := &uringParams{}
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(p)), 0)
	if e != 0 {
		return noRing + int(e)
	}
	ring := int(fd)
	defer unix.Close(ring)

	// What the kernel reads lies outside of Go's heap.
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return noRing + errno(err)
	}
	defer unix.Munmap(mem)
	sqe := uringSQE{fd: int32(sock), user: 1}
	if c.Async {
		sqe.flags = sqeAsync
	}
	at := func(off int) uint64 { return uint64(uintptr(unsafe.Pointer(&mem[off]))) }
	n := 0
	if c.IP != "" {
		n = copy(mem, c.rawAddr(c.IP))
	}
	switch c.Op {
	case "uring socket":
		sqe.opcode, sqe.fd, sqe.off, sqe.len = opSocket, int32(c.Family), uint64(c.Type), uint32(c.Proto)
	case "uring connect":
		sqe.opcode, sqe.addr, sqe.off = opConnect, at(0), uint64(n)
	case "uring bind":
		sqe.opcode, sqe.addr, sqe.off = opBind, at(0), uint64(n)
	case "uring send":
		sqe.opcode, sqe.addr, sqe.len, sqe.off, sqe.addrLen = opSend, at(1024), 1, at(0), uint16(n)
	case "uring sendmsg":
		iov := (*unix.Iovec)(unsafe.Pointer(&mem[512]))
		iov.Base, iov.Len = &mem[1024], 1
		msg := (*unix.Msghdr)(unsafe.Pointer(&mem[256]))
		*msg = unix.Msghdr{Name: &mem[0], Namelen: uint32(n), Iov: iov, Iovlen: 1}
		sqe.opcode, sqe.addr, sqe.len = opSendmsg, at(256), 1
	}
	if !supports(ring, sqe.opcode) {
		return noOpcode
	}
	res, err := submit(ring, p, &sqe)
	switch {
	case err != nil:
		return noRing + errno(err)
	case res < 0:
		return int(-res)
	case c.Op == "uring socket":
		unix.Close(int(res))
	}
	return 0
}

// supports asks the ring for an operation (IORING_REGISTER_PROBE).
func supports(ring int, op uint8) bool {
	const head, each, count = 16, 8, 256
	buf := make([]byte, head+each*count)
	_, _, e := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(ring), registerProbe, uintptr(unsafe.Pointer(&buf[0])), count, 0, 0)
	return e == 0 && op <= buf[0] && buf[head+each*int(op)+2]&1 != 0
}

// submit puts one entry into the ring and waits for its completion.
func submit(ring int, p *uringParams, entry *uringSQE) (int32, error) {
	const rw = unix.PROT_READ | unix.PROT_WRITE
	sq, err := unix.Mmap(ring, offSQ, int(p.sq.array+p.sqEntries*4), rw, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(sq)
	cqSize := int(p.cq.cqes) + int(p.cqEntries)*int(unsafe.Sizeof(uringCQE{}))
	cq, err := unix.Mmap(ring, offCQ, cqSize, rw, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(cq)
	entries, err := unix.Mmap(ring, offSQE, int(p.sqEntries)*64, rw, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(entries)
	word := func(m []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&m[off])) }

	tail := atomic.LoadUint32(word(sq, p.sq.tail))
	i := tail & *word(sq, p.sq.mask)
	*(*uringSQE)(unsafe.Pointer(&entries[i*64])) = *entry
	*word(sq, p.sq.array+i*4) = i
	atomic.StoreUint32(word(sq, p.sq.tail), tail+1)
	const getEvents = 1
	for left := uintptr(1); ; {
		_, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(ring), left, 1, getEvents, 0, 0)
		if e == 0 {
			left = 0
		} else if e != unix.EINTR {
			return 0, e
		}
		head := atomic.LoadUint32(word(cq, p.cq.head))
		if head == atomic.LoadUint32(word(cq, p.cq.tail)) {
			continue // a signal ended the wait
		}
		at := p.cq.cqes + head&*word(cq, p.cq.mask)*uint32(unsafe.Sizeof(uringCQE{}))
		return (*uringCQE)(unsafe.Pointer(&cq[at])).res, nil
	}
}
