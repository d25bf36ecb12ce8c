// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"golang.org/x/sys/unix"
)

// A launcher of these tests: it becomes a shell that says where it is, waits
// for a line, has the test binary dial and exits with a status of its own. It
// starts before TestMain, which knows nothing of it.
const (
	givenRole   = "given"
	givenStatus = 7
	givenPort   = 9
	givenDials  = 3
)

func init() {
	if os.Getenv(roleVar) == givenRole {
		givenMain(os.Args[1], os.Args[2])
	}
}

func givenMain(parent, bin string) {
	m, err := look(parent)
	if err != nil {
		fmt.Println(err)
		os.Exit(selfWrong)
	}
	script := fmt.Sprintf("echo started; read line; %s %d %d || exit 9; exit %d", bin, givenPort, givenDials, givenStatus)
	plan, err := (&Platform{m}).PlanExec(platform.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", script},
		Env:    []string{"PATH=/usr/bin:/bin", roleVar + "=connect"},
		Policy: &policy.Policy{Kind: "runner", Net: policy.Net{Mode: policy.Any}, FS: policy.FS{RO: []policy.Path{{Path: bin}}}}})
	if err != nil {
		fmt.Println(err)
		os.Exit(platform.Exit(err))
	}
	err = plan.Exec(func() error { return nil })
	fmt.Println(err)
	os.Exit(platform.Exit(err))
}

// given is a cgroup beside the parent, as an agent makes one for a launcher.
type given struct {
	t   *testing.T
	p   *Platform
	bin string
	dir string
	fd  *os.File
	id  uint64
}

func newGiven(t *testing.T, p *Platform, name string) *given {
	t.Helper()
	g := &given{t: t, p: p, dir: p.m.parent.Path + "-" + name, bin: filepath.Join(shared(t), "linux.test")}
	copyFile(t, g.bin)
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(g.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("remove cgroup: %v", err)
		}
	})
	var err error
	if g.fd, err = os.Open(g.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.fd.Close() })
	var st unix.Stat_t
	if err := unix.Fstat(int(g.fd.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	g.id = st.Ino
	return g
}

// run is a launcher that has become its program.
type run struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
}

// launch starts a launcher in the cgroup and returns when its program runs.
func (g *given) launch() *run {
	g.t.Helper()
	c := exec.Command("/proc/self/exe", filepath.Base(g.p.m.parent.Path), g.bin)
	c.Env = []string{roleVar + "=" + givenRole, "PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.fd.Fd())}
	in, err := c.StdinPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		g.t.Fatal(err)
	}
	r := &run{g.t, c, in}
	g.t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		g.t.Fatalf("launcher: %q, %v", line, err)
	}
	return r
}

// end lets the program go on and returns its exit status.
func (r *run) end() int {
	r.t.Helper()
	if _, err := io.WriteString(r.in, "\n"); err != nil {
		r.t.Error(err)
	}
	r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

// cgroup is the program's place in the v2 hierarchy, as a directory.
func (r *run) cgroup(p *Platform) string {
	r.t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/cgroup")
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return p.m.cgroupMount + strings.TrimSpace(path)
		}
	}
	r.t.Fatalf("no v2 cgroup in %q", b)
	return ""
}

// confined checks what the kernel says of the program.
func (r *run) confined() {
	r.t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	field := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		field[k] = strings.TrimSpace(v)
	}
	uid, _ := strconv.Atoi(strings.Fields(field["Uid"])[0])
	if field["NoNewPrivs"] != "1" || field["Seccomp"] != "2" || strings.Trim(field["CapEff"], "0") != "" || uid < 0x70000000 {
		r.t.Errorf("not confined: no_new_privs %s, seccomp %s, capabilities %s, uid %d", field["NoNewPrivs"], field["Seccomp"], field["CapEff"], uid)
	}
}

// leaves are the cgroups that launchers made for themselves.
func leaves(t *testing.T, p *Platform) (names []string) {
	t.Helper()
	d, err := os.ReadDir(p.m.parent.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// known reports whether the kernel's maps hold the rules of a cgroup.
func (g *given) known() bool {
	return g.p.m.enforcer.VerifyAt(int(g.fd.Fd()), g.id) == nil
}

// TestGiven: a launcher in a cgroup made for it stays there, its program is
// under the rules, and its status is the launcher's. Its rules go when the
// cgroup is gone and the next launcher comes.
func TestGiven(t *testing.T) {
	p := testPlatform(t)
	needRoot(t, p)
	g := newGiven(t, p, "given")
	r := g.launch()
	if at := r.cgroup(p); at != g.dir {
		t.Errorf("it runs in %s, was given %s", at, g.dir)
	}
	r.confined()
	if n := leaves(t, p); len(n) != 0 {
		t.Errorf("it made %v as well", n)
	}
	if !g.known() {
		t.Error("its cgroup does not run the programs with its policy")
	}
	if code := r.end(); code != givenStatus {
		t.Errorf("exit status %d, want %d", code, givenStatus)
	}
	if s, err := p.m.enforcer.Stats(g.id); err != nil || s.Denied != givenDials {
		t.Errorf("stats %+v, %v: want %d refused", s, err, givenDials)
	}
	if err := os.Remove(g.dir); err != nil {
		t.Fatal(err)
	}
	next := newGiven(t, p, "next")
	r = next.launch()
	if s, err := p.m.enforcer.Stats(g.id); err != nil || s.Denied != 0 {
		t.Errorf("stats %+v, %v of a cgroup that is gone", s, err)
	}
	if err := p.m.enforcer.Verify(g.id); err == nil {
		t.Error("the policy of a cgroup that is gone is still there")
	}
	if !next.known() {
		t.Error("the next launcher swept its own rules")
	}
	if code := r.end(); code != givenStatus {
		t.Errorf("exit status %d, want %d", code, givenStatus)
	}
	if err := os.Remove(next.dir); err != nil {
		t.Fatal(err)
	}
	if n, err := p.m.sweepRules(); n != 1 || err != nil {
		t.Errorf("swept %d, %v, want the last one's", n, err)
	}
	if n, err := p.m.sweepRules(); n != 0 || err != nil {
		t.Errorf("swept %d, %v once more", n, err)
	}
}

// TestGivenShared: a cgroup with another process in it, or with a cgroup below
// it, was not made for the launcher: it makes its own, and the other process
// is not judged.
func TestGivenShared(t *testing.T) {
	for _, how := range []string{"process", "cgroup below"} {
		t.Run(how, func(t *testing.T) {
			p := testPlatform(t)
			needRoot(t, p)
			g := newGiven(t, p, "shared")
			if how == "process" {
				sleeper := exec.Command("sleep", "1000")
				sleeper.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.fd.Fd())}
				if err := sleeper.Start(); err != nil {
					t.Fatal(err)
				}
				defer sleeper.Wait()
				defer sleeper.Process.Kill()
			} else {
				if err := os.Mkdir(g.dir+"/sub", 0o755); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(g.dir + "/sub")
			}
			r := g.launch()
			if at := r.cgroup(p); filepath.Dir(at) != p.m.parent.Path {
				t.Errorf("it runs in %s, not in a leaf of %s", at, p.m.parent.Path)
			}
			r.confined()
			if g.known() {
				t.Error("the shared cgroup runs the programs")
			}
			if code := r.end(); code != givenStatus {
				t.Errorf("exit status %d, want %d", code, givenStatus)
			}
			if n, err := p.Sweep(); n != 1 || err != nil {
				t.Errorf("swept %d leaves, %v", n, err)
			}
			if n := leaves(t, p); len(n) != 0 {
				t.Errorf("left: %v", n)
			}
		})
	}
}
