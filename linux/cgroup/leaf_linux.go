// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/linux/kernfile"
	"golang.org/x/sys/unix"
)

// Leaf is the cgroup of one sandbox.
type Leaf struct {
	// Name is its name below the parent, Path its place in the file system.
	Name, Path string
	// ID is the kernel's id of the cgroup, UID the ephemeral uid it stands for.
	ID  uint64
	UID int

	dir    *os.File
	killed bool
}

// NewLeaf makes a leaf with a uid that no other leaf has, owned by this
// process until [Leaf.Remove], or until its death.
func (p *Parent) NewLeaf() (*Leaf, error) { return p.newLeaf(ownedPrefix) }

// NewExecLeaf makes a leaf for a launcher that becomes the program: it is
// swept once it is empty.
func (p *Parent) NewExecLeaf() (*Leaf, error) { return p.newLeaf(execPrefix) }

func (p *Parent) newLeaf(prefix string) (*Leaf, error) {
	d, err := kernfile.OpenDir(p.Path)
	if err != nil {
		return nil, fmt.Errorf("make leaf: %w", err)
	}
	defer d.Close() // and with it the lock
	if err := lock(d, unix.LOCK_SH); err != nil {
		return nil, fmt.Errorf("lock cgroup directory: %w", err)
	}
	const tries = 100
	for range tries {
		uid := FirstUID + rand.IntN(LastUID-FirstUID+1)
		// One uid, one leaf, whoever waits for it.
		other := execPrefix
		if prefix == execPrefix {
			other = ownedPrefix
		}
		if _, err := os.Lstat(filepath.Join(p.Path, other+strconv.Itoa(uid))); err == nil {
			continue
		}
		name := prefix + strconv.Itoa(uid)
		path := filepath.Join(p.Path, name)
		if err := os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("make leaf: %w", err)
		}
		f, err := kernfile.OpenDir(path)
		if err == nil {
			err = lock(f, unix.LOCK_EX|unix.LOCK_NB)
		}
		l := &Leaf{Name: name, Path: path, UID: uid, dir: f}
		if err == nil {
			err = l.identify()
		}
		if err != nil {
			if f != nil {
				f.Close()
			}
			_ = unix.Rmdir(path)
			return nil, fmt.Errorf("own leaf: %w", err)
		}
		return l, nil
	}
	return nil, fmt.Errorf("make leaf: no free uid in %d tries", tries)
}

