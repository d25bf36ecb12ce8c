// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layouts that the assembly reads. Sizes and offsets are checked by a
// test against these constants.
const (
	opSize = 80 // nr, six arguments, save address, wanted value, flags

	opNr    = 0
	opArgs  = 8
	opSave  = 56
	opValue = 64
	opFlags = 72

	flagAny   = 1 << 0 // every result will do
	flagExact = 1 << 1 // the result must equal the value
	flagDeref = 1 << 8 // << i: argument i is the address of its value

	headerSize = 64

	hdrFirst  = 0  // address of the first op
	hdrEnd    = 8  // address after the last op
	hdrStatus = 16 // descriptor for the report
	hdrIndex  = 24 // report: byte offset of the failed op
	hdrResult = 32 // report: its raw result
	hdrExitNr = 40 // exit_group in a child, exit on a thread
	hdrCode   = 48 // status to exit with at the end of a list without execve
	hdrPidfd  = 56 // clone3 stores the pidfd here, in memory that does not move
)

// Image is an assembled list: one private mapping that holds all that the
// child reads, so that nothing of it is moved, freed or shared with the Go
// heap while the child is between clone and exec.
type Image struct {
	mem  []byte
	list List
}

// Assemble lays the list out in memory. handles gives the descriptors for the
// handles that the list names; status is the descriptor on which a failure is
// reported. The caller must call [Image.Free] after the child has executed the
// program or ended.
func (l List) Assemble(handles map[string]int, status int) (*Image, error) {
	size := headerSize + len(l)*opSize
	blobs := map[*Blob]int{}
	var place func(b *Blob)
	place = func(b *Blob) {
		if b == nil {
			return
		}
		if _, ok := blobs[b]; !ok {
			blobs[b] = size
			size += (len(b.Bytes) + 8 + 7) &^ 7 // room for a 64-bit save at a 32-bit field
			for _, a := range b.addresses {
				place(a.to)
			}
		}
	}
	for _, o := range l {
		if len(o.Args) > 6 {
			return nil, fmt.Errorf("assemble %s: %d arguments", o.Call, len(o.Args))
		}
		if o.Save != nil {
			place(o.Save.blob)
		}
		for _, a := range o.Args {
			switch a.kind {
			case argBlob:
				place(a.blob)
			case argSlot:
				place(a.slot.blob)
			}
		}
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map launch image: %w", err)
	}
	img := &Image{mem: mem, list: l}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	for b, off := range blobs {
		copy(mem[off:], b.Bytes)
		// Strings inside structures (argv, envp) are addresses: see Vector.
		for i, at := range b.vector {
			binary.NativeEndian.PutUint64(mem[off+8*i:], base+uint64(off+at))
		}
	}
	put := func(off int, v uint64) { binary.NativeEndian.PutUint64(mem[off:], v) }
	for b, off := range blobs {
		for _, a := range b.addresses {
			put(off+a.off, base+uint64(blobs[a.to]))
		}
		for _, h := range b.handles {
			fd, ok := handles[h.name]
			if !ok {
				img.Free()
				return nil, fmt.Errorf("assemble launch: no handle %q", h.name)
			}
			put(off+h.off, uint64(fd))
		}
	}
	put(hdrFirst, base+headerSize)
	put(hdrEnd, base+headerSize+uint64(len(l)*opSize))
	put(hdrStatus, uint64(status))
	for i, o := range l {
		at := headerSize + i*opSize
		flags := uint64(0)
		put(at+opNr, nr[o.Call])
		for j, a := range o.Args {
			v := a.num
			switch a.kind {
			case argBlob:
				v = base + uint64(blobs[a.blob])
			case argSlot:
				v = base + uint64(blobs[a.slot.blob]+a.slot.off)
				flags |= flagDeref << j
			case argHandle:
				fd, ok := handles[a.handle]
				if !ok {
					img.Free()
					return nil, fmt.Errorf("assemble %s: no handle %q", o.Call, a.handle)
				}
				v = uint64(fd)
			}
			put(at+opArgs+8*j, v)
		}
		if o.Save != nil {
			put(at+opSave, base+uint64(blobs[o.Save.blob]+o.Save.off))
		}
		switch o.Want.kind {
		case wantAny:
			flags |= flagAny
		case wantExact:
			flags |= flagExact
			put(at+opValue, uint64(o.Want.value))
		}
		put(at+opFlags, flags)
	}
	return img, nil
}

// Free unmaps the image. It is safe to call twice.
func (i *Image) Free() {
	if i.mem != nil {
		_ = unix.Munmap(i.mem)
		i.mem = nil
	}
}

func (i *Image) put(off int, v uint64) { binary.NativeEndian.PutUint64(i.mem[off:], v) }

func (i *Image) header() unsafe.Pointer { return unsafe.Pointer(&i.mem[0]) }
