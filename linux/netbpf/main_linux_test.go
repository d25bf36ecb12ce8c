// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is its own prisoner: started with this variable it carries
// out the acts that it reads and answers with their errno.
const roleVar = "THOLE_NETBPF_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "prisoner":
		prisoner(true)
	case "prisoner-hostnet":
		prisoner(false)
	case "open":
		e, err := Open(Options{CgroupRoot: os.Args[1], Parent: os.Args[2], BPFFS: os.Args[3]})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		e.Close()
	case "crash":
		// Dies holding a ring, as a killed agent does.
		e, err := Open(Options{CgroupRoot: os.Args[1], Parent: os.Args[2], BPFFS: os.Args[3]})
		if err == nil {
			_, err = e.NewRing(1 << 16)
		}
		fmt.Println(err)
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	os.Exit(0)
}

// What a prisoner answers beside an errno, plus the errno that explains it.
const (
	noSocket = 10000 // there was nothing to act with
	noRing   = 20000 // io_uring_setup failed
	noOpcode = 30000 // this kernel's io_uring lacks the operation
	sent     = 40000 // sendmmsg: plus the number of messages
)

// call is one act of a prisoner.
type call struct {
	Op     string // see do
	Family int
	Type   int
	Proto  int
	IP     string
	Port   int
	Path   []byte
	Unspec bool   // sockaddr family AF_UNSPEC
	N      int    // loop
	Async  bool   // io_uring: by a worker thread of the kernel
	Then   string // sendmmsg: the second message's destination
}

func prisoner(ownNet bool) {
	runtime.LockOSThread()
	if ownNet {
		// No traffic can leave, whatever is allowed.
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			fmt.Println("unshare:", err)
			os.Exit(1)
		}
		// So that the kernel itself would make a ping socket.
		os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0)
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var calls []call
		if err := in.Decode(&calls); err != nil {
			return
		}
		errnos := make([]int, len(calls))
		for i := range calls {
			errnos[i] = calls[i].do()
		}
		out.Encode(errnos)
	}
}

func errno(err error) int {
	var e syscall.Errno
	if errors.As(err, &e) {
		return int(e)
	}
	return 0
}

func (c *call) sockaddr() unix.Sockaddr {
	a := netip.MustParseAddr(c.IP)
	if c.Family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: c.Port, Addr: a.Unmap().As4()}
	}
	return &unix.SockaddrInet6{Port: c.Port, Addr: a.As16()}
}

func (c *call) do() int {
	switch c.Op {
	case "loop":
		return c.loop()
	case "cookie":
		n, _ := NetnsCookie()
		return int(n)
	case "lo":
		return loopbackUp()
	case "uring socket":
		return c.uring(-1)
	case "connect smc":
		const afSMC = 43
		fd, err := unix.Socket(afSMC, c.Type|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return noSocket + errno(err)
		}
		defer unix.Close(fd)
		return errno(unix.Connect(fd, c.sockaddr()))
	}
	fd, err := unix.Socket(c.Family, c.Type|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, c.Proto)
	if c.Op == "socket" || err != nil {
		if err == nil {
			unix.Close(fd)
		} else if c.Op != "socket" {
			return noSocket + errno(err)
		}
		return errno(err)
	}
	defer unix.Close(fd)
	switch c.Op {
	case "connect":
		return errno(unix.Connect(fd, c.sockaddr()))
	case "sendto":
		if c.Unspec {
			raw := unix.RawSockaddrInet4{Family: unix.AF_UNSPEC, Port: uint16(c.Port>>8 | c.Port<<8), Addr: netip.MustParseAddr(c.IP).As4()}
			return rawSendto(fd, &raw)
		}
		return errno(unix.Sendto(fd, []byte("x"), 0, c.sockaddr()))
	case "fastopen":
		return errno(unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, c.sockaddr()))
	case "bind":
		return errno(unix.Bind(fd, c.sockaddr()))
	case "unix":
		return rawUnix(fd, c.Path, false)
	case "unixsend":
		return rawUnix(fd, c.Path, true)
	case "fastopen connect":
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
			return noSocket + errno(err)
		}
		return errno(unix.Connect(fd, c.sockaddr()))
	case "sendmmsg":
		return c.sendmmsg(fd)
	case "uring connect", "uring bind", "uring sendmsg", "uring send":
		return c.uring(fd)
	}
	return -1
}

// loop connects N times and returns how often that was not refused with EPERM.
func (c *call) loop() int {
	passed := 0
	for range c.N {
		one := *c
		one.Op = "connect"
		if one.do() != int(unix.EPERM) {
			passed++
		}
	}
	return passed
}

type jail struct {
	t     testing.TB
	e     *Enforcer
	root  string
	name  string
	fs    string
	count int
}

var jails atomic.Int32

func cgroupRoot(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: attaches programs to a cgroup")
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if pre, post, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(post, "cgroup2 ") {
			return strings.Fields(pre)[4]
		}
	}
	t.Skip("no cgroup v2 hierarchy is mounted")
	return ""
}

