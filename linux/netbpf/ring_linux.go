// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// ErrClosed is what Read returns once the ring is closed.
var ErrClosed = errors.New("ring is closed")

// Ring receives the events of the sandboxes that were attached to it. One
// goroutine reads; Close and Attach may be called by others.
//
// Rings live in numbered slots, pinned, and are handed from one process to
// the next: making one costs a grace period of the kernel, taking one over
// does not. A slot is held by a lock that ends with its process.
type Ring struct {
	e      *Enforcer
	slot   uint32
	fd     int
	ep     int
	stop   int // eventfd that ends a Read
	cons   []byte
	prod   []byte
	mask   uint64
	closed atomic.Bool
}

// NewRing takes a ring of at least size bytes (rounded up to a power of two
// of at least a page; 64 KiB suits one sandbox, some MiB an agent). Events
// that an earlier holder left are dropped.
func (e *Enforcer) NewRing(size int) (*Ring, error) {
	if size > 1<<28 {
		return nil, &Error{Step: "make ring", Err: unix.EINVAL, Hint: "at most 256 MiB"}
	}
	page := unix.Getpagesize()
	want := uint32(page)
	for int(want) < size {
		want <<= 1
	}
	rings, err := e.fd("rings")
	if err != nil {
		return nil, err
	}
	// A ring that has the size first; otherwise an empty or another slot.
	for pass := range 2 {
		for slot := range uint32(flat.RingSlots) {
			if !e.lock(slot) {
				continue
			}
			fd, err := slotRing(rings, slot, want, pass > 0)
			if err == nil {
				r, err := e.mapRing(slot, fd, want)
				if err != nil {
					unix.Close(fd)
					e.unlock(slot)
					return nil, err
				}
				return r, nil
			}
			e.unlock(slot)
			// The first empty slot ends the first pass: those after it are too.
			if pass > 0 || err == unix.ENOENT {
				if pass > 0 {
					return nil, &Error{Step: "make ring", Err: err, Hint: hint(err)}
				}
				break
			}
		}
	}
	return nil, &Error{Step: "take ring", Err: unix.EBUSY, Hint: "all " + itoa(int(flat.RingSlots)) + " rings have a reader: use an agent"}
}

// slotRing returns the ring in a slot if it has the size, or makes one.
func slotRing(rings int, slot, size uint32, create bool) (int, error) {
	var id uint32
	err := mapLookup(rings, &slot, &id)
	if err == nil {
		fd, err := idFD(id)
		if err != nil {
			return -1, err
		}
		var info mapInfo
		if err := objInfo(fd, &info); err == nil && info.Max == size {
			return fd, nil
		}
		unix.Close(fd)
		if !create {
			return -1, unix.EEXIST
		}
	} else if !create {
		return -1, err
	}
	fd, err := mapCreate(&flat.Map{Name: "thole_ring", Type: unix.BPF_MAP_TYPE_RINGBUF, MaxEntries: size}, -1)
	if err != nil {
		return -1, err
	}
	v := uint32(fd)
	if err := mapUpdate(rings, &slot, &v, unix.BPF_ANY); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// lock takes a slot for this process: an open-file-description lock on one
// byte of the parent's cgroup.procs, which ends when the descriptor does.
func (e *Enforcer) lock(slot uint32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken[slot] {
		return false
	}
	fd, err := e.leaseLocked()
	if err != nil {
		return false
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(slot), Len: 1}
	if unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l) != nil {
		return false
	}
	if e.taken == nil {
		e.taken = map[uint32]bool{}
	}
	e.taken[slot] = true
	return true
}

// leaseFD returns the descriptor that holds the byte locks of this process.
func (e *Enforcer) leaseFD() (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leaseLocked()
}

func (e *Enforcer) leaseLocked() (int, error) {
	if e.lease < 0 {
		fd, err := unix.Openat(e.parentFD, "cgroup.procs", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		e.lease = fd
	}
	return e.lease, nil
}

func (e *Enforcer) unlock(slot uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.taken, slot)
	if e.lease >= 0 {
		l := unix.Flock_t{Type: unix.F_UNLCK, Start: int64(slot), Len: 1}
		unix.FcntlFlock(uintptr(e.lease), unix.F_OFD_SETLK, &l)
	}
}

