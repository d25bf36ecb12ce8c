// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/sandtest"
)

// victim says its pid, waits, does forbidden acts, and reports; through FIFOs
// in its writable root, which is $0.
const victim = `echo $$ > $0/ready
read x < $0/go
{ cat /etc/shadow; echo x > /usr/x; bash -c "echo > /dev/tcp/127.0.0.1/9"; } > /dev/null 2> $0/errors
grep -c "Permission denied\|Read-only file system\|Operation not permitted" $0/errors > $0/done
exec sleep 1000`

// started is a `thole run` of the victim.
type started struct {
	cmd *exec.Cmd
	dir string
	pid int
}

func fifos(t *testing.T, dir string) {
	t.Helper()
	for _, n := range []string{"ready", "go", "done"} {
		if err := unix.Mkfifo(filepath.Join(dir, n), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, n), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

// hears reads the line that the victim writes to a FIFO.
func hears(t *testing.T, fifo string) string {
	t.Helper()
	// Both ways, so that the open waits for nobody and the read has an end.
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func start(t *testing.T, c *exec.Cmd, dir string) *started {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &started{cmd: c, dir: dir}
	t.Cleanup(func() {
		if s.pid > 1 {
			_ = syscall.Kill(s.pid, syscall.SIGKILL)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	var err error
	if s.pid, err = strconv.Atoi(hears(t, dir+"/ready")); err != nil {
		t.Fatal(err)
	}
	return s
}

// stillConfined has the victim act after its starter was killed.
func (s *started) stillConfined(t *testing.T, refused string) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	f, err := os.OpenFile(s.dir+"/go", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if got := hears(t, s.dir+"/done"); got != refused {
		b, _ := os.ReadFile(s.dir + "/errors")
		t.Errorf("%s lines of refusals, want %s:\n%s", got, refused, b)
	}
}

// ruled reports whether a sandbox's cgroup id is in a map that the run pinned.
func ruled(t *testing.T, name string, id uint64) bool {
	t.Helper()
	pins, err := filepath.Glob("/sys/fs/bpf/thole/*/" + name)
	if err != nil || len(pins) == 0 {
		t.Fatalf("no pinned map %s: %v", name, err)
	}
	for _, p := range pins {
		m, err := ebpf.LoadPinnedMap(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		key := binary.NativeEndian.AppendUint64(nil, id)
		_, err = m.LookupBytes(key)
		v, _ := m.LookupBytes(key)
		m.Close()
		if err == nil && v != nil {
			return true
		}
	}
	return false
}

// TestKilled: a run that is killed leaves its program confined, and the next
// run ends that and takes away what it had.
func TestKilled(t *testing.T) {
	sandtest.Root(t, "the full sandbox")
	bin := sandtest.Build(t, tholePackage)
	dir := sandtest.Dir(t)
	fifos(t, dir)
	s := start(t, exec.Command(bin, "run", "--net", "egress-any", "--rw", dir, "--", "sh", "-c", victim, dir), dir)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, leaf, ok := strings.Cut(string(b), "0::")
	if !ok || !strings.HasPrefix(leaf, "/thole/j") {
		t.Fatalf("cgroup %s", b)
	}
	leaf = mount(t) + strings.TrimSpace(leaf)
	var st unix.Stat_t
	if err := unix.Stat(leaf, &st); err != nil {
		t.Fatal(err)
	}
	// Other runs on this host sweep too: not before the victim has reported.
	// A sweep passes over a parent that someone has locked.
	parent, err := os.Open(filepath.Dir(leaf))
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	if err := unix.Flock(int(parent.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	s.stillConfined(t, "4")
	if err := unix.Stat(leaf, &st); err != nil {
		t.Errorf("the leaf is gone: %v", err)
	}
	for _, m := range []string{"policies", "stats"} {
		if !ruled(t, m, st.Ino) {
			t.Errorf("its entry in %s is gone", m)
		}
	}
	if err := unix.Flock(int(parent.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(patience)
	for {
		// A run leaves the sweep to another that is at it.
		if out, err := exec.Command(bin, "run", "--", "true").CombinedOutput(); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		if unix.Stat(leaf, &st) == unix.ENOENT {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the leaf was never swept")
		}
	}
	// It is the first process's child now, which may not have waited for it.
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid)); err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("the process is still there: %s", b)
	}
	// The entry goes after the leaf, by whoever swept that.
	for ruled(t, "policies", st.Ino) || ruled(t, "slots", st.Ino) {
		if time.Now().After(end) {
			t.Fatal("entries in the maps were never swept")
		}
	}
	s.pid = 0
}

func mount(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if head, tail, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(tail, "cgroup2 ") {
			return strings.Fields(head)[4]
		}
	}
	t.Skip("no cgroup v2 hierarchy is mounted")
	return ""
}

// TestKilledWithoutView: where the caller can have no private view, the next
// run removes the temporary directory of one that was killed, and not that of
// one that runs.
func TestKilledWithoutView(t *testing.T) {
	sandtest.Root(t, "it makes a user that can make no user namespaces")
	bin := sandtest.Build(t, tholePackage)
	dir, tmp := sandtest.Dir(t), sandtest.Dir(t)
	fifos(t, dir)
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		c := exec.Command("/bin/sh", append([]string{"-c", `echo 0 > /proc/sys/user/max_user_namespaces; exec "$0" run "$@"`, bin}, args...)...)
		c.Dir, c.Env = "/", []string{"PATH=/usr/bin:/bin", "TMPDIR=" + tmp}
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
			GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{}}
		return c
	}
	left := func() int {
		d, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	if out, err := run("--", "sh", "-c", `test "$HOME" = "$TMPDIR" && echo x > $HOME/f && test -d $HOME && echo $HOME`).Output(); err != nil || !strings.HasPrefix(string(out), tmp) || left() != 0 {
		t.Fatalf("%v, %s, %d left", err, out, left())
	}
	s := start(t, run("--rw", dir, "--", "sh", "-c", victim, dir), dir)
	if out, err := run("--", "true").CombinedOutput(); err != nil || left() != 1 {
		t.Errorf("beside a run: %v, %s, %d left", err, out, left())
	}
	s.stillConfined(t, "4")
	if left() != 1 {
		t.Errorf("%d directories after the kill", left())
	}
	if out, err := run("--", "true").CombinedOutput(); err != nil || left() != 0 {
		t.Errorf("after the kill: %v, %s, %d left", err, out, left())
	}
}

// TestManyRuns: runs of the command, many at once and many in sequence, see
// their own denials alone and leave nothing behind.
func TestManyRuns(t *testing.T) {
	sandtest.Root(t, "the full sandbox")
	bin, tmp := sandtest.Build(t, tholePackage), sandtest.Dir(t)
	run := func(port int) {
		c := exec.Command(bin, "run", "-o", "json", "--net", "egress-any", "--", "bash", "-c", fmt.Sprintf("echo > /dev/tcp/127.0.0.1/%d", port))
		c.Dir, c.Env = "/", append(os.Environ(), "TMPDIR="+tmp)
		var errs bytes.Buffer
		c.Stderr = &errs
		if _ = c.Run(); c.ProcessState.ExitCode() != 1 {
			t.Errorf("exit %d: %s", c.ProcessState.ExitCode(), errs.String())
			return
		}
		var seen []string
		var last event.Event
		for line := range strings.Lines(errs.String()) {
			if !strings.HasPrefix(line, "{") {
				continue // bash's own message
			}
			e, err := event.Parse([]byte(strings.TrimSpace(line)))
			if err != nil {
				t.Errorf("%v: %s", err, line)
			}
			if e.Capability == event.NetConnect {
				seen = append(seen, e.Target)
			}
			last = e
		}
		if want := fmt.Sprintf("127.0.0.1:%d/tcp", port); len(seen) != 1 || seen[0] != want || last.Type != event.Ended || last.Totals.Lost != 0 {
			t.Errorf("denials %v, want %s alone; last %s", seen, want, last.Type)
		}
		if _, err := os.Stat(mount(t) + last.Cgroup); last.Cgroup == "" || !os.IsNotExist(err) {
			t.Errorf("cgroup %q: %v", last.Cgroup, err)
		}
		for _, m := range []string{"policies", "slots", "stats"} {
			if ruled(t, m, last.CgroupID) {
				t.Errorf("an entry in %s is left", m)
			}
		}
	}
	before := open(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { run(20000 + i) })
	}
	wg.Wait()
	for i := range 100 {
		run(30000 + i)
	}
	if after := open(t); after != before {
		t.Errorf("%d descriptors and mounts of ours, %d before", after, before)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
	if d, err := os.ReadDir(tmp); err != nil || len(d) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", d, err)
	}
}

// open counts this process's descriptors, and the mounts that a sandbox could
// have left in its namespace. Other tests on the host are not counted.
func open(t *testing.T) int {
	t.Helper()
	n := 0
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d {
		// The runtime opens its own poller when it first needs one.
		if l, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.Contains(l, "eventpoll") && !strings.Contains(l, "eventfd") {
			n++
		}
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == "/tmp" || f[4] == "/dev/shm" || f[4] == "/proc") {
			n++
		}
	}
	return n
}
