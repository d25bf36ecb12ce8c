// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"os/exec"
	"runtime"
	"testing"
)

func TestTables(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		rows, byName := a.calls()
		if len(rows) != len(byName) {
			t.Fatalf("%s: %d rows, %d names", a, len(rows), len(byName))
		}
		for i, c := range rows {
			if i > 0 && rows[i-1].nr >= c.nr {
				t.Errorf("%s: %d does not rise", a, c.nr)
			}
			if i > 0 && rows[byName[i-1]].name >= rows[byName[i]].name {
				t.Errorf("%s: %s does not rise", a, rows[byName[i]].name)
			}
			if nr, ok := a.Number(c.name); !ok || nr != c.nr {
				t.Errorf("%s: Number(%q) = %d, %t", a, c.name, nr, ok)
			}
			if name, ok := a.Name(c.nr); !ok || name != c.name {
				t.Errorf("%s: Name(%d) = %q, %t", a, c.nr, name, ok)
			}
		}
		for _, name := range []string{"", "aaa", "socketz", "zzz", "READ"} {
			if nr, ok := a.Number(name); ok {
				t.Errorf("%s: Number(%q) = %d", a, name, nr)
			}
		}
		for _, nr := range []uint32{400, 5000, 0xffffffff} {
			if name, ok := a.Name(nr); ok {
				t.Errorf("%s: Name(%d) = %q", a, nr, name)
			}
		}
	}
	// Known from the ABI documents, so that a table of the wrong architecture
	// is noticed.
	for _, c := range []struct {
		a    Arch
		name string
		nr   uint32
	}{{AMD64, "execve", 59}, {AMD64, "clone3", 435}, {ARM64, "execve", 221}, {ARM64, "clone3", 435}} {
		if nr, _ := c.a.Number(c.name); nr != c.nr {
			t.Errorf("%s: %s is %d, want %d", c.a, c.name, nr, c.nr)
		}
	}
}

func TestZeroArch(t *testing.T) {
	var a Arch
	if _, ok := a.Number("read"); ok || a.Audit() != 0 {
		t.Error("the zero Arch knows a call")
	}
	if _, ok := a.Name(0); ok {
		t.Error("the zero Arch knows a number")
	}
}

func TestNative(t *testing.T) {
	a, ok := Native()
	if want := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"; ok != want {
		t.Errorf("Native() = %s, %t on %s", a, ok, runtime.GOARCH)
	}
	if ok && a.String() != runtime.GOARCH {
		t.Errorf("Native() = %s on %s", a, runtime.GOARCH)
	}
}

// TestTablesFresh runs the generator against the committed tables.
func TestTablesFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator; run without -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to run the generator with")
	}
	if out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output(); err != nil || len(out) < 2 {
		t.Skip("the sources of golang.org/x/sys are not here")
	}
	if out, err := exec.Command("go", "run", "gen.go", "-check").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
