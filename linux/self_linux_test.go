// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/launch"
)

// Exit statuses of execMain beside the program's own.
const (
	selfRefused = 70
	selfWrong   = 99
)

// execMain becomes a shell by way of a launch that is changed: the arguments
// are the parent cgroup, the rw root, what to do ("keep", "fail", "drop",
// "list") and the call to do it to.
func execMain() {
	parent, dir, what := os.Args[1], os.Args[2], os.Args[3]
	i, _ := strconv.Atoi(os.Args[4])
	m, err := look(parent)
	if err != nil {
		fmt.Println(err)
		os.Exit(selfWrong)
	}
	p := &Platform{m}
	plan, err := p.PlanExec(platform.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo ran > " + dir + "/ran"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: &policy.Policy{Kind: "runner", FS: policy.FS{RW: []policy.Path{{Path: dir}}}}})
	if err != nil {
		fmt.Println(err)
		os.Exit(selfWrong)
	}
	plan.tamper = func(l launch.List) launch.List {
		switch what {
		case "list":
			for _, o := range l {
				fmt.Printf("%s\t%s\n", o.Step, o)
			}
			os.Exit(0)
		case "fail":
			l[i] = broken(l[i].Step)
		case "drop":
			l = slices.Delete(l, i, i+1)
		}
		return l
	}
	told := false
	err = plan.Exec(func() error {
		told = true
		_, err := fmt.Println("confined")
		return err
	})
	fmt.Println(err)
	if told && platform.Exit(err) == selfRefused && !strings.Contains(err.Error(), "gate") {
		os.Exit(selfWrong)
	}
	os.Exit(platform.Exit(err))
}

// becomes runs execMain and returns what it printed and its exit status.
func becomes(t *testing.T, p *Platform, dir, what string, i int) (string, int) {
	t.Helper()
	c := exec.Command("/proc/self/exe", filepath.Base(p.m.parent.Path), dir, what, strconv.Itoa(i))
	c.Env = []string{roleVar + "=exec", "PATH=/usr/bin:/bin"}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// TestSelfEveryCall makes each call of a launcher that becomes the program
// fail once, and leaves each out once.
func TestSelfEveryCall(t *testing.T) {
	p := testPlatform(t)
	needRoot(t, p)
	dir := filepath.Join(shared(t), "rw")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	ran := func() bool { return os.Remove(dir+"/ran") == nil }
	out, code := becomes(t, p, dir, "list", 0)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) < 40 {
		t.Fatalf("exit %d, %s", code, out)
	}
	if _, err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, p, filepath.Dir(dir))
	// Often: which of the process's threads launches is the scheduler's choice.
	for range 30 {
		if out, code := becomes(t, p, dir, "keep", 0); code != 0 || out != "confined\n" || !ran() {
			t.Fatalf("the launch as it is: exit %d, %s", code, out)
		}
	}
	for i, line := range lines {
		step, o, _ := strings.Cut(line, "\t")
		out, code := becomes(t, p, dir, "fail", i)
		want := selfRefused
		if step == "exec" || step == "workdir" {
			want = platform.ExitStart
		}
		if code != want || ran() {
			t.Errorf("call %d, %s: exit %d, %s", i, o, code, out)
		}
		if strings.HasPrefix(o, "write(@status") || step == "exec" || step == "gate" {
			continue // the last two become nothing, the first is TestSilentChild
		}
		out, code = becomes(t, p, dir, "drop", i)
		if code == 0 {
			leftOut(t, o, nil, map[string]bool{})
		} else if code != selfRefused || ran() {
			t.Errorf("without %s: exit %d, %s", o, code, out)
		}
		ran()
	}
	// What became the program has nobody who takes its leaf away: a sweep does.
	if _, err := p.Sweep(); err != nil {
		t.Error(err)
	}
	same(t, before, snapshot(t, p, filepath.Dir(dir)))
}
