// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package lsmbpf

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/linux/netbpf"
)

const roleVar = "THOLE_LSMBPF_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if role == "sandbox" {
		sandbox()
		return
	}
	// One layer, or as many as asked, on the main thread, then wait.
	runtime.LockOSThread()
	n, _ := strconv.Atoi(role)
	for range n {
		if err := restrict(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready", unix.Gettid())
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: loads programs")
	}
}

func cgroupRoot(t *testing.T) string {
	t.Helper()
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

// TestAttach attaches the LSM programs where the kernel takes them, and has a
// process of a sandbox try what they refuse.
func TestAttach(t *testing.T) {
	needRoot(t)
	root, fs := cgroupRoot(t), t.TempDir()
	name := fmt.Sprintf("thole-lsm-test-%d", os.Getpid())
	t.Cleanup(func() {
		unix.Unmount(fs, 0)
		os.Remove(filepath.Join(root, name))
	})
	e, err := netbpf.Open(netbpf.Options{CgroupRoot: root, Parent: name, BPFFS: fs})
	if err != nil {
		t.Skip("no network programs here: ", err)
	}
	defer e.Close()
	parent, err := netbpf.CgroupID(e.ParentFD())
	if err != nil {
		t.Fatal(err)
	}
	l, err := Attach(Config{Pins: e.Pins(), Parent: parent, JudgeUnix: !e.Features().Unix})
	if errors.Is(err, unix.EPERM) || errors.Is(err, ErrInactive) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("the kernel takes no LSM programs: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Logf("hooks %v, gaps %v", l.Hooks(), l.Gaps())

	leaf := filepath.Join(root, name, "leaf")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(leaf) })
	f, err := os.Open(leaf)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := netbpf.CgroupID(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	im, err := netbpf.Compile(&netbpf.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Put(id, im); err != nil {
		t.Fatal(err)
	}
	ring, err := e.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	if err := ring.Attach(id); err != nil {
		t.Fatal(err)
	}
	got := tryAll(t, f)
	seen := map[flat.Hook]flat.Rule{}
	ring.Drain(func(b []byte) {
		v, err := netbpf.DecodeEvent(b)
		if err != nil || v.Cgroup != id || v.Verdict != flat.Deny || v.Errno != uint16(unix.EPERM) {
			t.Errorf("event %+v, %v", v, err)
		}
		seen[v.Hook] = flat.Rule(v.Rule)
	})
	for hook, rule := range map[flat.Hook]flat.Rule{
		flat.HookLsmKill: flat.RuleSignal, flat.HookLsmPtrace: flat.RulePtrace, flat.HookLsmConnect: flat.RuleForeignSocket,
		flat.HookLsmSendmsg: flat.RuleForeignSocket, flat.HookLsmListen: flat.RuleListen, flat.HookLsmReceive: flat.RuleReceive,
		flat.HookLsmUserns: flat.RuleUserns,
	} {
		if seen[hook] != rule {
			t.Errorf("event of hook %d has rule %d, want %d", hook, seen[hook], rule)
		}
	}
	for name, hook := range map[string]string{
		"kill": "task_kill", "ptrace": "ptrace_access_check", "connect": "socket_connect", "sendmsg": "socket_sendmsg",
		"listen": "socket_listen", "receive": "file_receive", "userns": "userns_create", "unix": "unix_stream_connect",
	} {
		want := unix.EPERM
		if !slices.Contains(l.Hooks(), hook) && !(name == "unix" && e.Features().Unix) {
			t.Logf("%s: no hook %s: %v", name, hook, l.Gaps()[hook])
			continue
		}
		if name == "receive" {
			// The descriptor is left out of the message: see sandbox.
			want = unix.EBADF
		}
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	// Inside the sandbox nothing of this is refused.
	for _, name := range []string{"own kill", "own connect"} {
		if got[name] == unix.EPERM && name == "own kill" || got[name] != unix.EPERM && name == "own connect" {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	if s, err := e.Stats(id); err != nil || s.Denied == 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
	// A policy of rules is not judged here.
	if im, err = netbpf.Compile(&netbpf.Policy{Mode: netbpf.Rules, DefaultAllow: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.Put(id, im); err != nil {
		t.Fatal(err)
	}
	for name, errno := range tryAll(t, f) {
		if errno == unix.EPERM {
			t.Errorf("%s is refused under a policy of rules", name)
		}
	}
}

// tryAll has a process in a cgroup try everything once.
func tryAll(t *testing.T, cgroup *os.File) map[string]syscall.Errno {
	t.Helper()
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	inet := os.NewFile(uintptr(sock), "inet")
	defer inet.Close()
	sv, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(sv[0]), "ours"), os.NewFile(uintptr(sv[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	if err := unix.Sendmsg(sv[0], []byte("x"), unix.UnixRights(sock), nil, 0); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	srv, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := exec.Command(os.Args[0], path)
	c.Env = append(os.Environ(), roleVar+"=sandbox")
	c.ExtraFiles = []*os.File{inet, theirs}
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]syscall.Errno{}
	for line := range strings.Lines(string(out)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), "=")
		e, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("child says %q", out)
		}
		got[name] = syscall.Errno(e)
	}
	return got
}

// sandbox tries what LSM hooks refuse. Descriptor 3 is an inet socket made
// outside, 4 a unix socket with another one in a message.
func sandbox() {
	runtime.LockOSThread()
	say := func(name string, err error) {
		var e syscall.Errno
		if err != nil {
			errors.As(err, &e)
		}
		fmt.Printf("%s=%d\n", name, int(e))
	}
	say("kill", unix.Kill(os.Getppid(), 0))
	say("own kill", unix.Kill(os.Getpid(), 0))
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, 0x4206 /* PTRACE_SEIZE */, uintptr(os.Getppid()), 0, 0, 0, 0)
	say("ptrace", errnoOrNil(e))
	say("sendmsg", unix.Sendto(3, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}))
	say("connect", unix.Connect(3, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}))
	own, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	say("socket", err)
	say("own connect", unix.Connect(own, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}))
	say("listen", unix.Listen(own, 1))
	buf, oob := make([]byte, 8), make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(4, buf, oob, unix.MSG_DONTWAIT)
	if err == nil && n == 0 {
		err = unix.EBADF
	}
	say("receive", err)
	say("userns", userns())
	u, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	say("unix socket", err)
	say("unix", unix.Connect(u, &unix.SockaddrUnix{Name: os.Args[1]}))
}

func errnoOrNil(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// userns starts a child in a user namespace of its own.
func userns() error {
	c := exec.Command("/proc/self/exe")
	c.Env = []string{roleVar + "=0"}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return c.Run()
}

func newVerifier(t *testing.T) *Verifier {
	t.Helper()
	needRoot(t)
	v, err := NewVerifier()
	if errors.Is(err, unix.EPERM) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("the kernel does not take the verifying program: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// start runs a child with n Landlock layers.
func start(t *testing.T, bin string, n int, attr *syscall.SysProcAttr) int {
	t.Helper()
	c := exec.Command(bin)
	c.Dir = "/"
	c.Env = append(os.Environ(), roleVar+"="+strconv.Itoa(n))
	c.SysProcAttr = attr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	var tid int
	if _, scan := fmt.Sscanf(line, "ready %d", &tid); err != nil || scan != nil {
		t.Skipf("child: %q: no landlock here?", line)
	}
	return tid
}

// status reads fields of /proc/PID/status.
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		m[k] = strings.TrimSpace(v)
	}
	return m
}

// TestTask compares the program's answer with /proc, for this thread and for
// children with and without Landlock.
func TestTask(t *testing.T) {
	v := newVerifier(t)
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	for _, tt := range []struct {
		name   string
		layers int
		attr   *syscall.SysProcAttr
	}{{"free", 0, nil}, {"one layer", 1, nil}, {"three layers", 3, nil}, {"another user", 1, user}} {
		t.Run(tt.name, func(t *testing.T) {
			bin := os.Args[0]
			if tt.attr != nil {
				bin = publicCopy(t)
			}
			tid := start(t, bin, tt.layers, tt.attr)
			got, err := v.Task(tid)
			if err != nil {
				t.Fatal(err)
			}
			st := status(t, tid)
			uids := strings.Fields(st["Uid"])
			for _, c := range []struct{ name, got, want string }{
				{"uid", fmt.Sprint(got.UID, got.EUID, got.SUID, got.FSUID), strings.Join(uids, " ")},
				{"CapInh", fmt.Sprintf("%016x", got.Inheritable), st["CapInh"]},
				{"CapPrm", fmt.Sprintf("%016x", got.Permitted), st["CapPrm"]},
				{"CapEff", fmt.Sprintf("%016x", got.Effective), st["CapEff"]},
				{"CapBnd", fmt.Sprintf("%016x", got.Bounding), st["CapBnd"]},
				{"CapAmb", fmt.Sprintf("%016x", got.Ambient), st["CapAmb"]},
				{"Seccomp", fmt.Sprint(got.SeccompMode), st["Seccomp"]},
				{"Seccomp_filters", fmt.Sprint(got.SeccompFilters), st["Seccomp_filters"]},
				{"NoNewPrivs", fmt.Sprint(got.NoNewPrivs), fmt.Sprint(st["NoNewPrivs"] == "1")},
			} {
				if c.got != c.want {
					t.Errorf("%s is %s, /proc says %s", c.name, c.got, c.want)
				}
			}
			if !got.Landlock {
				t.Skip("nothing is known of Landlock on this kernel")
			}
			own, err := v.Task(unix.Gettid())
			if err != nil {
				t.Fatal(err)
			}
			if got.LandlockLayers-own.LandlockLayers != uint32(tt.layers) || (got.LandlockID != 0) != (tt.layers > 0) && own.LandlockID == 0 && got.LandlockLayers == 0 {
				t.Errorf("%+v, want %d layers more than %d", got, tt.layers, own.LandlockLayers)
			}
			if root := cgroupRoot(t); got.Cgroup != cgroupOf(t, root, tid) {
				t.Errorf("cgroup %d, want %d", got.Cgroup, cgroupOf(t, root, tid))
			}
		})
	}
	if _, err := v.Task(1 << 30); !errors.Is(err, ErrNoTask) {
		t.Errorf("a task that does not exist: %v", err)
	}
}

// publicCopy copies the test binary to where every user can run it.
func publicCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "thole-lsmbpf-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "child")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, b, 0o755), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

func cgroupOf(t *testing.T, root string, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			var st unix.Stat_t
			if err := unix.Stat(root+path, &st); err != nil {
				t.Fatal(err)
			}
			return st.Ino
		}
	}
	t.Fatal("no v2 cgroup")
	return 0
}

func BenchmarkTask(b *testing.B) {
	v, err := NewVerifier()
	if err != nil {
		b.Skip(err)
	}
	defer v.Close()
	for b.Loop() {
		if _, err := v.Task(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
