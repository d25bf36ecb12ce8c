// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tempDir is a private directory that is removed with its run. Its lock ends
// with the process: what a killed run left is found by the next one.
type tempDir struct {
	path string
	f    *os.File
}

func tempPrefix() string { return "thole-" + strconv.Itoa(os.Geteuid()) + "-" }

func newTempDir() (*tempDir, error) {
	sweepTempDirs()
	const tries = 10
	var err error
	for range tries {
		var t *tempDir
		if t, err = tryTempDir(); t != nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("make private directory: %w", err)
}

// tryTempDir fails without harm where another run's sweep came between making
// the directory and locking it.
func tryTempDir() (*tempDir, error) {
	p, err := os.MkdirTemp("", tempPrefix())
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if err != nil {
		_ = os.RemoveAll(p)
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		if err = unix.Lstat(p, &st); err == nil {
			return &tempDir{p, f}, nil
		}
	}
	f.Close()
	_ = os.RemoveAll(p)
	return nil, err
}

func (t *tempDir) remove() {
	_ = os.RemoveAll(t.path)
	t.f.Close()
}

// sweepTempDirs removes the directories of this user's runs that were killed,
// and returns how many.
func sweepTempDirs() (removed int) {
	names, err := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix()+"*"))
	if err != nil {
		return 0
	}
	for _, n := range names {
		st, err := os.Lstat(n)
		if err != nil || !st.IsDir() || !strings.HasPrefix(filepath.Base(n), tempPrefix()) {
			continue
		}
		fd, err := unix.Open(n, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var s unix.Stat_t
		if unix.Fstat(fd, &s) == nil && int(s.Uid) == os.Geteuid() && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil && os.RemoveAll(n) == nil {
			removed++
		}
		_ = unix.Close(fd)
	}
	return removed
}
