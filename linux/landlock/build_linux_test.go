// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// need skips where the kernel has no Landlock, with its reason.
func need(t *testing.T) ABI {
	t.Helper()
	v, why := Version()
	if v == 0 {
		t.Skip("needs Landlock: ", why)
	}
	return Of(v)
}

func open(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestBuild: the kernel takes every rule that the ABI has, files and
// directories, and what is optional and missing is passed over.
func TestBuild(t *testing.T) {
	abi := need(t)
	dir := t.TempDir()
	file := dir + "/f"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	handles := map[string]int{"dir": open(t, dir), "file": open(t, file)}
	r := New(abi)
	for _, a := range []Access{Read, Execute, Write, Outbox, Device, Ioctl, Unix} {
		r.Allow(Rule{Path: dir, Handle: "dir", Access: a})
		r.Allow(Rule{Path: file, Handle: "file", File: true, Access: a})
	}
	// A path of the base system that is a file here.
	r.Allow(Rule{Path: file, Access: Read | Execute, Optional: true})
	r.Allow(Rule{Path: dir + "/none", Access: Read, Optional: true})
	if abi.Net != 0 {
		r.Net, r.ConnectPorts = abi.Net, []uint16{0, 1, 65535}
	}
	fd, err := r.Build(func(h string) (int, bool) { fd, ok := handles[h]; return fd, ok })
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags != unix.FD_CLOEXEC {
		t.Errorf("flags %d, %v", flags, err)
	}
	unix.Close(fd)
}

// TestBuildFails: a rule that cannot be added fails the whole, names its path,
// and leaves no descriptor.
func TestBuildFails(t *testing.T) {
	abi := need(t)
	count := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	file := open(t, "/dev/null")
	before := count()
	for _, tt := range []struct {
		rule Rule
		want error
	}{
		{Rule{Path: "/nonexistent", Access: Read}, unix.ENOENT},
		{Rule{Path: "/somewhere", Handle: "unknown", Access: Read}, nil},
		// The caller says directory, and the kernel looks.
		{Rule{Path: "/dev/null", Handle: "file", Access: Read}, unix.EINVAL},
	} {
		r := New(abi)
		r.Allow(tt.rule)
		fd, err := r.Build(func(h string) (int, bool) { return file, h == "file" })
		if err == nil || fd != -1 || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.rule.Path) {
			t.Errorf("%+v: %d, %v", tt.rule, fd, err)
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if _, err := (Ruleset{ABI: Of(1), FS: 1 << 60}).Build(nil); err == nil {
		t.Error("a right that no kernel knows was taken")
	}
}
