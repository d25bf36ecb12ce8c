// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Action is what the kernel does with a call: a SECCOMP_RET_ value with its
// data (seccomp(2)). The zero value would kill the thread and is refused by
// Compile: no rule of this package kills.
type Action uint32

// The actions.
const (
	// Allow lets the call pass (SECCOMP_RET_ALLOW).
	Allow Action = 0x7fff0000

	retErrno Action = 0x00050000
	retData  Action = 0x0000ffff
)

// The error numbers that rules answer with (asm-generic/errno-base.h, errno.h;
// the same on both architectures).
const (
	EPERM           = 1
	ENOSYS          = 38
	EPROTONOSUPPORT = 93
	EOPNOTSUPP      = 95
)

// Errno returns the action that fails the call with this error number
// without running it (SECCOMP_RET_ERRNO). The kernel caps it at 4095.
func Errno(n uint16) Action { return retErrno | Action(n) }

// Errno returns the error number that the action answers with, or 0.
func (a Action) Errno() uint16 {
	if a&^retData == retErrno {
		return uint16(a & retData)
	}
	return 0
}

// Cond is a condition on one argument: (argument & Mask) is, or with Not is
// not, one of Values. A mask within the low 32 bits says that the kernel
// looks at an int or unsigned int there: the high half is then not looked at
// here either, or a caller could pass a rule by setting bits that the kernel
// drops.
type Cond struct {
	Arg    uint8 // 0 to 5
	Mask   uint64
	Values []uint64
	Not    bool
}

// Rule decides one call. When is a conjunction; without conditions the rule
// always matches.
type Rule struct {
	Call   string // name, as in syscalls(2)
	Nr     uint32
	When   []Cond
	Action Action
	Reason string
}

// Program is a filter as data. A call of another architecture gets Foreign; on
// amd64 a number with the x32 bit gets X32; a number that the architecture's
// table does not have gets Unknown; then the first rule of the call that
// matches decides; a call that no rule matches gets Default.
type Program struct {
	Arch    Arch
	Foreign Action
	X32     Action
	Unknown Action
	Default Action
	Rules   []Rule
	// Log asks the kernel to log each call that the filter refuses.
	Log bool
}

// flagLog is SECCOMP_FILTER_FLAG_LOG.
const flagLog = 1 << 1

// Flags returns the flags for seccomp(SECCOMP_SET_MODE_FILTER) that the
// program asks for: SECCOMP_FILTER_FLAG_LOG with Log.
func (p Program) Flags() uint32 {
	if p.Log {
		return flagLog
	}
	return 0
}

// Split cuts the program in two that, installed together, decide as it does:
// loud holds the refusals that answer EPERM, quiet those with which the kernel
// would say "not here, fall back" (ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP). Only
// loud keeps Log: a libc that asks for clone3 on each start is no event, and
// its records would crowd out the others. The kernel logs by the flag of the
// filter whose answer it takes.
func (p Program) Split() (loud, quiet Program) {
	return p.keep(true), p.keep(false)
}

func (p Program) keep(loud bool) Program {
	only := func(a Action) Action {
		if a != Allow && (a.Errno() == EPERM) != loud {
			return Allow
		}
		return a
	}
	q := p
	q.Foreign, q.X32, q.Unknown, q.Default = only(p.Foreign), only(p.X32), only(p.Unknown), only(p.Default)
	q.Log = p.Log && loud
	q.Rules = make([]Rule, len(p.Rules))
	for i, r := range p.Rules {
		r.Action = only(r.Action)
		q.Rules[i] = r
	}
	return q
}