// newJail makes an enforcer with a parent, a bpf file system and everything
// else of its own, and checks at the end that nothing is left.
func newJail(t testing.TB) *jail {
	t.Helper()
	j := &jail{t: t, root: cgroupRoot(t), fs: t.TempDir(),
		name: fmt.Sprintf("thole-test-%d-%d", os.Getpid(), jails.Add(1))}
	before := openFiles(t)
	t.Cleanup(func() {
		if j.e != nil {
			j.e.Close()
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d descriptors open, %d before", after, before)
		}
		if err := unix.Unmount(j.fs, 0); err != nil && err != unix.EINVAL {
			t.Errorf("unmount %s: %v", j.fs, err)
		}
		if err := os.Remove(filepath.Join(j.root, j.name)); err != nil && !os.IsNotExist(err) {
			t.Errorf("remove parent cgroup: %v", err)
		}
	})
	j.open()
	return j
}

func (j *jail) options() Options {
	return Options{CgroupRoot: j.root, Parent: j.name, BPFFS: j.fs}
}

func (j *jail) open() {
	j.t.Helper()
	if j.e != nil {
		j.e.Close()
	}
	e, err := Open(j.options())
	if err != nil {
		var x *Error
		if errors.As(err, &x) && x.Log != "" {
			j.t.Log(x.Log[max(0, len(x.Log)-4000):])
		}
		if errors.Is(err, unix.EPERM) {
			j.t.Skip("the kernel lets this process load no programs: ", err)
		}
		j.t.Fatal(err)
	}
	j.e = e
}

func openFiles(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range d {
		// The runtime opens its own poller when it first needs one.
		if l, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.Contains(l, "eventpoll") && !strings.Contains(l, "eventfd") {
			n++
		}
	}
	return n
}

// cell is a sandbox's cgroup with a prisoner in it.
type cell struct {
	j   *jail
	dir string
	id  uint64
	fd  *os.File
	cmd *exec.Cmd
	in  *json.Encoder
	inw io.WriteCloser
	out *json.Decoder

	cookie uint64 // of the prisoner's network namespace, once asked for
}

func (j *jail) cell(role string) *cell {
	j.t.Helper()
	j.count++
	return j.cellAt(filepath.Join(j.root, j.name, fmt.Sprint("cell", j.count)), role)
}

// outside is a cell beside the parent, where nothing is attached.
func (j *jail) outside(name, role string) *cell {
	j.t.Helper()
	return j.cellAt(filepath.Join(j.root, j.name+"-"+name), role)
}

func (j *jail) cellAt(dir, role string) *cell {
	t := j.t
	t.Helper()
	c := &cell{j: j, dir: dir}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(c.dir) })
	var err error
	if c.fd, err = os.Open(c.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.fd.Close() })
	if c.id, err = CgroupID(int(c.fd.Fd())); err != nil {
		t.Fatal(err)
	}
	if role == "" {
		return c
	}
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), roleVar+"="+role)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(c.fd.Fd())}
	c.cmd.Stderr = os.Stderr
	c.inw, _ = c.cmd.StdinPipe()
	outr, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = json.NewEncoder(c.inw), json.NewDecoder(outr)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	return c
}

// end has the prisoner leave.
func (c *cell) end() {
	c.inw.Close()
	c.cmd.Wait()
}

// act has the prisoner do all calls and returns their errno.
func (c *cell) act(calls ...call) []int {
	c.j.t.Helper()
	if err := c.in.Encode(calls); err != nil {
		c.j.t.Fatal(err)
	}
	var out []int
	if err := c.out.Decode(&out); err != nil {
		c.j.t.Fatal(err)
	}
	return out
}

// netns returns the cookie of the prisoner's network namespace.
func (c *cell) netns() uint64 {
	c.j.t.Helper()
	if c.cookie == 0 {
		if c.cookie = uint64(c.act(call{Op: "cookie"})[0]); c.cookie == 0 {
			c.j.t.Skip("the kernel does not number network namespaces (Linux 5.14)")
		}
	}
	return c.cookie
}

// addresses lists the prisoner's network namespace with these addresses. A
// policy that names it must come before for it to stay listed.
func (c *cell) addresses(env *Env) {
	c.j.t.Helper()
	if err := c.j.e.SyncOwn(c.netns(), env.Own); err != nil {
		c.j.t.Fatal(err)
	}
	if err := c.j.e.SyncResolvers(c.netns(), env.Resolvers); err != nil {
		c.j.t.Fatal(err)
	}
}

func (c *cell) put(p *Policy) *Image {
	c.j.t.Helper()
	im, err := Compile(p)
	if err != nil {
		c.j.t.Fatal(err)
	}
	if err := c.j.e.Put(c.id, im.InNetns(c.cookie)); err != nil {
		c.j.t.Fatal(err)
	}
	return im
}

// ring attaches a new ring to the cell.
func (c *cell) ring(size int) *Ring {
	c.j.t.Helper()
	r, err := c.j.e.NewRing(size)
	if err != nil {
		c.j.t.Fatal(err)
	}
	c.j.t.Cleanup(func() { r.Close() })
	if err := r.Attach(c.id); err != nil {
		c.j.t.Fatal(err)
	}
	return r
}

// events drains a ring.
func events(t testing.TB, r *Ring) []Event {
	t.Helper()
	var out []Event
	r.Drain(func(b []byte) {
		e, err := DecodeEvent(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	})
	return out
}
