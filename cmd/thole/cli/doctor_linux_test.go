// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/sandtest"
	"github.com/tholehq/thole/linux"
)

// buildThole builds the command where every uid can execute it.
func buildThole(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(sandtest.Dir(t), "thole")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/tholehq/thole/cmd/thole")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build thole: %v\n%s", err, out)
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// doctor runs it, as another uid where uid is not negative.
// Its directory is gone afterwards.
func doctor(t *testing.T, bin string, uid int, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"doctor"}, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}
	if uid >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	t.Logf("doctor %s took %v", strings.Join(args, " "), time.Since(began))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob("/var/tmp/thole-doctor-*-" + strconv.Itoa(cmd.Process.Pid) + "-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// statuses reads a report.
func statuses(t *testing.T, text string) map[platform.Capability]platform.Finding {
	t.Helper()
	var r platform.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	m := map[platform.Capability]platform.Finding{}
	for i, f := range r.Findings {
		if i >= len(platform.Capabilities()) || f.Capability != platform.Capabilities()[i] {
			t.Fatalf("finding %d is of %s", i, f.Capability)
		}
		m[f.Capability] = f
	}
	if len(m) != len(platform.Capabilities()) {
		t.Fatalf("%d findings", len(m))
	}
	return m
}

func host(t *testing.T) (landlock int, root, userNS bool) {
	t.Helper()
	pf, err := linux.New()
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	h := pf.Host()
	return h.Landlock, h.Root, h.UserNS
}

// TestDoctor asks the real command about this host, as root and as an
// ordinary user.
func TestDoctor(t *testing.T) {
	sandtest.Root(t, "it starts the command as root and as another uid")
	abi, root, _ := host(t)
	if abi < 6 || !root {
		t.Skipf("needs Landlock ABI 6 (here %d) and a cgroup v2 hierarchy", abi)
	}
	bin := buildThole(t)
	for _, who := range []struct {
		name string
		uid  int
		lost []platform.Capability // of what this machine's root has
	}{
		{"root", -1, nil},
		{"nobody", 65534, []platform.Capability{platform.Identity, platform.NetAllowlist, platform.NetAny, platform.Freeze, platform.EventsNet}},
	} {
		text, code := doctor(t, bin, who.uid, "-o", "json")
		found := statuses(t, text)
		if code != 0 {
			t.Errorf("%s: exit %d", who.name, code)
		}
		for _, c := range always {
			if f := found[c]; f.Status != platform.Enforced {
				t.Errorf("%s: %s is %s: %s", who.name, c, f.Status, f.Reason)
			}
		}
		for _, c := range who.lost {
			f := found[c]
			if f.Status != platform.Unavailable || f.Reason == "" || f.Remedy == "" {
				t.Errorf("%s: %s is %s: reason %q, remedy %q", who.name, c, f.Status, f.Reason, f.Remedy)
			}
		}
		plain, code := doctor(t, bin, who.uid)
		if code != 0 {
			t.Errorf("%s: exit %d", who.name, code)
		}
		for line := range strings.Lines(plain) {
			if utf8.RuneCountInString(line) > reportWidth+1 {
				t.Errorf("%s: too wide: %q", who.name, line)
			}
		}
		for _, label := range []string{"kernel ", "user ", "landlock ", "cgroup v2 ", "bpffs ", "leftovers "} {
			if !strings.Contains(plain, "\n"+label) && !strings.HasPrefix(plain, label) {
				t.Errorf("%s: no line %q", who.name, label)
			}
		}
	}
}

// TestDoctorSweeps: what a killed run left goes, and is told. Others may sweep
// the leaf at the same time; the temporary directories are this test's.
func TestDoctorSweeps(t *testing.T) {
	sandtest.Root(t, "it makes a leaf that nobody owns")
	_, root, _ := host(t)
	if !root {
		t.Skip("needs a cgroup v2 hierarchy")
	}
	bin := buildThole(t)
	pf, err := linux.New()
	if err != nil {
		t.Fatal(err)
	}
	facts := pf.Facts()
	pf.Close()
	leaf := ""
	for _, f := range facts {
		if mount, _, ok := strings.Cut(f[1], ","); ok && f[0] == "cgroup v2" {
			leaf = filepath.Join(mount, "thole", "j1879050001")
		}
	}
	t.Setenv("TMPDIR", sandtest.Dir(t))
	run, err := os.MkdirTemp("", tempPrefix())
	if err != nil {
		t.Fatal(err)
	}
	probe, err := os.MkdirTemp("", "thole-doctor-0-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(leaf)
	text, _ := doctor(t, bin, -1)
	for _, path := range []string{run, probe, leaf} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	if !strings.Contains(text, "2 temporary directories removed") {
		t.Errorf("nothing is told of what was swept:\n%s", text)
	}
}

func TestLeftovers(t *testing.T) {
	for _, tt := range []struct {
		leaves, dirs int
		want         string
	}{
		{0, 0, "none"},
		{1, 0, "1 sandbox of killed runs ended and removed"},
		{2, 1, "2 sandboxes of killed runs ended and removed, 1 temporary directory removed"},
		{0, 3, "3 temporary directories removed"},
	} {
		if got := leftovers(tt.leaves, tt.dirs); got != tt.want {
			t.Errorf("%d, %d: %q, want %q", tt.leaves, tt.dirs, got, tt.want)
		}
	}
}

// TestProbeActsOutside: where nothing confines it, it does what harms nobody,
// or nothing.
func TestProbeActsOutside(t *testing.T) {
	bin := buildThole(t)
	for _, tt := range []struct {
		args []string
		out  string
		code int
	}{
		{[]string{`[{"id":"a","op":"socketpair"},{"id":"b","op":"list","path":"/"}]`}, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"end\"}\n", 0},
		{[]string{`[{"id":"a","op":"socketpair"},{"id":"b","op":"read","path":"/etc/shadow"}]`}, "", exitUsage},
		{[]string{`not json`}, "", exitUsage},
		{nil, "", exitUsage},
	} {
		cmd := exec.Command(bin, append([]string{"probe-acts"}, tt.args...)...)
		out, _ := cmd.Output()
		if string(out) != tt.out || cmd.ProcessState.ExitCode() != tt.code {
			t.Errorf("%v: %q, exit %d", tt.args, out, cmd.ProcessState.ExitCode())
		}
	}
}