// Given takes the cgroup at path as a leaf that somebody else made for this
// process and removes: a job runs there under a uid of its own all the same.
func (p *Parent) Given(path string) (*Leaf, error) {
	f, err := kernfile.OpenDir(path)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	l := &Leaf{Name: filepath.Base(path), Path: path, UID: FirstUID + rand.IntN(LastUID-FirstUID+1), dir: f}
	if err := l.identify(); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// Alone reports whether the cgroup at path holds this process and nothing
// else, no cgroup below it either: somebody made it for what this process
// becomes.
func Alone(path string) bool {
	dir, err := kernfile.OpenDir(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil || slices.ContainsFunc(entries, os.DirEntry.IsDir) {
		return false
	}
	procs, err := kernfile.ReadAt(int(dir.Fd()), "cgroup.procs")
	return err == nil && strings.TrimSpace(procs) == strconv.Itoa(os.Getpid())
}

// identify reads the cgroup's id: on cgroup2 it is the inode number of the
// directory (kernfs, 64-bit hosts).
func (l *Leaf) identify() error {
	var st unix.Stat_t
	if err := unix.Fstat(l.FD(), &st); err != nil {
		return fmt.Errorf("stat leaf: %w", err)
	}
	l.ID = st.Ino
	return nil
}

// FD returns the directory's descriptor, for clone3's CLONE_INTO_CGROUP.
func (l *Leaf) FD() int { return int(l.dir.Fd()) }

// Set writes one setting. A file that does not exist wraps [ErrNoController].
func (l *Leaf) Set(s Setting) error {
	if err := l.write(s.File, s.Value); err != nil {
		if errno(err) == unix.ENOENT {
			return fmt.Errorf("set %s: %w", s.File, ErrNoController)
		}
		return fmt.Errorf("set %s to %s: %w", s.File, s.Value, err)
	}
	return nil
}

func (l *Leaf) write(file, value string) error {
	return kernfile.WriteAt(l.FD(), file, value)
}

// Read returns the content of one of the leaf's files.
func (l *Leaf) Read(file string) (string, error) {
	return kernfile.ReadAt(l.FD(), file)
}

// Enter moves the calling process into the leaf.
func (l *Leaf) Enter() error {
	if err := l.write("cgroup.procs", "0"); err != nil {
		return fmt.Errorf("enter leaf: %w", err)
	}
	return nil
}

// Kill ends every process of the leaf and of what is below it. Nothing can be
// started in a killed leaf again.
func (l *Leaf) Kill() error {
	l.killed = true
	err := l.write("cgroup.kill", "1")
	if errno(err) == unix.ENOENT { // before Linux 5.14
		return l.killEach()
	}
	if err != nil {
		return fmt.Errorf("kill leaf: %w", err)
	}
	return nil
}

// killEach freezes the leaf, so that nothing forks away, and signals each
// process in it.
func (l *Leaf) killEach() error {
	if err := l.write("cgroup.freeze", "1"); err != nil {
		return fmt.Errorf("freeze leaf: %w", err)
	}
	procs, err := l.Read("cgroup.procs")
	for pid := range strings.Lines(procs) {
		if n, err := strconv.Atoi(strings.TrimSpace(pid)); err == nil {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
	_ = l.write("cgroup.freeze", "0")
	return err
}

func (l *Leaf) populated() bool {
	s, err := l.Read("cgroup.events")
	return err == nil && strings.Contains(s, "populated 1")
}

// Remove kills what is left in the leaf, waits until it is empty and removes
// it, sub-cgroups first.
func (l *Leaf) Remove() error {
	defer l.dir.Close()
	if err := unix.Rmdir(l.Path); err == nil || err == unix.ENOENT {
		return nil
	}
	if err := l.Kill(); err != nil && errno(err) != unix.ENODEV {
		return err
	}
	if err := l.drain(); err != nil {
		return err
	}
	if err := removeTree(l.Path); err != nil {
		return fmt.Errorf("remove leaf: %w", err)
	}
	return nil
}

// drain waits until the last process has gone: cgroup.events notifies its
// pollers of each change (POLLPRI).
func (l *Leaf) drain() error {
	fd, err := unix.Openat(l.FD(), "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("watch leaf: %w", err)
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(10 * time.Second)
	buf := make([]byte, 256)
	for {
		n, err := unix.Pread(fd, buf, 0)
		if err != nil {
			return fmt.Errorf("watch leaf: %w", err)
		}
		if strings.Contains(string(buf[:n]), "populated 0") {
			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("empty leaf %s: processes still there after 10 s", l.Name)
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return fmt.Errorf("watch leaf: %w", err)
		}
	}
}

func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	// A dying process can hold its cgroup for a moment after the last one
	// was counted out.
	for range 10_000 {
		err = unix.Rmdir(path)
		if err != unix.EBUSY || Populated(path) {
			break
		}
		runtime.Gosched()
	}
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// Usage is what a leaf has used.
type Usage struct {
	CPU       time.Duration
	PeakBytes uint64
	OOMKills  uint64
}

// Usage reads the leaf's statistics; what no controller counts is zero.
func (l *Leaf) Usage() Usage {
	var u Usage
	if s, err := l.Read("cpu.stat"); err == nil {
		u.CPU = time.Duration(field(s, "usage_usec")) * time.Microsecond
	}
	if s, err := l.Read("memory.peak"); err == nil {
		u.PeakBytes, _ = strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	}
	if s, err := l.Read("memory.events"); err == nil {
		u.OOMKills = field(s, "oom_kill")
	}
	return u
}

// field returns the number after key in a flat keyed file.
func field(text, key string) uint64 {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+" "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
