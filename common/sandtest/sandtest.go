// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandtest is what tests of sandboxes share: they need capabilities of
// the host, programs to confine, directories that confined processes of any
// uid can reach, and the assurance that nothing stays behind.
//
// A test binary that builds programs calls [Main] from its TestMain.
package sandtest

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// shared are the programs of this test binary, made once.
var shared struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Main runs the tests and removes what [Build] and [Self] made. It returns
// the exit status:
//
//	func TestMain(m *testing.M) { os.Exit(sandtest.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
		shared.dir, shared.built = "", nil
	}
	return code
}

// Root skips a test that needs root, saying what for.
func Root(t testing.TB, what string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("runs on Linux: " + what)
	}
	if os.Geteuid() != 0 {
		t.Skip("run as root: " + what)
	}
}

// Dir makes a directory that every uid can enter and that lies outside of the
// directories which sandboxes replace by private ones. It is removed with the
// test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := makeDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove directory of the test: %v", err)
		}
	})
	return dir
}

func makeDir() (string, error) {
	base := ""
	if runtime.GOOS == "linux" {
		base = "/var/tmp"
	}
	dir, err := os.MkdirTemp(base, "thole-test-")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
