// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

// Call is a system call by name; its number belongs to the architecture and
// is looked up when a list is assembled.
type Call uint8

// The calls that launches are made of.
const (
	Close Call = iota
	CloseRange
	Read
	Write
	Dup3
	Fcntl
	OpenAt
	OpenAt2
	MkdirAt
	MknodAt
	SymlinkAt
	FchownAt
	Chdir
	Fchdir
	Unshare
	Setsid
	Setpgid
	Prctl
	Prlimit
	Capset
	Setgroups
	Setresgid
	Setresuid
	OpenTree
	MoveMount
	MountSetattr
	Fsopen
	Fsconfig
	Fsmount
	LandlockAddRule
	LandlockRestrictSelf
	Seccomp
	RtSigprocmask
	Socket
	Execve
	nCalls
)

// calls is indexed by Call.
var calls = [nCalls]string{
	Close: "close", CloseRange: "close_range", Read: "read", Write: "write",
	Dup3: "dup3", Fcntl: "fcntl", OpenAt: "openat", OpenAt2: "openat2",
	MkdirAt: "mkdirat", MknodAt: "mknodat", SymlinkAt: "symlinkat", FchownAt: "fchownat",
	Chdir: "chdir", Fchdir: "fchdir", Unshare: "unshare", Setsid: "setsid",
	Setpgid: "setpgid", Prctl: "prctl", Prlimit: "prlimit64",
	Capset: "capset", Setgroups: "setgroups", Setresgid: "setresgid",
	Setresuid: "setresuid", OpenTree: "open_tree", MoveMount: "move_mount",
	MountSetattr: "mount_setattr", Fsopen: "fsopen", Fsconfig: "fsconfig",
	Fsmount: "fsmount", LandlockAddRule: "landlock_add_rule",
	LandlockRestrictSelf: "landlock_restrict_self", Seccomp: "seccomp",
	RtSigprocmask: "rt_sigprocmask", Socket: "socket", Execve: "execve",
}

// String returns the call's name as the kernel's tables spell it.
func (c Call) String() string {
	if c >= nCalls {
		return "call?"
	}
	return calls[c]
}
