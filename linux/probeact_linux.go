// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tholehq/thole/linux/cgroup"
	"golang.org/x/sys/unix"
)

// ProbeActs is the confined side of a probe: it does the acts that text lists,
// writes what came of each to out, a JSON object a line, and waits until in
// ends. Every act is harmless wherever it is done; an error means that none
// was done.
func ProbeActs(text string, in io.Reader, out io.Writer) error {
	acts, err := parseActs(text)
	if err != nil {
		return err
	}
	for _, a := range acts {
		var b []byte
		for _, o := range do(a) {
			b = appendOutcome(b, o)
		}
		// A line at a time: an act may be the last one.
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	if _, err := out.Write(appendOutcome(nil, outcome{ID: lastID})); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// do does one act; a program that is started adds its own outcomes, their ids
// behind the act's.
func do(a act) []outcome {
	if a.Op == opExec {
		return doExec(a)
	}
	o := outcome{ID: a.ID}
	var err error
	switch a.Op {
	case opRead, opOpenWrite, opCreate, opDevice, opList:
		err = doOpen(a)
	case opStat:
		var st unix.Stat_t
		err = unix.Lstat(a.Path, &st)
	case opChmod:
		var st unix.Stat_t
		if err = unix.Lstat(a.Path, &st); err == nil {
			err = unix.Fchmodat(unix.AT_FDCWD, a.Path, st.Mode&0o7777, 0)
		}
	case opTouch:
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		err = unix.UtimesNanoAt(unix.AT_FDCWD, a.Path, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	case opUnlink:
		err = unix.Unlink(a.Path)
	case opRename:
		err = unix.Rename(a.Path, a.Path+".new")
	case opTCP, opUDP, opListen, opBind, opUnix, opUnixDgram, opSocketpair:
		err = doSocket(a)
	case opKill:
		err = unix.Kill(a.N, 0)
	case opIDs:
		o.Text = strconv.Itoa(unix.Geteuid())
	case opCgroup:
		var b []byte
		if b, err = os.ReadFile("/proc/self/cgroup"); err == nil {
			o.Text, err = cgroup.Self(string(b))
		}
	case opFork:
		err = doFork(a.N)
	case opBurn:
		err = doBurn(time.Duration(a.N) * time.Millisecond)
	case opAlloc:
		err = doAlloc(a.N << 20)
	default:
		err = unix.ENOTSUP
	}
	o.Errno = errnoName(err)
	return []outcome{o}
}

// errnoName returns the name of err's system call error, "" for nil.
func errnoName(err error) string {
	if err == nil {
		return ""
	}
	var e syscall.Errno
	if !errors.As(err, &e) {
		return err.Error()
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return "errno " + strconv.Itoa(int(e))
}

func doOpen(a act) error {
	flags := unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	switch a.Op {
	case opList:
		flags |= unix.O_DIRECTORY
	case opOpenWrite:
		flags |= unix.O_WRONLY
	case opCreate:
		flags |= unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	case opDevice:
		flags |= unix.O_RDWR
	}
	fd, err := unix.Open(a.Path, flags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	switch a.Op {
	case opRead:
		_, err = unix.Read(fd, buf[:1])
	case opList:
		_, err = unix.Getdents(fd, buf)
	case opCreate:
		_, err = unix.Write(fd, []byte("x"))
	}
	return err
}

func doSocket(a act) error {
	if a.Op == opSocketpair {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fds[0], []byte("x"))
			_ = unix.Close(fds[0])
			_ = unix.Close(fds[1])
		}
		return err
	}
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	var sa unix.Sockaddr
	switch a.Op {
	case opUnix, opUnixDgram:
		family, sa = unix.AF_UNIX, &unix.SockaddrUnix{Name: a.Path}
		if a.Op == opUnixDgram {
			kind = unix.SOCK_DGRAM
		}
	case opListen:
	default:
		ap, err := netip.ParseAddrPort(a.Addr)
		if err != nil {
			return unix.EINVAL
		}
		if a.Op == opUDP {
			kind = unix.SOCK_DGRAM
		}
		family, sa = sockaddr(ap)
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch a.Op {
	case opListen:
		return unix.Listen(fd, 1)
	case opBind:
		return unix.Bind(fd, sa)
	}
	err = unix.Connect(fd, sa)
	if err != unix.EINPROGRESS {
		return err
	}
	// Within the machine this is settled at once, unless a filter drops it.
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 2000)
	if err != nil {
		return err
	}
	if n == 0 {
		return unix.ETIMEDOUT
	}
	e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && e != 0 {
		err = syscall.Errno(e)
	}
	return err
}

func sockaddr(ap netip.AddrPort) (int, unix.Sockaddr) {
	if ap.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

// doExec starts the probe's program at a.Path, sends it signal 0 while it
// waits, and ends it.
func doExec(a act) []outcome {
	fail := func(err error) []outcome { return []outcome{{ID: a.ID, Errno: errnoName(err)}} }
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return fail(err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(in[0])
		_ = unix.Close(in[1])
		return fail(err)
	}
	pid, _, err := syscall.StartProcess(a.Path, []string{"thole", probeCommand, encodeActs(a.Nested)},
		&syscall.ProcAttr{Env: []string{probeVar + "=1"}, Files: []uintptr{uintptr(in[0]), uintptr(out[1]), 2}})
	_ = unix.Close(in[0])
	_ = unix.Close(out[1])
	if err != nil {
		_ = unix.Close(in[1])
		_ = unix.Close(out[0])
		return fail(err)
	}
	text := readAnswer(os.NewFile(uintptr(out[0]), "answer"))
	kill := outcome{ID: a.ID + ".kill", Errno: errnoName(unix.Kill(pid, 0))}
	_ = unix.Close(in[1])
	reap(pid)
	parsed, whole, err := parseOutcomes(text)
	if err != nil || !whole {
		return []outcome{{ID: a.ID, Errno: "ENOEXEC", Text: "the program gave no whole answer"}}
	}
	res := []outcome{{ID: a.ID}, kill}
	for _, n := range a.Nested {
		if o, ok := parsed[n.ID]; ok {
			o.ID = a.ID + "." + n.ID
			res = append(res, o)
		}
	}
	return res
}

// readAnswer reads up to the line that ends an answer, or the end, and closes
// f.
func readAnswer(f *os.File) string {
	defer f.Close()
	const most = 1 << 20
	end := appendOutcome(nil, outcome{ID: lastID})
	var b strings.Builder
	buf := make([]byte, 32<<10)
	for b.Len() < most {
		n, err := f.Read(buf)
		b.Write(buf[:n])
		if s := b.String(); err != nil || s == string(end) || strings.HasSuffix(s, "\n"+string(end)) {
			break
		}
	}
	return b.String()
}

// doFork makes n processes that wait to be killed, and kills them.
func doFork(n int) error {
	var err error
	var pids []int
	for range n {
		pid, e := fork()
		if e != 0 {
			err = e
			break
		}
		pids = append(pids, int(pid))
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
		reap(pid)
	}
	return err
}

// fork makes a child that makes system calls alone: it has this thread only,
// so that nothing of the Go runtime works in it.
//
//go:noinline
//go:norace
func fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for {
		// ppoll without descriptors and without end.
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// doBurn computes until this process has used that much more processor time.
func doBurn(d time.Duration) error {
	var first, now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &first); err != nil {
		return err
	}
	for {
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
			return err
		}
		if time.Duration(now.Nano()-first.Nano()) >= d {
			return nil
		}
	}
}

// doAlloc takes memory and uses every page of it.
func doAlloc(n int) error {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	for i := 0; i < n; i += 4096 {
		binary.NativeEndian.PutUint64(b[i:], uint64(i)+1)
	}
	return unix.Munmap(b)
}
