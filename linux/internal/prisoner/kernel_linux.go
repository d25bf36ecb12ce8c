// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"mount-tmpfs": func(a []string) (string, error) { return "", unix.Mount("none", a[0], "tmpfs", 0, "") },
		"remount-rw": func(a []string) (string, error) {
			return "", unix.Mount("none", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
		},
		"bind-mount":       func(a []string) (string, error) { return "", unix.Mount(a[0], a[1], "", unix.MS_BIND, "") },
		"umount":           func(a []string) (string, error) { return "", unix.Unmount(a[0], unix.MNT_DETACH) },
		"shm":              shm,
		"shm-key":          shmKey,
		"msg":              func(a []string) (string, error) { return "", ipcStat(unix.SYS_MSGCTL, a[0]) },
		"sem":              sem,
		"mqueue":           mqueue,
		"ioctl":            ioctl,
		"ioctl-path":       ioctlPath,
		"seccomp-listener": seccompListener,
		"seccomp-more":     seccompMore,
		"landlock-more":    landlockMore,
		"keyctl-session":   func([]string) (string, error) { _, err := unix.KeyctlJoinSessionKeyring(""); return "", err },
	})
}

// Commands of ipc(2).
const (
	ipcStatCmd = 2
	ipcCreat   = 0o1000
	ipcExcl    = 0o2000
)

func ipcStat(nr uintptr, id string) error {
	n, err := strconv.Atoi(id)
	if err != nil {
		return err
	}
	var buf [256]byte
	_, _, e := unix.Syscall(nr, uintptr(n), ipcStatCmd, addr(&buf))
	return errno(e)
}

// shm attaches a segment of the host by its id.
func shm(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	b, err := unix.SysvShmAttach(n, 0, unix.SHM_RDONLY)
	if err == nil {
		_ = unix.SysvShmDetach(b)
	}
	return "", err
}

// shmKey looks a segment of the host up by its key.
func shmKey(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	_, err = unix.SysvShmGet(n, 0, 0)
	return "", err
}

func sem(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	var buf [256]byte
	_, _, e := unix.Syscall6(unix.SYS_SEMCTL, uintptr(n), 0, ipcStatCmd, addr(&buf), 0, 0)
	return "", errno(e)
}

// mqueue opens a POSIX message queue by its name, without the slash
// (mq_overview(7): the system call has none).
func mqueue(a []string) (string, error) {
	name, err := unix.BytePtrFromString(a[0])
	if err != nil {
		return "", err
	}
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY, 0, 0, 0, 0)
	if e == 0 {
		unix.Close(int(fd))
	}
	return "", errno(e)
}

// ioctl issues a request on a descriptor, with a zeroed buffer.
func ioctl(a []string) (string, error) {
	fd, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	return "", request(fd, a[1])
}

func request(fd int, req string) error {
	n, err := strconv.ParseUint(req, 0, 64)
	if err != nil {
		return err
	}
	var buf [256]byte
	buf[0] = 'x'
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(n), addr(&buf))
	return errno(e)
}

func ioctlPath(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(fd)
	return "", request(fd, a[1])
}

// allowAll is a filter of one instruction, SECCOMP_RET_ALLOW.
var allowAll = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}}

func install(flags uintptr) (uintptr, error) {
	prog := unix.SockFprog{Len: 1, Filter: &allowAll[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, 1, flags, uintptr(unsafe.Pointer(&prog)))
	return fd, errno(e)
}

// seccompListener asks to be told of calls (SECCOMP_FILTER_FLAG_NEW_LISTENER).
func seccompListener([]string) (string, error) {
	fd, err := install(1 << 3)
	if err == nil {
		unix.Close(int(fd))
	}
	return "", err
}

// seccompMore adds a filter that allows everything and tries what the first
// one refuses: a later filter takes nothing back.
func seccompMore([]string) (string, error) {
	if _, err := install(0); err != nil {
		return "", at("install", err)
	}
	return "", unix.Unshare(unix.CLONE_NEWUTS)
}

// landlockMore enforces a ruleset that allows everything on top and tries
// what the first one refuses.
func landlockMore(a []string) (string, error) {
	attr := struct{ fs, net, scoped uint64 }{fs: 1 << 2}
	rules, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if e != 0 {
		return "", at("create", e)
	}
	defer unix.Close(int(rules))
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(root)
	var rule [12]byte
	rule[0] = 1 << 2
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(root)
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, 1, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return "", at("add", e)
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); e != 0 {
		return "", at("restrict", e)
	}
	return read(a)
}

func addr[T [32]byte | [256]byte](b *T) uintptr { return uintptr(unsafe.Pointer(b)) }

func addr8(n *uint64) uintptr { return uintptr(unsafe.Pointer(n)) }
