// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/launch"
	"golang.org/x/sys/unix"
)

func finding(t *testing.T, r platform.Report, c platform.Capability) platform.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Capability == c {
			return f
		}
	}
	t.Fatalf("the report says nothing of %s", c)
	return platform.Finding{}
}

// sites are the directories of this process's probes.
func sites(t *testing.T) []string {
	t.Helper()
	var l []string
	for _, d := range siteDirs() {
		names, err := filepath.Glob(filepath.Join(d, sitePrefix()+strconv.Itoa(os.Getpid())+"-*"))
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, names...)
	}
	return l
}

// TestProbe probes this host with this test binary as the confined program:
// what a policy always needs is enforced, and nothing stays behind.
func TestProbe(t *testing.T) {
	p := testPlatform(t)
	if p.m.Landlock < 6 || !p.m.Root && !p.m.UserNS {
		t.Skipf("needs Landlock ABI 6 (here %d), and root or user namespaces (%s)", p.m.Landlock, p.m.Why["userns"])
	}
	// The first one opens handles that stay, as long as the platform is used.
	if _, err := p.Probe(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, p, "/var/tmp/"+probePrefix)
	began := time.Now()
	r, err := p.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	same(t, before, snapshot(t, p, "/var/tmp/"+probePrefix))
	t.Logf("probed in %v", time.Since(began))
	for _, c := range []platform.Capability{platform.FS, platform.FSMetadata, platform.IPC, platform.NetNone, platform.NetLoopback, platform.NetLinkLocal,
		platform.NetListen, platform.ExecWritable, platform.Children, platform.Signals, platform.VerifyKernel, platform.FoldersRead, platform.FoldersWrite} {
		if f := finding(t, r, c); f.Status != platform.Enforced {
			t.Errorf("%s: %s: %s", c, f.Status, f.Reason)
		}
	}
	if p.m.BPF {
		for _, c := range []platform.Capability{platform.Identity, platform.NetAllowlist, platform.NetAny, platform.Freeze, platform.EventsNet} {
			if f := finding(t, r, c); f.Status != platform.Enforced {
				t.Errorf("%s: %s: %s", c, f.Status, f.Reason)
			}
		}
	}
	for controller, c := range map[string]platform.Capability{"memory": platform.Memory, "cpu": platform.CPU, "pids": platform.Pids} {
		if f := finding(t, r, c); p.m.Root && slices.Contains(p.m.Controllers, controller) && f.Status != platform.Enforced {
			t.Errorf("%s: %s: %s", c, f.Status, f.Reason)
		}
	}
	for _, f := range r.Findings {
		t.Logf("%s: %s by %q: %s", f.Capability, f.Status, f.By, f.Reason)
		if f.Reason == "" || f.Status != platform.Enforced && f.Remedy == "" {
			t.Errorf("%s: reason %q, remedy %q", f.Capability, f.Reason, f.Remedy)
		}
	}
	if left := sites(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if p.m.parent != nil {
		if n, err := p.Sweep(); n != 0 || err != nil {
			t.Errorf("sweep finds %d leaves, %v", n, err)
		}
	}
}

// TestProbeSeesHoles takes a layer out of every child: what it alone holds is
// reported as not enforced.
func TestProbeSeesHoles(t *testing.T) {
	p := testPlatform(t)
	needRoot(t, p)
	without := func(drop func(launch.Op) bool) func(launch.List) launch.List {
		return func(l launch.List) launch.List { return slices.DeleteFunc(slices.Clone(l), drop) }
	}
	tests := []struct {
		name   string
		drop   func(launch.Op) bool
		lost   []platform.Capability
		reason string
		kept   []platform.Capability
	}{
		{"landlock", func(o launch.Op) bool { return o.Step == "landlock" },
			[]platform.Capability{platform.FS, platform.FoldersWrite, platform.Children}, "was allowed",
			[]platform.Capability{platform.FSMetadata, platform.Identity, platform.NetAny, platform.NetListen}},
		// Verification sees these, so that no child starts.
		{"seccomp", func(o launch.Op) bool { return o.Step == "seccomp" }, platform.Capabilities()[:4], "not verified", nil},
		{"identity", func(o launch.Op) bool { return o.Call == launch.Setresuid }, platform.Capabilities()[:4], "", nil},
	}
	for _, tt := range tests {
		s, err := newSite(true)
		if err != nil {
			t.Fatal(err)
		}
		s.tamper = without(tt.drop)
		r, err := p.probeAt(context.Background(), s)
		s.remove()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range tt.lost {
			if f := finding(t, r, c); f.Status != platform.Unavailable || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("without %s, %s is %s: %s", tt.name, c, f.Status, f.Reason)
			}
		}
		for _, c := range tt.kept {
			if f := finding(t, r, c); f.Status != platform.Enforced {
				t.Errorf("without %s, %s is %s: %s", tt.name, c, f.Status, f.Reason)
			}
		}
	}
	if left := sites(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSweepSites: a directory whose probe was killed goes, one in use stays.
func TestSweepSites(t *testing.T) {
	in := t.TempDir()
	dead, f, err := lockedDir(in)
	if err != nil {
		t.Fatal(err)
	}
	f.Close() // what a kill does
	live, f, err := lockedDir(in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := sweepSites([]string{in}); n != 1 {
		t.Errorf("swept %d directories", n)
	}
	if exists(dead) || !exists(live) {
		t.Errorf("of a dead and a live one there are: %v, %v", exists(dead), exists(live))
	}
}

// TestFork takes processes up to a limit, and leaves none. pids.max answers
// as RLIMIT_NPROC does.
func TestFork(t *testing.T) {
	before := kids()
	if err := doFork(4); err != nil {
		t.Errorf("fork 4: %v", err)
	}
	if after := kids(); len(after) > len(before) {
		t.Errorf("children %v, before %v", after, before)
	}
	if err := doAlloc(1 << 20); err != nil {
		t.Errorf("alloc: %v", err)
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil && kernelRelease() == "" {
		t.Error("no kernel release")
	}
}

func TestThrottled(t *testing.T) {
	for text, want := range map[string]bool{"": false, "usage_usec 5\nnr_throttled 0\n": false, "nr_periods 3\nnr_throttled 2\nthrottled_usec 7\n": true} {
		if throttled(text) != want {
			t.Errorf("throttled(%q) is %v", text, !want)
		}
	}
}
