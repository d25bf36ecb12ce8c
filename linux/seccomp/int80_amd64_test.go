// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package seccomp

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 issues an i386 call without arguments and returns its error number, or
// 0. The instructions are written into a page: a test cannot bring assembly.
func int80(nr uint32) int {
	code := []byte{0xb8}                              // mov eax, nr
	code = binary.LittleEndian.AppendUint32(code, nr) //
	code = append(code,
		0x31, 0xdb, // xor ebx, ebx
		0x31, 0xc9, // xor ecx, ecx
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0xc3, // ret, the result in rax as Go expects it
	)
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(fmt.Sprintf("map page: %v", err))
	}
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		panic(fmt.Sprintf("make page executable: %v", err))
	}
	// A func value points to a word that holds the address of its code.
	entry := &page[0]
	value := unsafe.Pointer(&entry)
	res := int32((*(*func() uint64)(unsafe.Pointer(&value)))())
	unix.Munmap(page)
	if res < 0 {
		return int(-res)
	}
	return 0
}
