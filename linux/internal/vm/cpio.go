// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"path"
)

// archive is an initial ramfs in the "newc" format (the kernel's
// driver-api/early-userspace/buffer-format.rst).
type archive struct {
	buf  bytes.Buffer
	ino  int
	dirs map[string]bool
}

// File types of st_mode.
const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeChar = 0o020000
)

func (a *archive) entry(name string, mode uint32, major, minor int, data []byte) {
	a.ino++
	const links, mtime, checksum = 1, 0, 0
	fmt.Fprintf(&a.buf, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.ino, mode, 0, 0, links, mtime, len(data), 0, 0, major, minor, len(name)+1, checksum)
	a.buf.WriteString(name + "\x00")
	a.pad()
	a.buf.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}

// dir adds a directory and those above it. Names have no leading slash.
func (a *archive) dir(name string) {
	if name == "." || a.dirs[name] {
		return
	}
	if a.dirs == nil {
		a.dirs = map[string]bool{}
	}
	a.dir(path.Dir(name))
	a.dirs[name] = true
	a.entry(name, typeDir|0o755, 0, 0, nil)
}

func (a *archive) file(name string, perm uint32, data []byte) {
	a.dir(path.Dir(name))
	a.entry(name, typeFile|perm, 0, 0, data)
}

func (a *archive) char(name string, major, minor int) {
	a.dir(path.Dir(name))
	a.entry(name, typeChar|0o600, major, minor, nil)
}

// bytes ends the archive.
func (a *archive) bytes() []byte {
	a.entry("TRAILER!!!", 0, 0, 0, nil)
	return a.buf.Bytes()
}
