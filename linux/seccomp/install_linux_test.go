// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flagTsync is SECCOMP_FILTER_FLAG_TSYNC: every thread of the process.
const flagTsync = 1

// install puts a filter on the calling thread, or on all with flagTsync.
func install(code []Filter, flags uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	prog := struct {
		n    uint16
		code *Filter
	}{uint16(len(code)), &code[0]}
	// SECCOMP_SET_MODE_FILTER.
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, 1, uintptr(flags), uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("install filter: %w", errno)
	}
	if tid != 0 {
		return fmt.Errorf("install filter: thread %d could not follow", tid)
	}
	return nil
}
