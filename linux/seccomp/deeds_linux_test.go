// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// deeds are what an honest program does; each names what went wrong.
var deeds = map[string]func() error{
	"threads": func() error {
		var wg sync.WaitGroup
		tids := make([]int, 8)
		for i := range tids {
			wg.Go(func() {
				runtime.LockOSThread() // not unlocked: the thread ends
				tids[i] = unix.Gettid()
			})
		}
		wg.Wait()
		seen := map[int]bool{unix.Gettid(): true}
		for _, tid := range tids {
			if seen[tid] {
				return fmt.Errorf("thread ids %v", tids)
			}
			seen[tid] = true
		}
		return nil
	},
	"exec": func() error { return exec.Command("/bin/true").Run() },
	"shell": func() error {
		out, err := exec.Command("/bin/sh", "-c", "(echo a; echo b) | sort -r | head -n 1").Output()
		if err == nil && string(out) != "b\n" {
			err = fmt.Errorf("printed %q", out)
		}
		return err
	},
	"file": func() error {
		if err := os.WriteFile("f", []byte("x"), 0o600); err != nil {
			return err
		}
		return errors.Join(os.Chmod("f", 0o644), os.Rename("f", "g"), os.Remove("g"),
			os.Mkdir("d", 0o755), os.Remove("d"), unix.Mkfifo("p", 0o600), os.Remove("p"))
	},
	"setid":       func() error { return errors.Join(os.WriteFile("s", nil, 0o700), unix.Chmod("s", 0o4700)) },
	"memory":      func() error { return mapExecutable() },
	"memfd":       func() error { return shut(unix.MemfdCreate("m", unix.MFD_CLOEXEC)) },
	"sealedMemfd": func() error { return shut(unix.MemfdCreate("m", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)) },
	"streamPair":  func() error { return pair(unix.SOCK_STREAM) },
	"packetPair":  func() error { return pair(unix.SOCK_SEQPACKET) },
	"dgramPair":   func() error { return pair(unix.SOCK_DGRAM) },
	"unix":        func() error { return shut(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)) },
	"tcp":         func() error { return shut(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)) },
	"tcp6":        func() error { return shut(unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 6)) },
	"udp":         func() error { return shut(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 17)) },
	"raw":         func() error { return shut(unix.Socket(unix.AF_INET, unix.SOCK_RAW, 255)) },
	"netlink":     func() error { return shut(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)) },
	"epoll":       func() error { return shut(unix.EpollCreate1(unix.EPOLL_CLOEXEC)) },
	"shm": func() error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT)
		if err != nil {
			return err
		}
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	},
	"persona": func() error {
		for _, p := range []uintptr{0xffffffff, 0x40000, 0} {
			if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, p, 0, 0); errno != 0 {
				return fmt.Errorf("personality %#x: %w", p, errno)
			}
		}
		return nil
	},
	"filter": func() error { return install([]Filter{{Code: retK, K: uint32(Allow)}}, flagTsync) },
	"landlock": func() error {
		_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
		if errno == unix.EOPNOTSUPP || errno == unix.ENOSYS {
			return nil // the kernel's own answer where it has none
		}
		return orNil(errno)
	},
	"pidfd": func() error {
		fd, err := unix.PidfdOpen(unix.Getpid(), 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.PidfdSendSignal(fd, 0, nil, 0), unix.Close(fd))
	},
	"nodelay": func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1), unix.Close(fd))
	},
	"terminal": func() error {
		_, err := unix.IoctlGetTermios(0, unix.TCGETS)
		if err == unix.ENOTTY {
			err = nil // the kernel's own answer
		}
		return err
	},
	"openat2": func() error {
		return shut(unix.Openat2(unix.AT_FDCWD, ".", &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC}))
	},
	"listen": func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Listen(fd, 1), unix.Close(fd))
	},
}

func orNil(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func shut(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func pair(typ int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Close(fds[0]), unix.Close(fds[1]))
}

func mapExecutable() error {
	m, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return errors.Join(unix.Mprotect(m, unix.PROT_READ|unix.PROT_EXEC), unix.Munmap(m))
}

// TestPermitted lets victims do what honest programs do, with each set of
// options; what a set refuses is named with the error number it answers.
func TestPermitted(t *testing.T) {
	a := native(t)
	always := []string{
		"threads", "exec", "shell", "file", "memory", "sealedMemfd", "streamPair", "packetPair", "epoll",
		"persona", "filter", "landlock", "pidfd", "terminal",
	}
	eperm, nosys := unix.EPERM.Error(), unix.ENOSYS.Error()
	for _, c := range []struct {
		o       Options
		does    []string
		refused map[string]string
	}{
		{Options{}, []string{"memfd", "setid", "openat2"}, map[string]string{
			"dgramPair": eperm, "unix": eperm, "tcp": eperm, "tcp6": eperm, "udp": eperm, "raw": eperm, "netlink": eperm}},
		{Options{Log: true}, nil, map[string]string{"unix": eperm}},
		{Options{Unix: true}, []string{"unix", "dgramPair"}, map[string]string{"tcp": eperm, "tcp6": eperm, "netlink": eperm}},
		{Options{Inet: true}, []string{"tcp", "tcp6", "udp", "nodelay"}, map[string]string{
			"unix": eperm, "netlink": eperm, "dgramPair": eperm, "listen": eperm}},
		{Options{Inet: true, StrictTypes: true}, []string{"tcp", "tcp6", "udp"}, map[string]string{"raw": eperm}},
		{Options{Inet: true, InetStreamOnly: true}, []string{"tcp", "tcp6"}, map[string]string{"udp": eperm, "raw": eperm}},
		{Options{NoSysV: true}, nil, map[string]string{"shm": eperm}},
		{Options{NoSetID: true}, nil, map[string]string{"setid": eperm, "openat2": nosys}},
		{Options{NoExecMemfd: true}, nil, map[string]string{"memfd": eperm}},
	} {
		t.Run(label(c.o), func(t *testing.T) {
			c.o.Arch = a
			o := order{Options: c.o, Do: append(append([]string(nil), always...), c.does...)}
			for name := range c.refused {
				o.Do = append(o.Do, name)
			}
			free := mustRun(t, order{None: true, Do: o.Do})
			held := mustRun(t, o)
			for _, name := range o.Do {
				want := c.refused[name]
				if want == "" {
					// A host that cannot do it unconfined shows nothing.
					want = free.Deeds[name]
				} else if free.Deeds[name] == want {
					t.Logf("%s: this host answers the same without a filter", name)
				}
				if held.Deeds[name] != want {
					t.Errorf("%s: %s, want %s", name, held.Deeds[name], want)
				}
			}
		})
	}
}

// TestDatagramPairReaches shows the reason for refusing datagram pairs: an end
// sends to a socket that is not its peer.
func TestDatagramPairReaches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if err := unix.Bind(server, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	reach := func(typ int) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path})
	}
	if err := reach(unix.SOCK_DGRAM); err != nil {
		t.Errorf("datagram pair: %v: it no longer reaches others, the rule can go", err)
	}
	for _, typ := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		if err := reach(typ); err == nil {
			buf := make([]byte, 8)
			if n, _, _ := unix.Recvfrom(server, buf, unix.MSG_DONTWAIT); n > 1 {
				t.Errorf("type %d reaches a socket that is not its peer", typ)
			}
		}
	}
}
