// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/internal/vm"
)

var (
	update  = flag.Bool("update", false, "write testdata/table.md")
	console = flag.Bool("console", false, "print what the guests' kernels print")
)

const (
	switchVar = "THOLE_VM"       // 1: boot
	onlyVar   = "THOLE_VM_ONLY"  // kernels and variants to boot, "6.12/base 6.1"; empty: all
	guestVar  = "THOLE_VM_GUEST" // in a guest: the variant
)

func TestMain(m *testing.M) {
	vm.Init()
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(act(role))
	}
	os.Exit(m.Run())
}

// kernels are the columns of the table, names of .ci/vm. The oldest is the
// oldest that thole supports.
var kernels = []string{"6.1", "6.12", "newest"}

// variant is one way to boot a kernel.
type variant struct {
	name string
	boot string // command line
	// suites: the project's own tests run too, and the reports are asked for.
	suites bool
}

// The lists of LSMs are Debian's, each without one.
var variants = []variant{
	{name: "base", suites: true},
	{name: "no-landlock", boot: "lsm=lockdown,capability,yama,apparmor,bpf"},
	{name: "no-bpf-lsm", boot: "lsm=lockdown,capability,landlock,yama,apparmor"},
	{name: "no-memory", boot: "cgroup_disable=memory"},
	{name: "lockdown", boot: "lockdown=confidentiality"},
}

// suite is a package whose tests run in the guest.
type suite struct {
	dir   string        // below linux/
	run   string        // -test.run; "" is all
	limit time.Duration // far above what an idle machine needs
}

var suites = []suite{
	{"cgroup", "", 2 * time.Minute},
	{"kernfile", "", 2 * time.Minute},
	{"launch", "", 2 * time.Minute},
	{"verify", "", 2 * time.Minute},
	{"seccomp", "", 5 * time.Minute},
	{"lsmbpf", "", 5 * time.Minute},
	{"netbpf", "", 10 * time.Minute},
	{".", startTests, 10 * time.Minute},
}

// slowKernel is the one on which slow tests run too: they load the programs
// again and again, to see what this project makes of its own pins, and take
// minutes under emulation.
const (
	slowKernel = "6.12"
	slowTests  = "^(TestRenew|TestRenewBusy|TestForeignRepair|TestOtherBuilds|TestAttachAgain)$"
)

// startTests are those of package linux that ask a kernel; each start takes a
// tenth of a second under emulation.
const startTests = "^(TestEveryCallFails|TestEveryCallLeftOut|TestSilentChild|TestParallel|TestThousand|TestMountCodec|TestWithMoreToDrop)$"

// protocols are the modules of sockets that sandboxes must not get, so that a
// refusal is not the absence of the protocol.
var protocols = []string{"sctp", "dccp_ipv4", "dccp_ipv6", "smc"}

// skips are the tests, by pattern, that may be skipped in a guest: everything
// else that is skipped there fails the matrix, or a suite that tests nothing
// would pass.
var skips = []struct{ kernel, test, why string }{
	{"", "TestGuest*", "of another variant"},
	{"", "TestTablesFresh", "needs the sources"},
	{"6.1", "TestTask", "bpf_task_from_pid is of 6.2"},
	{"6.1", "TestHooks/*", "unix hooks are of 6.7, Fast Open for MPTCP of 6.2"},
	{"6.1", "TestUring/uring_bind_*", "io_uring binds since 6.11"},
	{"6.1", "TestOtherProtocols/smc*_by_protocol", "SMC is a protocol of TCP since 6.11"},
	{"newest", "TestHooks/udplite*", "UDP-Lite went in 7.1"},
	{"newest", "TestOtherProtocols/dccp*", "DCCP went in 6.16"},
	{"newest", "TestOtherProtocols/smc*", "Debian's kernel has none"},
}

func skipAllowed(kernel, test string) bool {
	for _, s := range skips {
		if ok, err := path.Match(s.test, test); err == nil && ok && (s.kernel == "" || s.kernel == kernel) {
			return true
		}
	}
	return false
}

// TestMatrix boots every kernel in every way, and compares what came of it
// with the table.
func TestMatrix(t *testing.T) {
	if os.Getenv(switchVar) != "1" {
		t.Skip("boots kernels for minutes: make test-vm, or " + switchVar + "=1")
	}
	cache, err := vm.Cache()
	if err != nil {
		t.Fatal(err)
	}
	b := build(t)
	tab := newTable()
	whole := true
	for _, name := range kernels {
		k, err := vm.Open(cache, name)
		if err != nil {
			t.Fatal(err)
		}
		tab.kernel(k)
		for _, v := range variants {
			if !wanted(name, v.name) {
				whole = false
				continue
			}
			t.Run(name+"/"+v.name, func(t *testing.T) { b.boot(t, k, v, tab) })
		}
	}
	text := tab.markdown()
	fmt.Println(text)
	if t.Failed() || !whole {
		return
	}
	compare(t, text)
}

func wanted(kernel, variant string) bool {
	only := strings.Fields(os.Getenv(onlyVar))
	return len(only) == 0 || slices.Contains(only, kernel) || slices.Contains(only, kernel+"/"+variant) || slices.Contains(only, variant)
}

// built is what all guests boot with.
type built struct {
	self, disk string
	suites     []suite // those that could be built
}

// Where things lie in the guest.
const (
	guestThole  = "/usr/bin/thole"
	guestTholed = "/usr/bin/tholed"
	guestSelf   = "/usr/bin/matrix.test"
	guestSrc    = "/src/linux"
)

