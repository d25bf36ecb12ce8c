// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/netbpf"
	"github.com/tholehq/thole/linux/verify"
	"golang.org/x/sys/unix"
)

// nobody is the ordinary user of the tests.
const nobody = 65534

var parents atomic.Int32

// testPlatform is the platform of this caller. As root it has a parent cgroup
// and pins of its own, so that nothing else on the host is in the way of what
// is counted, and both are taken away at the end.
func testPlatform(t testing.TB) *Platform {
	t.Helper()
	name := fmt.Sprintf("thole-test-%d-%d", os.Getpid(), parents.Add(1))
	m, err := look(name)
	if err != nil {
		t.Fatal(err)
	}
	p := &Platform{m}
	t.Cleanup(func() {
		pins := ""
		if m.enforcer != nil {
			pins = filepath.Dir(m.enforcer.Pins())
		}
		p.Close()
		if m.parent != nil {
			if err := os.Remove(m.parent.Path); err != nil {
				t.Errorf("a leaf is left: %v", err)
			}
		}
		if pins != "" && filepath.Base(pins) == name {
			if err := os.RemoveAll(pins); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// needRoot skips where the full launch cannot be had, with the reason.
func needRoot(t testing.TB, p *Platform) {
	t.Helper()
	if !p.m.Root {
		t.Skipf("needs root: %s", p.m.Why["bpf"])
	}
	if !p.m.BPF {
		t.Skipf("needs the cgroup programs: %s", p.m.Why["bpf"])
	}
}

// shared returns a directory that every user can reach and write.
func shared(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "thole-start-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trial is a start of a shell whose only act is to leave a file behind.
type trial struct {
	dir  string // the rw root
	spec platform.Spec
}

// newTrial grants one path of each kind, one of them behind a directory that
// the job's uid cannot search.
func newTrial(t testing.TB) *trial {
	t.Helper()
	base := shared(t)
	tr := &trial{dir: filepath.Join(base, "rw")}
	hidden := filepath.Join(base, "hidden")
	for _, d := range []string{tr.dir, filepath.Join(base, "wo"), hidden, hidden + "/ro"} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(base, "rd")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file) // not what the starter has itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	path := func(p string) []policy.Path { return []policy.Path{{Path: p, Pos: policy.Pos{Flag: p}}} }
	tr.spec = platform.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo ran > " + tr.dir + "/ran"}, Dir: tr.dir, Stdin: in,
		Env:    []string{"PATH=/usr/bin:/bin"},
		Policy: &policy.Policy{Kind: "runner", FS: policy.FS{RW: path(tr.dir), RO: path(hidden + "/ro"), RD: path(file), WO: path(filepath.Join(base, "wo"))}}}
	return tr
}

func (tr *trial) ran() bool {
	err := os.Remove(tr.dir + "/ran")
	return err == nil
}

// run plans and starts the trial with its launch changed, and waits for a
// program that did start.
func (tr *trial) run(t testing.TB, p *Platform, tamper func(launch.List) launch.List) error {
	t.Helper()
	plan, err := p.Plan(tr.spec)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	plan.tamper = tamper
	proc, err := plan.Start(context.Background())
	if err != nil {
		return err
	}
	for range proc.Events() {
	}
	if _, err := proc.Wait(); err != nil {
		t.Error(err)
	}
	return nil
}

// list returns the launch that the trial makes, by way of a start that is
// abandoned before its first call.
func (tr *trial) list(t testing.TB, p *Platform) launch.List {
	t.Helper()
	var seen launch.List
	err := tr.run(t, p, func(l launch.List) launch.List {
		seen = slices.Clone(l)
		return launch.List{broken("none")}
	})
	if err == nil {
		t.Fatal("a launch of one call that fails started something")
	}
	return seen
}

// broken is a call that fails at once: EBADF.
func broken(step string) launch.Op {
	return launch.Op{Call: launch.Close, Args: []launch.Arg{launch.Num(-1)}, Step: step}
}

// state is what a start must leave as it was.
type state struct {
	fds, kids, leaves int
	entries           map[string]int
	mounts            int
}

func snapshot(t testing.TB, p *Platform, base string) state {
	t.Helper()
	s := state{entries: map[string]int{}, kids: len(kids())}
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d {
		// The runtime opens its own poller when it first needs one.
		if l, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.Contains(l, "eventpoll") && !strings.Contains(l, "eventfd") {
			s.fds++
		}
	}
	if p.m.parent != nil {
		leaves, err := os.ReadDir(p.m.parent.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leaves {
			if l.IsDir() {
				s.leaves++
			}
		}
	}
	if p.m.enforcer != nil {
		for _, name := range []string{"policies", "slots", "stats", "rules"} {
			s.entries[name] = entries(t, p.m.enforcer, name)
		}
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == "/tmp" || f[4] == "/dev/shm" || f[4] == "/proc" || strings.HasPrefix(f[4], base)) {
			s.mounts++
		}
	}
	return s
}

// entries counts the entries of a pinned map.
func entries(t testing.TB, e *netbpf.Enforcer, name string) int {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(e.Pins()+"/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n := 0
	var key, next []byte
	for {
		if key == nil {
			next, err = m.NextKeyBytes(nil)
		} else {
			next, err = m.NextKeyBytes(key)
		}
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return n
		}
		n++
		key = next
	}
}

// same fails the test where after differs from before.
func same(t testing.TB, before, after state) {
	t.Helper()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("leaked: before %+v, after %+v", before, after)
	}
}

// TestEveryCallFails makes each call of a launch fail once. The program never
// runs, the error names the step, and nothing stays.
func TestEveryCallFails(t *testing.T) {
	p, tr := testPlatform(t), newTrial(t)
	l := tr.list(t, p)
	if err := tr.run(t, p, nil); err != nil || !tr.ran() {
		t.Fatalf("the launch as it is: %v", err)
	}
	before := snapshot(t, p, filepath.Dir(tr.dir))
	for i, o := range l {
		err := tr.run(t, p, func(l launch.List) launch.List {
			l[i] = broken(l[i].Step)
			return l
		})
		var pe *platform.Error
		want := platform.ErrConfine
		text := o.Step
		switch o.Step {
		case "exec":
			want, text = platform.ErrStart, "execute /bin/sh"
		case "workdir":
			want, text = platform.ErrStart, "enter working directory "+tr.dir
		}
		switch {
		case err == nil:
			t.Errorf("call %d, %s: started although it failed", i, o)
		case !errors.Is(err, want) || !errors.As(err, &pe) || !errors.Is(err, syscall.EBADF) || !strings.Contains(err.Error(), text):
			t.Errorf("call %d, %s: error %v", i, o, err)
		}
		if tr.ran() {
			t.Errorf("call %d, %s: the program ran", i, o)
		}
	}
	same(t, before, snapshot(t, p, filepath.Dir(tr.dir)))
}

// unnoticed are the calls that can be left out without the start being
// refused, each with the reason why nothing is open then. Any other call must
// be missed by a check.
var unnoticed = []struct{ prefix, why string }{
	{"close(@status.read)", "a child whose starter is gone would wait for it"},
	{"close(@gate.write)", "a child whose starter is gone would wait for it"},
	{"prlimit64(0, RLIMIT_CORE", "a core is written with the job's rights, where the job may write"},
	{"prlimit64(0, RLIMIT_NOFILE", "a higher soft limit is the starter's own"},
	{`fsconfig($fs0, FSCONFIG_SET_STRING, "mode", "1777"`, "it is the default of tmpfs"},
	{`fsconfig($fs1, FSCONFIG_SET_STRING, "mode", "1777"`, "it is the default of tmpfs"},
	{`fsconfig($fs2, FSCONFIG_SET_STRING, "mode", "0755"`, "a skeleton is mounted read-only, whatever its mode"},
	{`fsconfig($fs2, FSCONFIG_SET_STRING, "size", "1m"`, "nothing can be written to a skeleton"},
	{"fchownat($cover0, \"home\"", "the home stays root's: the job has less"},
	{"landlock_add_rule(@rules", "a place without its rule is closed"},
	{"prctl(PR_CAP_AMBIENT", "the change of uid clears it; verification reads CapAmb"},
	{"setgroups(0, [])", "the starter has no groups; TestWithMoreToDrop has"},
	{"capset(", "the change of uid clears what root has; TestWithMoreToDrop has more"},
	{"chdir(", "the starter's directory, under the same rules as any other"},
	{`openat(AT_FDCWD, "/", O_RDONLY|O_DIRECTORY, 0) must be -13`, "a check itself"},
	{"fcntl($witness, F_GETFD) must be 1", "a check itself"},
}

// leftOut says whether the start without a call went as it must.
func leftOut(t *testing.T, o string, err error, used map[string]bool) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, platform.ErrConfine) && !errors.Is(err, platform.ErrVerify) {
			t.Errorf("without %s: error %v", o, err)
		}
		return
	}
	var c uintptr
	if n, _ := fmt.Sscanf(o, "prctl(PR_CAPBSET_DROP, %d,", &c); n == 1 {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil && has == 0 {
			return // the starter does not have it itself
		}
	}
	k := slices.IndexFunc(unnoticed, func(u struct{ prefix, why string }) bool { return strings.HasPrefix(o, u.prefix) })
	if k < 0 {
		t.Errorf("without %s: started, and no check noticed", o)
		return
	}
	used[unnoticed[k].prefix] = true
}

