// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// kernelTypes is what the unix hooks need to know of the running kernel.
type kernelTypes struct {
	cast      uint32 // BTF id of the kernel function bpf_cast_to_kern_ctx
	uaddr     uint32 // byte offset in struct bpf_sock_addr_kern
	uaddrlen  uint32
	addrFound bool
	lenFound  bool
}

func (k *kernelTypes) complete() bool { return k.cast != 0 && k.addrFound && k.lenFound }

var errBTF = errors.New("parse kernel btf: malformed")

// extra is the number of bytes that follow a type's 12-byte head
// (Documentation/bpf/btf.rst): fixed + perMember*vlen, by kind.
var extra = [20]struct{ fixed, perMember int }{
	1: {fixed: 4}, 3: {fixed: 12}, 4: {perMember: 12}, 5: {perMember: 12}, 6: {perMember: 8},
	13: {perMember: 8}, 14: {fixed: 4}, 15: {perMember: 12}, 17: {fixed: 4}, 19: {perMember: 12},
}

const (
	btfStruct = 4
	btfFunc   = 12
)

// parseBTF walks a kernel's BTF once and picks out kernelTypes.
func parseBTF(b []byte) (kernelTypes, error) {
	var k kernelTypes
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint16(b) != 0xeb9f {
		return k, errBTF
	}
	head := uint64(le.Uint32(b[4:]))
	at := func(off, n uint32) ([]byte, bool) {
		from := head + uint64(off)
		to := from + uint64(n)
		if to > uint64(len(b)) {
			return nil, false
		}
		return b[from:to], true
	}
	types, ok1 := at(le.Uint32(b[8:]), le.Uint32(b[12:]))
	names, ok2 := at(le.Uint32(b[16:]), le.Uint32(b[20:]))
	if !ok1 || !ok2 {
		return k, errBTF
	}
	is := func(off uint32, want string) bool {
		end := uint64(off) + uint64(len(want))
		return end < uint64(len(names)) && string(names[off:end]) == want && names[end] == 0
	}
	for id := uint32(1); len(types) > 0; id++ {
		if len(types) < 12 {
			return k, errBTF
		}
		name, info := le.Uint32(types), le.Uint32(types[4:])
		kind, members := info>>24&0x1f, int(info&0xffff)
		if int(kind) >= len(extra) {
			return k, errBTF
		}
		size := 12 + extra[kind].fixed + extra[kind].perMember*members
		if len(types) < size {
			return k, errBTF
		}
		switch {
		case kind == btfFunc && k.cast == 0 && is(name, "bpf_cast_to_kern_ctx"):
			k.cast = id
		case kind == btfStruct && !k.addrFound && is(name, "bpf_sock_addr_kern"):
			for m := types[12:size]; len(m) > 0; m = m[12:] {
				// With bit fields in the struct the offset is the low 24 bits.
				off := le.Uint32(m[8:])
				if info>>31 != 0 {
					off &= 1<<24 - 1
				}
				switch {
				case is(le.Uint32(m), "uaddr"):
					k.uaddr, k.addrFound = off/8, true
				case is(le.Uint32(m), "uaddrlen"):
					k.uaddrlen, k.lenFound = off/8, true
				}
			}
		}
		types = types[size:]
	}
	return k, nil
}

// cgroupLevel returns the depth below the root of the cgroup v2 hierarchy of
// the directory path, judging by the text of /proc/self/mountinfo, or -1.
func cgroupLevel(mountinfo []byte, path string) int {
	level, longest := -1, -1
	for line := range bytes.Lines(mountinfo) {
		pre, post, ok := bytes.Cut(line, []byte(" - "))
		if !ok || !bytes.HasPrefix(post, []byte("cgroup2 ")) {
			continue
		}
		f := bytes.Fields(pre)
		if len(f) < 5 {
			continue
		}
		root, point := string(f[3]), string(f[4])
		rest, ok := below(path, point)
		// Of mounts on one point the last is on top.
		if !ok || len(point) < longest {
			continue
		}
		longest, level = len(point), -1
		if a, b := depth(root), depth(rest); a >= 0 && b >= 0 {
			level = a + b
		}
	}
	return level
}

// below returns what of path lies under dir.
func below(path, dir string) (string, bool) {
	if dir == "/" {
		return path, true
	}
	if len(path) < len(dir) || path[:len(dir)] != dir {
		return "", false
	}
	rest := path[len(dir):]
	return rest, rest == "" || rest[0] == '/'
}

// depth counts the components of a path; -1 if one of them is "..".
func depth(path string) int {
	n, start := 0, 0
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		switch part := path[start:i]; part {
		case "", ".":
		case "..":
			return -1
		default:
			n++
		}
		start = i + 1
	}
	return n
}
