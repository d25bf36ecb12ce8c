// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// The bpf(2) calls that this package needs, and nothing else. Each attribute
// struct is the head of the kernel's union bpf_attr (include/uapi/linux/bpf.h)
// for its command; the kernel takes what is not given as zero. Pointer fields
// are real pointers, so that the collector sees them; that is only right where
// a pointer fills the 64 bits of the ABI.
const _ = uint(unsafe.Sizeof(uintptr(0)) - 8)

const nameLen = 16

func bpf(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			// The verifier gives up when a signal is pending.
			if cmd == unix.BPF_PROG_LOAD {
				continue
			}
		}
		return -1, e
	}
}

// object copies an object's name; the kernel takes letters, digits, _ and dot.
func object(s string) (n [nameLen]byte) {
	copy(n[:nameLen-1], s)
	return n
}

func mapCreate(m *flat.Map, inner int) (int, error) {
	attr := struct {
		typ, key, value, max, flags, inner, numa uint32
		name                                     [nameLen]byte
	}{typ: m.Type, key: m.KeySize, value: m.ValueSize, max: m.MaxEntries, flags: m.Flags, name: object(m.Name)}
	if inner >= 0 {
		attr.inner = uint32(inner)
	}
	return bpf(unix.BPF_MAP_CREATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

type elemAttr struct {
	fd    uint32
	_     uint32
	key   unsafe.Pointer
	value unsafe.Pointer // or the next key
	flags uint64
}

func elem(cmd, fd int, key, value unsafe.Pointer, flags uint64) error {
	attr := elemAttr{fd: uint32(fd), key: key, value: value, flags: flags}
	_, err := bpf(cmd, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(key)
	runtime.KeepAlive(value)
	return err
}

func mapUpdate[K, V any](fd int, key *K, value *V, flags uint64) error {
	return elem(unix.BPF_MAP_UPDATE_ELEM, fd, unsafe.Pointer(key), unsafe.Pointer(value), flags)
}

func mapLookup[K, V any](fd int, key *K, value *V) error {
	return elem(unix.BPF_MAP_LOOKUP_ELEM, fd, unsafe.Pointer(key), unsafe.Pointer(value), 0)
}

func mapDelete[K any](fd int, key *K) error {
	return elem(unix.BPF_MAP_DELETE_ELEM, fd, unsafe.Pointer(key), nil, 0)
}

// mapNext stores the key after key, or the first one where key is nil. The
// end is ENOENT.
func mapNext[K any](fd int, key, next *K) error {
	return elem(unix.BPF_MAP_GET_NEXT_KEY, fd, unsafe.Pointer(key), unsafe.Pointer(next), 0)
}

func mapFreeze(fd int) error {
	attr := struct{ fd uint32 }{uint32(fd)}
	_, err := bpf(unix.BPF_MAP_FREEZE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// progLoad loads p with the given instructions. On failure it loads once more
// to get the verifier's account.
func progLoad(p *flat.Program, insns []byte) (fd int, log string, err error) {
	license := []byte("GPL\x00")
	attr := struct {
		typ, count      uint32
		insns, license  unsafe.Pointer
		logLevel, logSz uint32
		log             unsafe.Pointer
		version, flags  uint32
		name            [nameLen]byte
		ifindex, attach uint32
	}{typ: p.Type, count: uint32(len(insns) / 8), insns: unsafe.Pointer(&insns[0]), license: unsafe.Pointer(&license[0]),
		name: object(p.Name), attach: p.AttachType}
	fd, err = bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil && err != unix.EPERM {
		buf := make([]byte, 1<<20)
		attr.logLevel, attr.logSz, attr.log = 1, uint32(len(buf)), unsafe.Pointer(&buf[0])
		fd2, err2 := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
		if err2 == nil {
			return fd2, "", nil
		}
		log = unix.ByteSliceToString(buf)
	}
	runtime.KeepAlive(insns)
	runtime.KeepAlive(license)
	return fd, log, err
}

func linkCreate(prog, cgroup int, attach uint32) (int, error) {
	attr := struct{ prog, target, attach, flags uint32 }{uint32(prog), uint32(cgroup), attach, 0}
	return bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

func linkUpdate(link, prog int) error {
	attr := struct{ link, prog, flags, old uint32 }{uint32(link), uint32(prog), 0, 0}
	_, err := bpf(unix.BPF_LINK_UPDATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

func progAttach(prog, cgroup int, attach, flags uint32) error {
	attr := struct{ target, prog, attach, flags, replace uint32 }{uint32(cgroup), uint32(prog), attach, flags, 0}
	_, err := bpf(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

type objAttr struct {
	path      unsafe.Pointer
	fd, flags uint32
}

func objPin(fd int, path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	attr := objAttr{path: unsafe.Pointer(p), fd: uint32(fd)}
	_, err = bpf(unix.BPF_OBJ_PIN, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

func objGet(path string) (int, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	attr := objAttr{path: unsafe.Pointer(p)}
	return bpf(unix.BPF_OBJ_GET, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// idFD opens a map by its id (BPF_MAP_GET_FD_BY_ID).
func idFD(id uint32) (int, error) {
	attr := struct{ id, next, flags uint32 }{id, 0, 0}
	return bpf(unix.BPF_MAP_GET_FD_BY_ID, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// progQuery returns the ids of the programs attached to cgroup itself.
func progQuery(cgroup int, attach uint32, ids []uint32) (int, error) {
	attr := struct {
		target, attach, flags, attachFlags uint32
		ids                                unsafe.Pointer
		count, _                           uint32
	}{target: uint32(cgroup), attach: attach, ids: unsafe.Pointer(&ids[0]), count: uint32(len(ids))}
	_, err := bpf(unix.BPF_PROG_QUERY, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return int(attr.count), err
}

// The heads of the kernel's bpf_map_info, bpf_prog_info and bpf_link_info.
type (
	mapInfo struct {
		Type, ID, Key, Value, Max, Flags uint32
		Name                             [nameLen]byte
	}
	progInfo struct{ Type, ID uint32 }
	linkInfo struct {
		Type, ID, Prog, _ uint32
		Cgroup            uint64 // 0: the cgroup is gone or the link detached
		Attach, _         uint32
	}
)

func objInfo[T any](fd int, info *T) error {
	attr := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(fd), uint32(unsafe.Sizeof(*info)), unsafe.Pointer(info)}
	_, err := bpf(unix.BPF_OBJ_GET_INFO_BY_FD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// progName returns the name of a loaded program.
func progName(id uint32) (name [nameLen]byte, err error) {
	attr := struct{ id, next, flags uint32 }{id, 0, 0}
	fd, err := bpf(unix.BPF_PROG_GET_FD_BY_ID, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil {
		return name, err
	}
	defer unix.Close(fd)
	var info struct {
		_    [64]byte
		Name [nameLen]byte
	}
	err = objInfo(fd, &info)
	return info.Name, err
}
