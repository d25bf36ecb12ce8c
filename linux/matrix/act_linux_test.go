// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// roleVar makes the test binary a program of the tests in the guest. In a
// sandbox the variable has to be let through: --env.
const roleVar = "THOLE_MATRIX_ROLE"

// act does one thing and prints what the kernel said: "ok" or the errno.
func act(role string) int {
	args := os.Args[1:]
	var err error
	switch role {
	case "tcp", "udp", "unix":
		network := map[string]string{"tcp": "tcp", "udp": "udp", "unix": "unix"}[role]
		var c net.Conn
		if c, err = net.DialTimeout(network, args[0], 2*time.Second); err == nil {
			if role == "udp" {
				_, err = c.Write([]byte("x"))
			}
			c.Close()
		}
	case "listen":
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			l.Close()
		}
	case "read":
		_, err = os.ReadFile(args[0])
	case "list":
		_, err = os.ReadDir(args[0])
	case "write":
		err = os.WriteFile(args[0], []byte("x"), 0o644)
	case "chmod":
		err = os.Chmod(args[0], 0o777)
	case "kill":
		pid, _ := strconv.Atoi(args[0])
		err = unix.Kill(pid, 0)
	case "userns":
		err = unix.Unshare(unix.CLONE_NEWUSER)
	case "bpf":
		_, _, e := unix.Syscall(unix.SYS_BPF, 0, 0, 0)
		err = e
	case "memory":
		err = allocate(args[0])
	case "spin":
		err = spin()
	case "fork":
		err = forkMany(args[0])
	case "deny-bpf":
		err = denyBPF(args)
	default:
		err = errors.New("no such role")
	}
	fmt.Println(errnoName(err))
	if err != nil {
		return 1
	}
	return 0
}

// errnoName is "ok", the errno, or what else went wrong.
func errnoName(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return err.Error()
}

// allocate touches that many MiB.
func allocate(mib string) error {
	n, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	b, err := unix.Mmap(-1, 0, n<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return nil
}

// spin computes, and prints a line now and then until nobody reads it.
func spin() error {
	for {
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
		if _, err := fmt.Println("spinning"); err != nil {
			return err
		}
	}
}

// forkMany starts that many processes that stay until all were tried.
func forkMany(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	var all []*exec.Cmd
	for range n {
		c := exec.Command("/bin/sleep", "1000")
		c.Stdin = r
		if err = c.Start(); err != nil {
			break
		}
		all = append(all, c)
	}
	w.Close()
	for _, c := range all {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return err
}

// denyBPF executes a program under a seccomp filter that answers bpf(2) with
// an errno: a host whose kernel or container lets nobody load programs.
func denyBPF(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BPF, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(n)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))); e != 0 {
		return e
	}
	os.Unsetenv(roleVar)
	return unix.Exec(args[1], args[1:], os.Environ())
}
