// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"fds":         fds,
		"status":      status,
		"limit":       limit,
		"raise-limit": raiseLimit,
		"prctl-get":   prctlGet,
		"nnp-off":     func([]string) (string, error) { return "", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) },
		"ambient": func([]string) (string, error) {
			return "", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0)
		},
		"capset":     capset,
		"uid":        uid,
		"env":        func(a []string) (string, error) { return fmt.Sprintf("%q", os.Getenv(a[0])), nil },
		"exec":       execute,
		"exec-copy":  execCopy,
		"exec-memfd": execMemfd,
		"exec-fd":    execFD,
		"crash":      crash,
		"map-exec":   mapExec,
		"pids":       pids,
	})
}

// fds says which descriptors are open; the runtime's own close on exec, but
// are there now.
func fds([]string) (string, error) {
	var open []int
	const most = 4096
	for fd := range most {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			open = append(open, fd)
		}
	}
	return "fds " + strings.Trim(fmt.Sprint(open), "[]"), nil
}

// status answers with a line of /proc/self/status.
func status(a []string) (string, error) {
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, a[0]+":"); ok {
			if v = strings.Join(strings.Fields(v), " "); v == "" {
				v = "none"
			}
			return v, nil
		}
	}
	return "no such line", nil
}

func limit(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(n, &r); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d", r.Cur, r.Max), nil
}

func raiseLimit(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	return "", unix.Prlimit(0, n, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil)
}

func prctlGet(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	v, err := unix.PrctlRetInt(n, 0, 0, 0, 0)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(v), nil
}

// capset asks for one capability.
func capset(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	data[n/32].Effective, data[n/32].Permitted = 1<<(n%32), 1<<(n%32)
	return "", unix.Capset(&hdr, &data[0])
}

// uid says whether the process is root.
func uid([]string) (string, error) {
	r, e, s := unix.Getresuid()
	if r == 0 || e == 0 || s == 0 {
		return "root", nil
	}
	return "not root", nil
}

// child is what this program does when an act executes it.
func child(part string) int {
	if part != "uid" {
		return 2
	}
	r, e, s := unix.Getresuid()
	fmt.Print(r, " ", e, " ", s)
	return 0
}

// start runs a program and returns what it printed.
func start(argv ...string) (string, syscall.WaitStatus, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return "", 0, err
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Files: []uintptr{0, uintptr(p[1]), 2}})
	unix.Close(p[1])
	defer unix.Close(p[0])
	if e, ok := err.(syscall.Errno); ok {
		return "", 0, e
	} else if err != nil {
		return "", 0, err
	}
	b := make([]byte, 64)
	n, _ := unix.Read(p[0], b)
	var ws syscall.WaitStatus
	_, err = syscall.Wait4(pid, &ws, 0, nil)
	return string(b[:max(n, 0)]), ws, err
}

// execute runs a program's "uid" part: the answer is whether its ids are ours.
func execute(a []string) (string, error) {
	out, ws, err := start(a[0], "child", "uid")
	if err != nil {
		return "", err
	}
	u := strconv.Itoa(unix.Getuid())
	switch {
	case ws.ExitStatus() != 0:
		return fmt.Sprintf("ended with %#x", int(ws)), nil
	case out == u+" "+u+" "+u:
		return "runs as we do", nil
	}
	return "runs as " + out, nil
}

func own() ([]byte, error) { return os.ReadFile("/proc/self/exe") }

// execCopy copies this program to a path and executes the copy.
func execCopy(a []string) (string, error) {
	b, err := own()
	if err != nil {
		return "", at("read", err)
	}
	fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return "", err
	}
	defer unix.Unlink(a[0])
	n, err := unix.Write(fd, b)
	unix.Close(fd)
	if err != nil || n < len(b) {
		return "", at("write", err)
	}
	return execute(a)
}

// execMemfd executes a file that is in memory alone.
func execMemfd([]string) (string, error) {
	b, err := own()
	if err != nil {
		return "", at("read", err)
	}
	fd, err := unix.MemfdCreate("prisoner", 0)
	if err != nil {
		return "", at("memfd_create", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, b); err != nil {
		return "", at("write", err)
	}
	return execute([]string{"/proc/self/fd/" + strconv.Itoa(fd)})
}

// execFD executes a file by an open descriptor, as execveat does.
func execFD(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_PATH, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(fd)
	return execute([]string{"/proc/self/fd/" + strconv.Itoa(fd)})
}

// crash has a child end by a signal that dumps core.
func crash([]string) (string, error) {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return "", e
	}
	if pid == 0 {
		// No handler of the runtime: the default action, then the signal.
		var sa [32]byte
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGQUIT), addr(&sa), 0, 8, 0, 0)
		var set uint64
		unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 2, addr8(&set), 0, 8, 0, 0)
		self, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		unix.RawSyscall(unix.SYS_KILL, self, uintptr(unix.SIGQUIT), 0)
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &ws, 0, nil); err != nil {
		return "", err
	}
	if !ws.Signaled() {
		return "did not crash", nil
	}
	return fmt.Sprintf("dumped %v", ws.CoreDump()), nil
}

// mapExec maps a file for execution, which a loader does with a library.
func mapExec(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(fd)
	b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err == nil {
		unix.Munmap(b)
	}
	return "", err
}

// pids says how many processes /proc shows that are not ours.
func pids([]string) (string, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return "", err
	}
	var others []string
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil || pid == unix.Getpid() {
			continue
		}
		if b, err := os.ReadFile("/proc/" + n.Name() + "/status"); err == nil && !strings.Contains(string(b), "\nPPid:\t"+strconv.Itoa(unix.Getpid())+"\n") {
			others = append(others, n.Name())
		}
	}
	sort.Strings(others)
	if len(others) > 0 {
		return "sees others", nil
	}
	return "alone", nil
}
