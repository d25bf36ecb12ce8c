// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "runtime"

//go:generate go run gen.go

// Arch is a machine architecture whose system calls this package knows.
// The zero value is none and compiles to an error.
type Arch uint8

// The architectures.
const (
	AMD64 Arch = iota + 1
	ARM64
)

// x32Bit marks a call of the x32 ABI, which shares amd64's audit value
// (arch/x86/include/uapi/asm/unistd.h, __X32_SYSCALL_BIT).
const x32Bit = 0x40000000

// call is one row of a table.
type call struct {
	name string
	nr   uint32
}

// Native returns the architecture this program was built for; false means
// that no filter can be made for it.
func Native() (Arch, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return AMD64, true
	case "arm64":
		return ARM64, true
	}
	return 0, false
}

// String returns Go's name of the architecture.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return "unknown architecture"
}

// Audit returns the value that the kernel puts in seccomp_data.arch
// (AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 of linux/audit.h), 0 for the zero Arch.
func (a Arch) Audit() uint32 {
	switch a {
	case AMD64:
		return 0xc000003e
	case ARM64:
		return 0xc00000b7
	}
	return 0
}

// calls returns the rows by number and their indices by name.
func (a Arch) calls() ([]call, []uint16) {
	switch a {
	case AMD64:
		return amd64Calls[:], amd64ByName[:]
	case ARM64:
		return arm64Calls[:], arm64ByName[:]
	}
	return nil, nil
}

// Number returns the number of the call that has this name (in lower case,
// as in syscalls(2)), and whether the architecture has it.
func (a Arch) Number(name string) (uint32, bool) {
	rows, byName := a.calls()
	lo, hi := 0, len(byName)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if rows[byName[mid]].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(byName) && rows[byName[lo]].name == name {
		return rows[byName[lo]].nr, true
	}
	return 0, false
}

// Name returns the name of the call that has this number, and whether the
// architecture has it.
func (a Arch) Name(nr uint32) (string, bool) {
	rows, _ := a.calls()
	lo, hi := 0, len(rows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if rows[mid].nr < nr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(rows) && rows[lo].nr == nr {
		return rows[lo].name, true
	}
	return "", false
}
