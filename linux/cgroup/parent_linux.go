// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tholehq/thole/linux/kernfile"
	"golang.org/x/sys/unix"
)

// Parent is the directory whose children are our leaves.
type Parent struct {
	// Path is its place in the file system.
	Path string
	dir  *os.File
}

// Mount finds the v2 hierarchy of this host.
func Mount() (string, error) {
	b, err := kernfile.Read("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup mount: %w", err)
	}
	return FindMount(b)
}

// OpenParent opens the directory name of the hierarchy at mount and makes it
// where it does not exist.
func OpenParent(mount, name string) (*Parent, error) {
	p := filepath.Join(mount, name)
	if err := os.Mkdir(p, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make cgroup directory: %w", err)
	}
	d, err := kernfile.OpenDir(p)
	if err != nil {
		return nil, fmt.Errorf("open cgroup directory: %w", err)
	}
	return &Parent{Path: p, dir: d}, nil
}

// Close releases the handle; leaves stay.
func (p *Parent) Close() error { return p.dir.Close() }

// Enable turns the controllers on for the leaves, in the hierarchy's root and
// in the parent. A controller that does not exist here is an error that wraps
// [ErrNoController].
func (p *Parent) Enable(controllers ...string) error {
	for _, dir := range []string{filepath.Dir(p.Path), p.Path} {
		have, err := kernfile.Read(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("read controllers: %w", err)
		}
		on, err := kernfile.Read(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return fmt.Errorf("read controllers: %w", err)
		}
		for _, c := range controllers {
			if slices.Contains(strings.Fields(on), c) {
				continue
			}
			if !slices.Contains(strings.Fields(have), c) {
				return fmt.Errorf("enable %s in %s: %w", c, dir, ErrNoController)
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
				return fmt.Errorf("enable %s in %s: %w", c, dir, err)
			}
		}
	}
	return nil
}

// Available returns the controllers that leaves could have.
func (p *Parent) Available() []string {
	b, err := kernfile.Read(filepath.Join(p.Path, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	root, err := kernfile.Read(filepath.Join(filepath.Dir(p.Path), "cgroup.controllers"))
	if err != nil {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(append(strings.Fields(b), strings.Fields(root)...))))
}

// lock takes flock(2) on f; how is LOCK_SH or LOCK_EX, with LOCK_NB.
func lock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}

// Sweep takes away the leaves whose owners are gone: what runs in them is
// killed first. gone is told the cgroup id of each. A sweep that is under way
// elsewhere is left to do the work.
func (p *Parent) Sweep(gone func(id uint64)) (int, error) {
	// A handle of its own: locks belong to the open file.
	d, err := kernfile.OpenDir(p.Path)
	if err != nil {
		return 0, fmt.Errorf("sweep leaves: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("sweep leaves: %w", err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { _, _, ok := leafUID(n); return !ok })
	if len(names) == 0 {
		return 0, nil
	}
	// Makers hold the lock shared from mkdir until the leaf itself is locked.
	if err := lock(d, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			return 0, nil
		}
		return 0, fmt.Errorf("lock cgroup directory: %w", err)
	}
	n := 0
	var errs []error
	for _, name := range names {
		l, err := p.orphan(name)
		if err != nil || l == nil {
			errs = append(errs, err)
			continue
		}
		if err := l.Remove(); err != nil {
			errs = append(errs, err)
			continue
		}
		gone(l.ID)
		n++
	}
	return n, errors.Join(errs...)
}

// orphan returns the leaf locked, or nil where it is in use.
func (p *Parent) orphan(name string) (*Leaf, error) {
	f, err := kernfile.OpenDir(filepath.Join(p.Path, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open leaf: %w", err)
	}
	if lock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, nil
	}
	l := &Leaf{Name: name, Path: f.Name(), dir: f}
	if err := l.identify(); err != nil {
		f.Close()
		return nil, err
	}
	// Its owner may have removed it since it was opened. Nothing new comes in
	// its place: makers wait for the sweep.
	var st unix.Stat_t
	if err := unix.Lstat(l.Path, &st); err != nil || st.Ino != l.ID {
		f.Close()
		return nil, nil
	}
	if _, owned, _ := leafUID(name); !owned && l.populated() {
		f.Close()
		return nil, nil
	}
	return l, nil
}

// Populated reports whether any process is in the cgroup at path or below it.
func Populated(path string) bool {
	b, err := kernfile.Read(filepath.Join(path, "cgroup.events"))
	return err == nil && strings.Contains(b, "populated 1")
}

// errno returns err's system call error, or 0.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	errors.As(err, &e)
	return e
}
