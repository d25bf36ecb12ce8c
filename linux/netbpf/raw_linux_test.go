// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
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
