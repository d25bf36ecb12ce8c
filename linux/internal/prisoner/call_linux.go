// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{"call": call, "x32": x32, "i386": i386})
}

// numbers are the system calls that "call" knows.
var numbers = map[string]uintptr{
	"acct": unix.SYS_ACCT, "add_key": unix.SYS_ADD_KEY, "adjtimex": unix.SYS_ADJTIMEX,
	"bpf": unix.SYS_BPF, "capset": unix.SYS_CAPSET, "chroot": unix.SYS_CHROOT, "clock_settime": unix.SYS_CLOCK_SETTIME,
	"clone3": unix.SYS_CLONE3, "delete_module": unix.SYS_DELETE_MODULE, "fanotify_init": unix.SYS_FANOTIFY_INIT,
	"finit_module": unix.SYS_FINIT_MODULE, "fsopen": unix.SYS_FSOPEN, "fspick": unix.SYS_FSPICK,
	"getpid": unix.SYS_GETPID, "init_module": unix.SYS_INIT_MODULE, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	"io_uring_register": unix.SYS_IO_URING_REGISTER, "io_uring_setup": unix.SYS_IO_URING_SETUP,
	"kcmp": unix.SYS_KCMP, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "kexec_load": unix.SYS_KEXEC_LOAD,
	"keyctl": unix.SYS_KEYCTL, "migrate_pages": unix.SYS_MIGRATE_PAGES, "mount": unix.SYS_MOUNT,
	"mount_setattr": unix.SYS_MOUNT_SETATTR, "move_mount": unix.SYS_MOVE_MOUNT, "move_pages": unix.SYS_MOVE_PAGES,
	"open_tree": unix.SYS_OPEN_TREE, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "personality": unix.SYS_PERSONALITY,
	"pidfd_getfd": unix.SYS_PIDFD_GETFD, "pidfd_open": unix.SYS_PIDFD_OPEN, "pivot_root": unix.SYS_PIVOT_ROOT,
	"prctl": unix.SYS_PRCTL, "process_madvise": unix.SYS_PROCESS_MADVISE, "process_vm_readv": unix.SYS_PROCESS_VM_READV,
	"process_vm_writev": unix.SYS_PROCESS_VM_WRITEV, "ptrace": unix.SYS_PTRACE, "quotactl": unix.SYS_QUOTACTL,
	"reboot": unix.SYS_REBOOT, "request_key": unix.SYS_REQUEST_KEY, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY,
	"seccomp": unix.SYS_SECCOMP, "sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME,
	"setgroups": unix.SYS_SETGROUPS, "setns": unix.SYS_SETNS, "setpriority": unix.SYS_SETPRIORITY,
	"setresgid": unix.SYS_SETRESGID, "setresuid": unix.SYS_SETRESUID, "settimeofday": unix.SYS_SETTIMEOFDAY,
	"setuid": unix.SYS_SETUID, "ioprio_set": unix.SYS_IOPRIO_SET, "landlock_restrict_self": unix.SYS_LANDLOCK_RESTRICT_SELF,
	"sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER, "swapoff": unix.SYS_SWAPOFF, "swapon": unix.SYS_SWAPON,
	"syslog": unix.SYS_SYSLOG, "umount2": unix.SYS_UMOUNT2, "unshare": unix.SYS_UNSHARE,
	"userfaultfd": unix.SYS_USERFAULTFD, "vhangup": unix.SYS_VHANGUP, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"openat2": unix.SYS_OPENAT2,
}

// call issues one system call: its name, then arguments, missing ones zero. An
// argument is a number, "s:" and a string, or "z:" and a size, which is the
// address of as many zero bytes.
func call(args []string) (string, error) {
	nr, ok := numbers[args[0]]
	if !ok {
		if nr, ok = archNumbers[args[0]]; !ok {
			return "", fmt.Errorf("call %s is not in the table", args[0])
		}
	}
	return "", issue(nr, args[1:])
}

func issue(nr uintptr, args []string) error {
	var a [6]uintptr
	var keep [6][]byte
	for i, s := range args {
		switch {
		case strings.HasPrefix(s, "s:"):
			keep[i] = append([]byte(s[2:]), 0)
		case strings.HasPrefix(s, "z:"):
			n, err := strconv.Atoi(s[2:])
			if err != nil {
				return err
			}
			keep[i] = make([]byte, n)
		default:
			n, err := strconv.ParseInt(s, 0, 64)
			if err != nil {
				u, err := strconv.ParseUint(s, 0, 64)
				if err != nil {
					return err
				}
				n = int64(u)
			}
			a[i] = uintptr(n)
			continue
		}
		a[i] = uintptr(unsafe.Pointer(&keep[i][0]))
	}
	_, _, e := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	runtime.KeepAlive(&keep)
	return e
}

// x32Bit marks a call of the x32 table (asm/unistd.h).
const x32Bit = 0x40000000

// x32 issues a call by its number of the x32 table.
func x32(args []string) (string, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return "", err
	}
	return "", issue(uintptr(n|x32Bit), args[1:])
}

// i386 issues a call by int 0x80: its number, then up to three arguments. A
// kernel without that table has no such interrupt: the instruction faults.
func i386(args []string) (saw string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = unix.ENOSYS
		}
	}()
	var n [4]uint32
	for i, s := range args {
		v, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			return "", err
		}
		n[i] = uint32(v)
	}
	r := int80(n[0], n[1], n[2], n[3])
	if r < 0 && r > -4096 {
		return "", unix.Errno(-r)
	}
	return "", nil
}
