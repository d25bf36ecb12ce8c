// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "golang.org/x/sys/unix"

// archNumbers are calls that other processors do not have.
var archNumbers = map[string]uintptr{
	"iopl": unix.SYS_IOPL, "ioperm": unix.SYS_IOPERM, "modify_ldt": unix.SYS_MODIFY_LDT,
}

// int80 issues a call of the i386 table.
func int80(nr, a, b, c uint32) int32
