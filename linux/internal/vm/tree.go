// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tree is the root file system of a guest while it is put together, in a
// directory of the host.
type Tree struct{ dir string }

// NewTree makes a file system with a shell and its tools (busybox, found in
// PATH; it must be static), the users root and nobody, and a merged /usr, in
// the empty directory dir.
func NewTree(dir string) (*Tree, error) {
	t := &Tree{dir}
	if err := t.base(); err != nil {
		return nil, fmt.Errorf("make guest's file system: %w", err)
	}
	return t, nil
}

func (t *Tree) base() error {
	for _, d := range []struct {
		name string
		perm fs.FileMode
	}{
		{"dev", 0o755}, {"etc", 0o755}, {"home", 0o755}, {"opt", 0o755}, {"proc", 0o755}, {"root", 0o700}, {"run", 0o755}, {"srv", 0o755},
		{"sys", 0o755}, {"tmp", 0o777 | fs.ModeSticky}, {"usr/bin", 0o755}, {"usr/sbin", 0o755}, {"usr/lib", 0o755}, {"var/tmp", 0o777 | fs.ModeSticky},
	} {
		path := filepath.Join(t.dir, d.name)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, d.perm)); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "sbin", "lib"} {
		if err := os.Symlink("usr/"+name, filepath.Join(t.dir, name)); err != nil {
			return err
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	if err := t.Program(busybox, "/bin/busybox"); err != nil {
		return err
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(t.dir, "usr/bin", name)); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, text string
		perm       fs.FileMode
	}{
		{"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n", 0o644},
		{"/etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644},
		{"/etc/shadow", "root:*:20000:0:99999:7:::\nnobody:*:20000:0:99999:7:::\n", 0o600},
		{"/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", 0o644},
		{"/etc/hostname", "guest\n", 0o644},
		{"/etc/resolv.conf", "nameserver 192.0.2.53\n", 0o644},
	} {
		if err := t.Write(f.name, f.text, f.perm); err != nil {
			return err
		}
	}
	return nil
}

// Write puts a file into the tree; name is its path in the guest.
func (t *Tree) Write(name, text string, perm fs.FileMode) error {
	path := filepath.Join(t.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), perm)
}

// Program copies a static program into the tree. A program with an
// interpreter is an error: the guest has none.
func (t *Tree) Program(host, name string) error {
	if err := static(host); err != nil {
		return err
	}
	b, err := os.ReadFile(host)
	if err != nil {
		return err
	}
	return t.Write(name, string(b), 0o755)
}

// Dir copies a directory with what is below it.
func (t *Tree) Dir(host, name string) error {
	return os.CopyFS(filepath.Join(t.dir, name), os.DirFS(host))
}

func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read program %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}

// Image writes the tree as an ext4 file system to path, with that much room
// in MiB, all of it root's. It calls mkfs.ext4 (e2fsprogs).
func (t *Tree) Image(path string, room int) error {
	size := int64(room) << 20
	err := filepath.WalkDir(t.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err == nil {
			size += i.Size()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("measure guest's file system: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "root_owner=0:0", "-d", t.dir, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make guest's disk: %w\n%s", err, out)
	}
	return nil
}
