// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestBuildOnce(t *testing.T) {
	const pkg = "github.com/tholehq/thole/linux/internal/prisoner"
	p := Build(t, pkg)
	first, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(Build(t, pkg))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(first, again) || !first.ModTime().Equal(again.ModTime()) {
		t.Error("the program was built twice")
	}
	if err := exec.Command(p).Run(); err == nil {
		t.Error("the program takes no arguments for an order")
	}
}

func TestSelf(t *testing.T) {
	out, err := exec.Command(Self(t), "-test.list", "TestSelf").Output()
	if err != nil || !strings.Contains(string(out), "TestSelf\n") {
		t.Errorf("the copy lists %q, %v", out, err)
	}
}

func TestFinding(t *testing.T) {
	r := platform.Report{Findings: []platform.Finding{{Capability: platform.FS, Status: platform.Enforced}}}
	if f, ok := finding(r, platform.FS); !ok || f.Status != platform.Enforced {
		t.Errorf("finding of %s: %v, %v", platform.FS, f, ok)
	}
	if _, ok := finding(r, platform.GPU); ok {
		t.Error("a capability that the report leaves out is found")
	}
}

// TestNeedAsksTheHost: what is needed here is named by every report, so that
// Need skips or goes on, and fails only where the host cannot be asked.
func TestNeedAsksTheHost(t *testing.T) {
	r, err := report()
	if err != nil {
		t.Skipf("no backend here: %v", err)
	}
	for _, c := range platform.Capabilities() {
		if _, ok := finding(r, c); !ok {
			t.Errorf("the host's report says nothing of %s", c)
		}
	}
}
