// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// parent makes a directory for the test's leaves and takes it away.
func parent(t *testing.T) *Parent {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes cgroups")
	}
	m, err := Mount()
	if err != nil {
		t.Skip("no cgroup v2:", err)
	}
	p, err := OpenParent(m, fmt.Sprintf("thole-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(p.Path); err != nil {
			t.Error("cgroups left behind:", err)
		}
		p.Close()
	})
	return p
}

// sleeper starts a process in the leaf that ends only when it is killed.
func sleeper(t *testing.T, l *Leaf) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: l.FD()}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestRemoveEndsEverything(t *testing.T) {
	p := parent(t)
	l, err := p.NewLeaf()
	if err != nil {
		t.Fatal(err)
	}
	c := sleeper(t, l)
	// A job that made a cgroup of its own below the leaf.
	sub := filepath.Join(l.Path, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sub, "cgroup.procs"), []byte(fmt.Sprint(c.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	if exists(l.Path) {
		t.Error("leaf still there")
	}
	if err := c.Wait(); c.ProcessState == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error("process ended with", err)
	}
}

func TestSweepTakesOrphansOnly(t *testing.T) {
	p := parent(t)
	mk := func(f func() (*Leaf, error)) *Leaf {
		t.Helper()
		l, err := f()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	orphan, used := mk(p.NewLeaf), mk(p.NewLeaf)
	running, empty := mk(p.NewExecLeaf), mk(p.NewExecLeaf)
	c := sleeper(t, orphan)
	sleeper(t, used)
	sleeper(t, running)
	foreign := filepath.Join(p.Path, "someone-elses")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Leaf{orphan, running, empty} {
		l.dir.Close() // their owners are gone
	}
	gone := map[uint64]bool{}
	n, err := p.Sweep(func(id uint64) { gone[id] = true })
	if err != nil || n != 2 || !gone[orphan.ID] || !gone[empty.ID] {
		t.Fatalf("swept %d, %v, %v", n, gone, err)
	}
	if exists(orphan.Path) || exists(empty.Path) {
		t.Error("an orphan is still there")
	}
	if !exists(used.Path) || !exists(running.Path) || !exists(foreign) {
		t.Error("a leaf in use was swept")
	}
	if c.Wait(); c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error("the orphan's process was not killed")
	}
	if err := used.Remove(); err != nil {
		t.Error(err)
	}
	l, err := p.orphan(running.Name)
	if err != nil || l != nil {
		t.Error("running exec leaf taken for an orphan", err)
	}
	run := &Leaf{Name: running.Name, Path: running.Path}
	if run.dir, err = os.Open(run.Path); err != nil {
		t.Fatal(err)
	}
	if err := run.Remove(); err != nil {
		t.Error(err)
	}
}

func TestManyAtOnceWithSweeps(t *testing.T) {
	p := parent(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]bool{}
	for range 8 {
		wg.Go(func() {
			for range 25 {
				l, err := p.NewLeaf()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := p.Sweep(func(uint64) { t.Error("a leaf in use was swept") }); err != nil {
					t.Error(err)
				}
				mu.Lock()
				if seen[l.UID] {
					t.Log("uid taken again after it was free:", l.UID)
				}
				seen[l.UID] = true
				mu.Unlock()
				if err := l.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