func (e *Enforcer) mapRing(slot uint32, fd int, size uint32) (*Ring, error) {
	page := unix.Getpagesize()
	r := &Ring{e: e, slot: slot, fd: fd, ep: -1, stop: -1, mask: uint64(size) - 1}
	fail := func(step string, err error) (*Ring, error) {
		r.fd = -1
		r.release()
		return nil, &Error{Step: step, Object: "ring", Err: err, Hint: hint(err)}
	}
	var err error
	if r.cons, err = unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fail("map", err)
	}
	// The data lies there twice in a row, so that no record is ever split.
	if r.prod, err = unix.Mmap(fd, int64(page), page+2*int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fail("map", err)
	}
	if r.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fail("poll", err)
	}
	if r.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fail("poll", err)
	}
	for _, f := range []int{fd, r.stop} {
		if err := unix.EpollCtl(r.ep, unix.EPOLL_CTL_ADD, f, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(f)}); err != nil {
			return fail("poll", err)
		}
	}
	r.Drain(func([]byte) {})
	return r, nil
}

// Attach sends a sandbox's events to this ring from now on. Attach before the
// sandbox's first process starts.
func (r *Ring) Attach(cgroup uint64) error {
	fd, err := r.e.fd("slots")
	if err != nil {
		return err
	}
	if err := mapUpdate(fd, &cgroup, &r.slot, unix.BPF_ANY); err != nil {
		return &Error{Step: "write map", Object: "slots", Err: err, Hint: hint(err)}
	}
	return nil
}

const (
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
	ringHeader  = 8
)

func word(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(&b[0])) }

// next returns the record at the consumer's position, or nil. Its memory
// belongs to the ring until done is called.
func (r *Ring) next() (rec []byte, done uint64, discard bool) {
	cons := atomic.LoadUint64(word(r.cons))
	if cons >= atomic.LoadUint64(word(r.prod)) {
		return nil, 0, false
	}
	data := r.prod[unix.Getpagesize():]
	at := cons & r.mask
	head := atomic.LoadUint32((*uint32)(unsafe.Pointer(&data[at])))
	if head&ringBusy != 0 {
		return nil, 0, false
	}
	n := uint64(head &^ (ringBusy | ringDiscard))
	return data[at+ringHeader : at+ringHeader+n], cons + (ringHeader+n+7)&^7, head&ringDiscard != 0
}

// Drain calls f with each record that is there, without waiting. The bytes
// are valid only during the call.
func (r *Ring) Drain(f func(rec []byte)) (n int) {
	for {
		rec, pos, discard := r.next()
		if rec == nil {
			return n
		}
		if !discard {
			f(rec)
			n++
		}
		atomic.StoreUint64(word(r.cons), pos)
	}
}

// Read waits for a record, copies it into buf and returns its length. It ends
// with ErrClosed when the ring is closed. A buffer of flat.EventUnixSize holds
// any record; a shorter one gets the first bytes.
func (r *Ring) Read(buf []byte) (int, error) {
	for {
		if r.closed.Load() {
			return 0, ErrClosed
		}
		rec, pos, discard := r.next()
		if rec != nil {
			n := copy(buf, rec)
			atomic.StoreUint64(word(r.cons), pos)
			if discard {
				continue
			}
			return n, nil
		}
		var ev [2]unix.EpollEvent
		if _, err := unix.EpollWait(r.ep, ev[:], -1); err != nil && err != unix.EINTR {
			return 0, &Error{Step: "wait for", Object: "ring", Err: err}
		}
	}
}

// Stop makes Read return ErrClosed, now and later. The records that are there
// can still be drained.
func (r *Ring) Stop() {
	r.closed.Store(true)
	one := [8]byte{1}
	unix.Write(r.stop, one[:])
}

// Close gives the ring back. The reader must have returned: call Stop first
// where it runs in another goroutine. Sandboxes that are still attached go on
// being counted; their events go to whoever takes the slot, which drops them.
func (r *Ring) Close() error {
	r.closed.Store(true)
	r.release()
	r.e.unlock(r.slot)
	return nil
}

func (r *Ring) release() {
	for _, m := range []*[]byte{&r.cons, &r.prod} {
		if *m != nil {
			unix.Munmap(*m)
			*m = nil
		}
	}
	for _, fd := range []*int{&r.ep, &r.stop, &r.fd} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}
