// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package kernfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadWhole(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{0, 1, 4095, 4096, 4097, 100_000} {
		p := filepath.Join(dir, "f")
		want := bytes.Repeat([]byte("x"), n)
		if err := os.WriteFile(p, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(p); err != nil || got != string(want) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
}

func TestAtNeverFollowsTheLastLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := ReadAt(int(d.Fd()), "link"); !errors.Is(err, unix.ELOOP) {
		t.Error("read through a link:", err)
	}
	if err := WriteAt(int(d.Fd()), "link", "x"); !errors.Is(err, unix.ELOOP) {
		t.Error("wrote through a link:", err)
	}
	if err := WriteAt(int(d.Fd()), "secret", "new"); err != nil {
		t.Error(err)
	}
	if got, err := ReadAt(int(d.Fd()), "secret"); got != "new" || err != nil {
		t.Error(got, err)
	}
	if _, err := OpenDir(filepath.Join(dir, "secret")); !errors.Is(err, unix.ENOTDIR) {
		t.Error("opened a file as a directory:", err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
