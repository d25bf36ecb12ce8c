// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"testing"
)

// Build builds a command of this module, static, and returns the path of the
// program. Within one test binary each package is built once.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return once(t, pkg, func(to string) error {
		cmd := exec.Command("go", "build", "-trimpath", "-o", to, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("go build %s:\n%s", pkg, out)
		}
		return err
	})
}

// Self returns a copy of the running test binary that every uid can execute:
// the go command keeps the original where only its own user can reach it.
func Self(t testing.TB) string {
	t.Helper()
	return once(t, "self", func(to string) error {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(exe)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o755)
	})
}

func once(t testing.TB, name string, build func(to string) error) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if p, ok := shared.built[name]; ok {
		return p
	}
	if shared.dir == "" {
		dir, err := makeDir()
		if err != nil {
			t.Fatal(err)
		}
		shared.dir, shared.built = dir, map[string]string{}
	}
	p := filepath.Join(shared.dir, path.Base(name))
	if runtime.GOOS == "windows" {
		p += ".exe"
	}
	if err := build(p); err != nil {
		t.Fatalf("make %s: %v", name, err)
	}
	if err := os.Chmod(p, 0o755); err != nil {
		t.Fatal(err)
	}
	shared.built[name] = p
	return p
}