// TestEveryCallLeftOut leaves each call of a launch out once: a check notices
// before the program runs, or the table above says why it need not.
func TestEveryCallLeftOut(t *testing.T) {
	p, tr := testPlatform(t), newTrial(t)
	l := tr.list(t, p)
	before := snapshot(t, p, filepath.Dir(tr.dir))
	used := map[string]bool{}
	for i, o := range l[:len(l)-1] {
		if strings.HasPrefix(o.String(), "write(@status") {
			continue // TestSilentChild
		}
		err := tr.run(t, p, func(l launch.List) launch.List { return slices.Delete(l, i, i+1) })
		// A child that does not wait at its gate is killed when that is seen.
		gate := o.Step == "gate" && o.Call == launch.Read
		if ran := tr.ran(); ran && err != nil && !gate {
			t.Errorf("without %s: %v, and the program ran", o, err)
		}
		leftOut(t, o.String(), err, used)
	}
	if p.m.Root {
		for _, u := range unnoticed {
			if !used[u.prefix] && u.prefix != "prlimit64(0, RLIMIT_NOFILE" && os.Getenv(dropVar) == "" {
				t.Errorf("%s is noticed now: take it from the table", u.prefix)
			}
		}
	}
	same(t, before, snapshot(t, p, filepath.Dir(tr.dir)))
}

