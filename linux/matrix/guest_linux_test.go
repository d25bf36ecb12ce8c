// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/tholehq/thole/linux/lsmbpf"
	"github.com/tholehq/thole/linux/netbpf"
	"golang.org/x/sys/unix"
)

// inGuest skips a test that is for other guests, or for none. An unknown
// variant would skip everything: TestGuestVariant.
func inGuest(t *testing.T, in ...string) {
	t.Helper()
	v := os.Getenv(guestVar)
	if v == "" {
		t.Skip("boots kernels for minutes: make test-vm, or " + switchVar + "=1")
	}
	if len(in) > 0 && !slices.Contains(in, v) {
		t.SkipNow()
	}
}

// fact reports a cell of the table.
func fact(row, cell string) { fmt.Printf("%s\t%s\t%s\n", factMark, row, cell) }

// outcome is how a command of the guest ended.
type outcome struct {
	code     int
	out, err string
}

func (o outcome) String() string { return fmt.Sprintf("exit %d, %s%s", o.code, o.out, o.err) }

func command(t *testing.T, env []string, attr *syscall.SysProcAttr, args ...string) outcome {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = attr
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// confined has thole run an act of this binary.
func confined(t *testing.T, flags []string, role string, args ...string) outcome {
	t.Helper()
	return command(t, nil, nil, tholeRun(flags, role, args...)...)
}

func tholeRun(flags []string, role string, args ...string) []string {
	line := append([]string{guestThole, "run", "--env", roleVar + "=" + role}, flags...)
	return append(append(line, "--", guestSelf), args...)
}

// workDir is a directory to grant, outside of what sandboxes cover.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "work-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// demo is what README shows: acts that nobody granted, and their answers. One
// that names no errno may be refused with any.
func demo(t *testing.T) {
	t.Helper()
	dir := workDir(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sock := filepath.Join(dir, "sock")
	u, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := os.Chmod(sock, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		role, arg string
		want      string
	}{
		{"write", dir + "/here", "ok"},
		{"read", "/etc/passwd", "ok"},
		{"read", "/etc/shadow", ""},
		{"list", "/root", ""},
		{"write", "/var/tmp/there", ""},
		{"chmod", "/etc/passwd", "EROFS"},
		{"kill", strconv.Itoa(os.Getpid()), "EPERM"},
		{"tcp", l.Addr().String(), ""},
		{"tcp", "[::1]:1", ""},
		{"udp", "192.0.2.1:53", ""},
		{"unix", sock, ""},
		{"unix", "@thole-matrix", ""},
		{"listen", "", ""},
		{"userns", "", "EPERM"},
		{"bpf", "", "EPERM"},
	} {
		got := confined(t, []string{"--rw", dir}, a.role, a.arg)
		said := strings.TrimSpace(got.out)
		switch {
		case a.want == "ok" && (got.code != 0 || said != "ok"):
			t.Errorf("%s %s: must work: %v", a.role, a.arg, got)
		case a.want != "ok" && (got.code != 1 || !refusal(said) || a.want != "" && said != a.want):
			t.Errorf("%s %s: want a refusal %s: %v", a.role, a.arg, a.want, got)
		}
	}
}

// refusal tells a refused act from one that met nothing.
func refusal(said string) bool {
	return said == "EPERM" || said == "EACCES" || said == "EROFS"
}

func TestGuestVariant(t *testing.T) {
	inGuest(t)
	v := os.Getenv(guestVar)
	i := slices.IndexFunc(variants, func(k variant) bool { return k.name == v })
	if i < 0 {
		t.Fatalf("no variant %q", v)
	}
	b, err := os.ReadFile("/proc/cmdline")
	if err != nil || !strings.Contains(string(b), variants[i].boot) {
		t.Errorf("command line %q, %v; want %q in it", b, err, variants[i].boot)
	}
}

// TestGuestDemo: the acts are refused on each kernel and however it is booted,
// as long as anything starts at all.
func TestGuestDemo(t *testing.T) {
	inGuest(t, "base", "no-bpf-lsm", "no-memory", "lockdown")
	demo(t)
	if os.Getenv(guestVar) == "lockdown" {
		fact("the demonstration's acts with lockdown=confidentiality", result(t, "refused all the same"))
	}
}

// result is a cell that a failed test does not get to write.
func result(t *testing.T, cell string) string {
	if t.Failed() {
		return "FAILED"
	}
	return cell
}

// TestGuestReport: a refused connect is listed with the flag that allows it,
// and the socket refused by a hook where this kernel has one.
func TestGuestReport(t *testing.T) {
	inGuest(t, "base", "lockdown")
	got := confined(t, nil, "tcp", "127.0.0.1:22")
	if !strings.Contains(got.err, "net.connect") || !strings.Contains(got.err, "--allow-cidr 127.0.0.1:22/tcp") {
		t.Errorf("the listing lacks the connect or its remedy: %v", got)
	}
	got = confined(t, nil, "unix", "/run/no-such.sock")
	by := "seccomp, no unix socket at all"
	if strings.Contains(got.err, "unix.connect") {
		by = "cgroup-bpf, reported"
	}
	if os.Getenv(guestVar) == "base" {
		fact("unix sockets of the host are refused by", by)
	}
}

// TestGuestLimits: what goes over a limit is stopped by it, and thole says so.
func TestGuestLimits(t *testing.T) {
	inGuest(t, "base")
	t.Run("memory", func(t *testing.T) {
		got := confined(t, []string{"--mem-gb", "0.05"}, "memory", "200")
		if got.code != 128+int(unix.SIGKILL) || !strings.Contains(got.err, "memory limit") {
			t.Errorf("200 MiB of 50: %v", got)
		}
		if got = confined(t, []string{"--mem-gb", "0.25"}, "memory", "20"); got.code != 0 {
			t.Errorf("20 MiB of 250: %v", got)
		}
		fact("`--mem-gb` exceeded", result(t, "killed, reported as oom"))
	})
	t.Run("cpu", func(t *testing.T) {
		if !throttled(t, "--cpus", "0.2") {
			t.Error("a job of a fifth of a CPU was never made to wait")
		}
		fact("`--cpus` exceeded", result(t, "throttled"))
	})
	t.Run("pids", func(t *testing.T) {
		got := confined(t, []string{"--pids", "20"}, "fork", "40")
		if got.code != 1 || strings.TrimSpace(got.out) != "EAGAIN" {
			t.Errorf("40 processes of 20: %v", got)
		}
		if got = confined(t, []string{"--pids", "40"}, "fork", "4"); got.code != 0 {
			t.Errorf("4 processes of 40: %v", got)
		}
		fact("`--pids` exceeded", result(t, "EAGAIN"))
	})
}

// throttled runs a job that computes until its cgroup's cpu.stat says that it
// had to wait, or a minute.
func throttled(t *testing.T, flags ...string) bool {
	t.Helper()
	line := tholeRun(append(flags, "--timeout", "60s"), "spin")
	c := exec.Command(line[0], line[1:]...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer out.Close() // ends it
	for s := bufio.NewScanner(out); s.Scan(); {
		leaves, err := filepath.Glob("/sys/fs/cgroup/thole/*/cpu.stat")
		if err != nil || len(leaves) != 1 {
			t.Fatalf("leaves %v, %v; want one", leaves, err)
		}
		stat, err := os.ReadFile(leaves[0])
		if err != nil {
			t.Fatal(err)
		}
		_, after, ok := strings.Cut(string(stat), "nr_throttled ")
		if n, _, _ := strings.Cut(after, "\n"); ok && n != "0" {
			return true
		}
	}
	return false
}

// refusedStart wants a start that was refused with a remedy that says this.
func refusedStart(t *testing.T, got outcome, remedy string) {
	t.Helper()
	if got.code != 70 || strings.Contains(got.out, "ok") || !strings.Contains(got.err, remedy) {
		t.Errorf("want exit 70 and a remedy with %q: %v", remedy, got)
	}
}

func TestGuestNoLandlock(t *testing.T) {
	inGuest(t, "no-landlock")
	refusedStart(t, confined(t, nil, "read", "/etc/passwd"), "lsm=")
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	refusedStart(t, command(t, []string{"HOME=/tmp"}, user, tholeRun(nil, "read", "/etc/passwd")...), "lsm=")
	fact("booted without landlock in `lsm=`", result(t, "every start is refused (70)"))
}

func TestGuestNoMemoryController(t *testing.T) {
	inGuest(t, "no-memory")
	got := confined(t, []string{"--mem-gb", "0.5"}, "read", "/etc/passwd")
	refusedStart(t, got, "memory")
	if got = confined(t, []string{"--pids", "100"}, "read", "/etc/passwd"); got.code != 0 {
		t.Errorf("another limit: %v", got)
	}
	fact("booted with cgroup_disable=memory", result(t, "`--mem-gb` is refused (70)"))
}

// TestGuestNoBTF hides the kernel's type information, for this process and
// those it starts.
func TestGuestNoBTF(t *testing.T) {
	inGuest(t, "base")
	if err := unix.Mount("tmpfs", "/sys/kernel/btf", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount("/sys/kernel/btf", 0)
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("still there: %v", err)
	}
	// Nothing pinned, so that everything is loaded anew.
	removePins(t)
	demo(t)
	if got := confined(t, nil, "tcp", "127.0.0.1:22"); !strings.Contains(got.err, "net.connect") {
		t.Errorf("no event: is another layer refusing in place of the programs? %v", got)
	}
	fact("the demonstration's acts without BTF", result(t, "refused all the same, and reported by cgroup-bpf"))
}

// removePins detaches the programs and takes away what is pinned.
func removePins(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"/sys/fs/bpf/thole", "/sys/fs/cgroup/thole"} {
		if err := removeTree(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// removeTree removes pins, and cgroups, whose files cannot be removed and need
// not be.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = errors.Join(err, removeTree(path))
		} else if strings.HasPrefix(dir, "/sys/fs/bpf/") {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// TestGuestNoBPF: where bpf(2) is refused, the network is refused by another
// layer or the start is.
func TestGuestNoBPF(t *testing.T) {
	inGuest(t, "base")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, errno := range []syscall.Errno{unix.EPERM, unix.ENOSYS} {
		under := func(flags []string, role string, args ...string) outcome {
			line := append([]string{guestSelf, strconv.Itoa(int(errno))}, tholeRun(flags, role, args...)...)
			return command(t, []string{roleVar + "=deny-bpf"}, nil, line...)
		}
		for _, mode := range [][]string{nil, {"--net", "egress-any"}, {"--net", "egress-allowlist", "--proxy-port", "1"}, {"--allow-cidr", "192.0.2.0/24"}} {
			got := under(mode, "tcp", l.Addr().String())
			switch said := strings.TrimSpace(got.out); {
			case mode != nil && got.code == 70 && said == "":
			case mode == nil && got.code == 1 && refusal(said):
			default:
				t.Errorf("bpf(2) is %v, flags %v: a connect to loopback: %v", errno, mode, got)
			}
		}
		if got := under(nil, "read", "/etc/passwd"); got.code != 0 {
			t.Errorf("bpf(2) is %v: %v", errno, got)
		}
		fact("bpf(2) answers "+unix.ErrnoName(errno), result(t, "no network by seccomp; every other mode is refused (70)"))
	}
}

// TestGuestLSM attaches the optional LSM layer, and says where it cannot be.
func TestGuestLSM(t *testing.T) {
	inGuest(t, "base", "no-bpf-lsm", "lockdown")
	e, err := netbpf.Open(netbpf.Options{CgroupRoot: "/sys/fs/cgroup", Parent: "thole-matrix"})
	if err != nil {
		t.Fatal(err)
	}
	defer removePinsOf(t, "thole-matrix")
	defer e.Close()
	parent, err := netbpf.CgroupID(e.ParentFD())
	if err != nil {
		t.Fatal(err)
	}
	l, err := lsmbpf.Attach(lsmbpf.Config{Pins: e.Pins(), Parent: parent, JudgeUnix: !e.Features().Unix})
	switch os.Getenv(guestVar) {
	case "no-bpf-lsm":
		if !errors.Is(err, lsmbpf.ErrInactive) {
			t.Errorf("attach where bpf is no LSM: %v", err)
		}
		fact("booted without bpf in `lsm=`", result(t, "LSM layer absent, all else runs"))
		return
	case "lockdown":
		// Most of its programs read kernel memory, which is what this mode
		// refuses (LOCKDOWN_BPF_READ_KERNEL): they are gaps, not holes.
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		fact("hooks of the LSM layer with lockdown=confidentiality", hooks(l))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if gaps := l.Gaps(); len(gaps) != 0 {
		t.Errorf("hooks that are not there: %v", slices.Sorted(maps.Keys(gaps)))
	}
	fact("hooks of the LSM layer", hooks(l))
	v, err := lsmbpf.NewVerifier()
	switch {
	case err == nil:
		v.Close()
		fact("verification by BPF", "yes")
	case errors.Is(err, ebpf.ErrNotSupported):
		fact("verification by BPF", "no: bpf_task_from_pid is of Linux 6.2")
	default:
		t.Error(err)
	}
}

func hooks(l *lsmbpf.LSM) string {
	return fmt.Sprintf("%d of %d", len(l.Hooks()), len(l.Hooks())+len(l.Gaps()))
}

// TestGuestAgent: what tholed attaches refuses nothing that a sandbox is
// granted, and takes nothing from what refuses the rest.
func TestGuestAgent(t *testing.T) {
	inGuest(t, "base", "no-bpf-lsm")
	if os.Getenv(guestVar) == "no-bpf-lsm" {
		if got := command(t, nil, nil, guestTholed, "lsm"); got.code != 1 || !strings.Contains(got.err, "lsm=") {
			t.Errorf("want exit 1 and the remedy: %v", got)
		}
		return
	}
	c := exec.Command(guestTholed, "lsm")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "attached") {
		t.Errorf("tholed says %q, %v", line, err)
	}
	demo(t)
	if err := c.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("tholed: %v", err)
	}
}

func removePinsOf(t *testing.T, name string) {
	t.Helper()
	if err := errors.Join(removeTree("/sys/fs/bpf/"+name), removeTree("/sys/fs/cgroup/"+name)); err != nil {
		t.Error(err)
	}
}

// TestGuestDoctor: the report says what the variant takes away.
func TestGuestDoctor(t *testing.T) {
	inGuest(t, "no-landlock", "no-memory", "lockdown")
	lacks := map[string]string{"no-landlock": "fs", "no-memory": "limits.memory"}[os.Getenv(guestVar)]
	got := command(t, nil, nil, guestThole, "doctor", "-o", "json")
	var rep struct {
		Findings []struct{ Capability, Status, Reason string }
	}
	if err := json.Unmarshal([]byte(got.out), &rep); err != nil || len(rep.Findings) == 0 {
		t.Fatalf("%v: %v", err, got)
	}
	for _, f := range rep.Findings {
		if f.Capability == lacks && f.Status == "enforced" {
			t.Errorf("%s is enforced: %s", f.Capability, f.Reason)
		}
		if f.Capability == "net.none" && lacks != "fs" && f.Status != "enforced" {
			t.Errorf("%s is %s: %s", f.Capability, f.Status, f.Reason)
		}
	}
}