func build(t *testing.T) *built {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	b := &built{self: self, disk: filepath.Join(tmp, "disk")}
	tree, err := vm.NewTree(filepath.Join(tmp, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(at string, args ...string) bool {
		out := filepath.Join(tmp, filepath.Base(at))
		cmd := exec.Command("go", append(args[:len(args)-1], "-o", out, args[len(args)-1])...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, msg)
			return false
		}
		if err := tree.Program(out, at); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if !add(guestThole, "build", "-trimpath", "../../cmd/thole") || !add(guestTholed, "build", "-trimpath", "../../cmd/tholed") {
		t.FailNow()
	}
	for _, s := range suites {
		if !add(s.binary(), "test", "-c", "../"+s.dir) {
			continue // has failed; what the others find is worth knowing
		}
		b.suites = append(b.suites, s)
		data := filepath.Join("..", s.dir, "testdata")
		if _, err := os.Stat(data); err == nil {
			if err := tree.Dir(data, filepath.Join(guestSrc, s.dir, "testdata")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tree.Program(self, guestSelf); err != nil {
		t.Fatal(err)
	}
	if err := tree.Image(b.disk, 256); err != nil {
		t.Fatal(err)
	}
	return b
}

// binary is the path of the suite's test binary in the guest.
func (s suite) binary() string {
	return filepath.Join(guestSrc, s.dir, s.name()+".test")
}

func (s suite) name() string {
	if s.dir == "." {
		return "linux"
	}
	return s.dir
}

const nobody = 65534

func (b *built) steps(k vm.Kernel, v variant) []vm.Step {
	guest := vm.Step{Name: "guest", Argv: []string{guestSelf, "-test.v", "-test.run", "^TestGuest"}, Env: []string{guestVar + "=" + v.name}, Timeout: 3 * time.Minute}
	if !v.suites {
		return []vm.Step{guest}
	}
	steps := []vm.Step{
		{Name: "doctor", Argv: []string{guestThole, "doctor", "-o", "json"}, Timeout: time.Minute},
		{Name: "doctor as user", Argv: []string{guestThole, "doctor", "-o", "json"}, User: nobody, Timeout: time.Minute},
		guest,
	}
	for _, s := range b.suites {
		argv := []string{s.binary(), "-test.v", "-test.short", "-test.timeout", s.limit.String()}
		if s.run != "" {
			argv = append(argv, "-test.run", s.run)
		}
		if k.Name != slowKernel {
			argv = append(argv, "-test.skip", slowTests)
		}
		steps = append(steps, vm.Step{Name: s.name(), Argv: argv, Dir: filepath.Dir(s.binary()), Timeout: s.limit + 10*time.Second})
	}
	return steps
}

func (b *built) boot(t *testing.T, k vm.Kernel, v variant, tab *table) {
	m := vm.Machine{Kernel: k, Disk: b.disk, Init: b.self, Append: v.boot, Modules: protocols, Steps: b.steps(k, v)}
	if *console {
		m.Console = os.Stderr
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	start := time.Now()
	results, err := vm.Boot(ctx, m)
	if err != nil {
		t.Error(err)
	}
	var took []string
	for _, r := range results {
		if r.End != nil {
			took = append(took, fmt.Sprintf("%s %.0f s", r.Name, r.End.Took.Seconds()))
		}
	}
	fmt.Printf("%s %s: %.0f s (%s)\n", k.Release, v.name, time.Since(start).Seconds(), strings.Join(took, ", "))
	for _, r := range results {
		if strings.HasPrefix(r.Name, "doctor") {
			readDoctor(t, k, &r, tab)
			continue
		}
		judge(t, k, &r)
		tab.facts(k, r.Out)
	}
}

// readDoctor takes the report; whether it is what it should be the table says.
func readDoctor(t *testing.T, k vm.Kernel, r *vm.Result, tab *table) {
	var rep platform.Report
	if err := json.Unmarshal([]byte(r.Out), &rep); err != nil || r.End == nil || r.End.Code > 1 {
		t.Errorf("%s on %s: %v, %+v\n%s%s", r.Name, k.Release, err, r.End, r.Out, r.Err)
		return
	}
	tab.report(k, r.User != 0, rep)
}

var (
	failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	skipLine = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)
	passLine = regexp.MustCompile(`(?m)^--- PASS: `)
)

// judge holds one suite to having passed, and prints what it said where not.
func judge(t *testing.T, k vm.Kernel, r *vm.Result) {
	t.Helper()
	switch {
	case r.End == nil:
		t.Errorf("%s on %s: did not end\n%s%s", r.Name, k.Release, r.Out, r.Err)
	case !r.OK():
		var failed []string
		for _, m := range failLine.FindAllStringSubmatch(r.Out, -1) {
			failed = append(failed, m[1])
		}
		t.Errorf("%s on %s: exit %d %s, failed: %s\n%s%s", r.Name, k.Release, r.End.Code, r.End.Error, strings.Join(failed, " "), r.Out, r.Err)
	case !passLine.MatchString(r.Out):
		t.Errorf("%s on %s: ran no test\n%s", r.Name, k.Release, r.Out)
	}
	for _, m := range skipLine.FindAllStringSubmatch(r.Out, -1) {
		if !skipAllowed(k.Name, m[1]) {
			t.Errorf("%s on %s: %s was skipped:\n%s", r.Name, k.Release, m[1], around(r.Out, m[0]))
		}
	}
}

// around returns the lines before a line: go test prints a reason first.
func around(text, line string) string {
	before, _, _ := strings.Cut(text, line)
	lines := strings.Split(before, "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "\n")
}
