// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import "golang.org/x/sys/unix"

// nr is indexed by Call: the numbers of the architecture this was built for.
var nr = [nCalls]uint64{
	Close: unix.SYS_CLOSE, CloseRange: unix.SYS_CLOSE_RANGE,
	Read: unix.SYS_READ, Write: unix.SYS_WRITE, Dup3: unix.SYS_DUP3,
	Fcntl: unix.SYS_FCNTL, OpenAt: unix.SYS_OPENAT, OpenAt2: unix.SYS_OPENAT2,
	MkdirAt: unix.SYS_MKDIRAT, MknodAt: unix.SYS_MKNODAT, SymlinkAt: unix.SYS_SYMLINKAT,
	FchownAt: unix.SYS_FCHOWNAT, Chdir: unix.SYS_CHDIR,
	Fchdir: unix.SYS_FCHDIR, Unshare: unix.SYS_UNSHARE,
	Setsid: unix.SYS_SETSID, Setpgid: unix.SYS_SETPGID,
	Prctl: unix.SYS_PRCTL, Prlimit: unix.SYS_PRLIMIT64,
	Capset: unix.SYS_CAPSET, Setgroups: unix.SYS_SETGROUPS,
	Setresgid: unix.SYS_SETRESGID, Setresuid: unix.SYS_SETRESUID,
	OpenTree: unix.SYS_OPEN_TREE, MoveMount: unix.SYS_MOVE_MOUNT,
	MountSetattr: unix.SYS_MOUNT_SETATTR, Fsopen: unix.SYS_FSOPEN,
	Fsconfig: unix.SYS_FSCONFIG, Fsmount: unix.SYS_FSMOUNT,
	LandlockAddRule:      unix.SYS_LANDLOCK_ADD_RULE,
	LandlockRestrictSelf: unix.SYS_LANDLOCK_RESTRICT_SELF,
	Seccomp:              unix.SYS_SECCOMP, RtSigprocmask: unix.SYS_RT_SIGPROCMASK,
	Socket: unix.SYS_SOCKET, Execve: unix.SYS_EXECVE,
}
