// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runMixed runs the package in testdata, which has a result of every kind.
func runMixed(t *testing.T, args ...string) (int, string) {
	t.Helper()
	t.Chdir(filepath.Join("testdata", "mixed"))
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var out, stderr bytes.Buffer // one buffer for both would be a race
	status, err := run(append(args, "-count=1", "./..."), &out, &stderr)
	out.Write(stderr.Bytes())
	if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return status, out.String()
}

func allow(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "allowed")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFailureAndSkips(t *testing.T) {
	status, out := runMixed(t)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		"--- FAIL: TestFail", "the reason of the failure", "FAIL\texample.org/mixed",
		"\n4 skipped:\n",
		"skip\texample.org/mixed\tTestGroup/sub: needs a sub\n",
		"skip\texample.org/mixed\tTestSkip: needs a moon\n",
		"skip\texample.org/mixed\tTestSkipBare: (no reason given)\n",
		"skip\texample.org/mixed\tTestSkipLines: needs two lines\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, noise := range []string{"not shown", "quiet", "=== RUN"} {
		if strings.Contains(out, noise) {
			t.Errorf("%q in\n%s", noise, out)
		}
	}
}

func TestStrict(t *testing.T) {
	list := allow(t, "# comment\n\nneeds a\n")
	status, out := runMixed(t, "-strict", "-allow", list, "-run", "Skip|Group|Pass")
	if status != 1 || !strings.Contains(out, "ok  \texample.org/mixed") ||
		!strings.Contains(out, "skip NOT ALLOWED\texample.org/mixed\tTestSkipBare:") ||
		!strings.Contains(out, "skip NOT ALLOWED\texample.org/mixed\tTestSkipLines:") ||
		strings.Contains(out, "NOT ALLOWED\texample.org/mixed\tTestSkip:") ||
		!strings.Contains(out, "error: 2 skipped tests have no allowed reason") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestStrictAllAllowed(t *testing.T) {
	list := allow(t, "needs a moon\nneeds two\nneeds a sub")
	status, out := runMixed(t, "-strict", "-allow", list, "-run", "TestSkip$|TestSkipLines|TestGroup")
	if status != 0 || !strings.Contains(out, "3 skipped:") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestMissingAllowFile(t *testing.T) {
	var out bytes.Buffer
	if status, err := run([]string{"-allow", filepath.Join(t.TempDir(), "none")}, &out, io.Discard); status != 64 || err == nil {
		t.Errorf("status %d, error %v", status, err)
	}
}

func TestBuildFailure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.org/broken\n\ngo 1.26\n",
		"a_test.go": "package a\n\nvar x int = \"text\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	var out, stderr bytes.Buffer
	status, _ := run([]string{"./..."}, &out, &stderr)
	if status == 0 || !strings.Contains(out.String(), "a_test.go:3:13") {
		t.Errorf("status %d\n%s", status, out.String())
	}
}

// TestDeadTest: the output of a test that was running when its binary ended is
// not lost.
func TestDeadTest(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	r.add(record{"output", "p", "TestX", "last words\n"})
	r.add(record{"fail", "p", "", ""})
	if out.String() != "last words\n" {
		t.Errorf("got %q", out.String())
	}
}