// dropVar is set for the run of TestWithMoreToDrop.
const dropVar = "THOLE_TEST_DROP"

// TestWithMoreToDrop leaves the calls out once more, for a starter with groups
// and with inheritable and ambient capabilities: then the calls that give
// those up are missed.
func TestWithMoreToDrop(t *testing.T) {
	if os.Getenv(dropVar) != "" {
		p, tr := testPlatform(t), newTrial(t)
		for _, prefix := range []string{"setgroups(", "capset("} {
			err := tr.run(t, p, func(l launch.List) launch.List { return slices.Delete(l, index(l, prefix), index(l, prefix)+1) })
			var f *verify.Failure
			if !errors.As(err, &f) || tr.ran() {
				t.Errorf("without %s: %v", prefix, err)
			}
		}
		if err := tr.run(t, p, nil); err != nil || !tr.ran() {
			t.Errorf("the launch as it is: %v", err)
		}
		return
	}
	if p := testPlatform(t); !p.m.Root {
		t.Skip("needs root: an ordinary user has none of them")
	}
	rerun(t, []string{dropVar + "=1"}, &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{4242}}, AmbientCaps: []uintptr{0}}, "TestWithMoreToDrop")
}

// TestSilentChild: a child that never reports is given up with the start's
// context, and ends.
func TestSilentChild(t *testing.T) {
	p, tr := testPlatform(t), newTrial(t)
	if err := tr.run(t, p, nil); err != nil || !tr.ran() { // opens what later starts share
		t.Fatal(err)
	}
	before := snapshot(t, p, filepath.Dir(tr.dir))
	ctx, cancel := context.WithCancel(context.Background())
	plan, err := p.Plan(tr.spec)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	plan.tamper = func(l launch.List) launch.List {
		i := index(l, "write(@status")
		go func() {
			for len(kids()) == before.kids {
				runtime.Gosched()
			}
			cancel()
		}()
		return slices.Delete(l, i, i+1)
	}
	if _, err = plan.Start(ctx); !errors.Is(err, platform.ErrConfine) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	plan.Close()
	if tr.ran() {
		t.Error("the program ran")
	}
	same(t, before, snapshot(t, p, filepath.Dir(tr.dir)))
}

// TestAsUser runs the tests of starts as an ordinary user too, whose launches
// are other ones.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: becomes another user")
	}
	rerun(t, nil, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, "TestEveryCallFails", "TestEveryCallLeftOut", "TestSilentChild")
}

// rerun runs tests of this binary in a process of another kind; all of them
// must pass.
func rerun(t *testing.T, env []string, attr *syscall.SysProcAttr, tests ...string) {
	t.Helper()
	dir := shared(t)
	bin := filepath.Join(dir, "linux.test")
	copyFile(t, bin)
	c := exec.Command(bin, "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$")
	c.Dir = dir
	c.Env = append([]string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir}, env...)
	c.SysProcAttr = attr
	out, err := c.CombinedOutput()
	for _, name := range tests {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			err = errors.Join(err, errors.New(name+" did not pass"))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyFile puts this test binary where everyone can execute it.
func copyFile(t testing.TB, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// kids returns the children of the test's process.
func kids() []int {
	pids, err := children()
	if err != nil {
		panic(err)
	}
	return pids
}
