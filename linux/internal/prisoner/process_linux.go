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
		"kill":       kill,
		"tgkill":     tgkill,
		"pidfd-kill": pidfdKill,
		"kill-all":   killAll,
		"sigqueue":   sigqueue,
		"setown":     setown,
		"prlimit":    prlimitOther,
		"affinity":   affinity,
		"ptrace":     func(a []string) (string, error) { return "", issue(unix.SYS_PTRACE, append([]string{"0x4206"}, a...)) }, // PTRACE_SEIZE
		"vm-read":    vmRead,
		"getfd":      getfd,
		"clone":      clone,
		"unshare":    func(a []string) (string, error) { return "", issue(unix.SYS_UNSHARE, a) },
		"setns":      setns,
		"setpgid": func(a []string) (string, error) {
			return "", onPid(a[0], func(pid int) error { return unix.Setpgid(pid, 0) })
		},
		"getsid": func(a []string) (string, error) {
			return "", onPid(a[0], func(pid int) error { _, err := unix.Getsid(pid); return err })
		},
	})
}

func onPid(s string, f func(pid int) error) error {
	pid, err := strconv.Atoi(s)
	if err != nil {
		return err
	}
	return f(pid)
}

// kill takes a pid and a signal; 0 asks for the permission alone, by the same
// checks.
func kill(a []string) (string, error) {
	sig, err := strconv.Atoi(a[1])
	if err != nil {
		return "", err
	}
	return "", onPid(a[0], func(pid int) error { return unix.Kill(pid, unix.Signal(sig)) })
}

func tgkill(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error { return unix.Tgkill(pid, pid, unix.Signal(0)) })
}

func pidfdKill(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return at("pidfd_open", err)
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.Signal(0), nil, 0)
	})
}

// killAll sends everyone a signal that is ignored unless it is waited for. The
// kernel's answer says nothing (refusals are left out of it): the test looks
// whether the signal came.
func killAll([]string) (string, error) { return "", unix.Kill(-1, unix.SIGWINCH) }

// sigqueue queues signal 0 with a value.
func sigqueue(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		info := make([]byte, 128)
		si := (*struct{ signo, errno, code int32 })(unsafe.Pointer(&info[0]))
		si.code = -1 // SI_QUEUE
		_, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, uintptr(unsafe.Pointer(&info[0])))
		return errno(e)
	})
}

// setown has the kernel send a signal on this process's behalf when a pipe
// becomes readable. The test looks whether it came.
func setown(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return at("pipe", err)
		}
		defer unix.Close(p[0])
		defer unix.Close(p[1])
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGWINCH)); err != nil {
			return at("F_SETSIG", err)
		}
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, pid); err != nil {
			return at("F_SETOWN", err)
		}
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
			return at("F_SETFL", err)
		}
		_, err := unix.Write(p[1], []byte("x"))
		return err
	})
}

// prlimitOther reads another process's limit on open files.
func prlimitOther(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		var r unix.Rlimit
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &r)
	})
}

// affinity gives another process the processors that it has.
func affinity(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			return at("get", err)
		}
		return unix.SchedSetaffinity(pid, &set)
	})
}

func vmRead(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		remote := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
		_, err := unix.ProcessVMReadv(pid, local, remote, 0)
		return err
	})
}

func getfd(a []string) (string, error) {
	return "", onPid(a[0], func(pid int) error {
		p, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return at("pidfd_open", err)
		}
		defer unix.Close(p)
		fd, err := unix.PidfdGetfd(p, 0, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}

// clone makes a process with flags; what is made ends at once.
func clone(a []string) (string, error) {
	flags, err := strconv.ParseUint(a[0], 0, 64)
	if err != nil {
		return "", err
	}
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(flags)|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return "", e
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err = unix.Wait4(int(pid), nil, 0, nil)
	return "", at("wait", err)
}

// setns enters a namespace of another process by its file, or by a pidfd.
func setns(a []string) (string, error) {
	var fd int
	var err error
	flags := 0
	if pid, e := strconv.Atoi(a[0]); e == nil {
		fd, err = unix.PidfdOpen(pid, 0)
		flags = unix.CLONE_NEWNS
	} else {
		fd, err = unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(fd)
	return "", unix.Setns(fd, flags)
}
