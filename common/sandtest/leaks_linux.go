// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/linux/cgroup"
	"golang.org/x/sys/unix"
)

// state is what a test could leave behind.
type state struct {
	fds, children, mounts, leaves, files []string
}

// Leaks fails a test that leaves something behind: descriptors and children of
// this process, mounts in its namespace, leaves in the cgroup directory parent
// (a name below the cgroup v2 mount, "" to leave them out), files in /dev/shm
// and directories of ours in the temporary directories.
//
// Call it before anything that is undone by a cleanup of the test. Leaves and
// files of sandboxes that other processes run at the time do not count.
func Leaks(t testing.TB, parent string) {
	t.Helper()
	before := look(parent)
	t.Cleanup(func() {
		if t.Failed() {
			return // what a failed test did not get to undo hides the failure
		}
		for _, l := range behind(before, look(parent)) {
			t.Error(l)
		}
	})
}

// behind lists what is there now and was not before.
func behind(before, now state) []string {
	var out []string
	for _, c := range []struct {
		what        string
		before, now []string
	}{
		{"descriptor", before.fds, now.fds},
		{"child process", before.children, now.children},
		{"mount", before.mounts, now.mounts},
		{"cgroup", before.leaves, now.leaves},
		{"file", before.files, now.files},
	} {
		for _, n := range more(c.before, c.now) {
			out = append(out, c.what+" left behind: "+n)
		}
	}
	return out
}

// more returns what is in now more often than in before.
func more(before, now []string) []string {
	left := slices.Clone(before)
	var out []string
	for _, n := range now {
		if i := slices.Index(left, n); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		out = append(out, n)
	}
	return out
}

func look(parent string) state {
	var s state
	s.fds = descriptors()
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, pid := range strings.Fields(string(b)) {
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			s.children = append(s.children, pid+" "+strings.TrimSpace(string(name)))
		}
	}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		// Directories of tests, also of those that run beside this one: the
		// testing package cannot remove one that something is mounted on, and
		// says so.
		if f := strings.Fields(line); len(f) > 4 && !strings.HasPrefix(f[4], os.TempDir()+"/Test") {
			s.mounts = append(s.mounts, strings.TrimSpace(line))
		}
	}
	if parent != "" {
		s.leaves = orphans(parent)
	}
	for _, pattern := range []string{"/dev/shm/thole*", fmt.Sprintf("%s/thole-%d-*", os.TempDir(), os.Geteuid())} {
		names, _ := filepath.Glob(pattern)
		s.files = append(s.files, names...)
	}
	return s
}

// descriptors names the open descriptors by number and file. The runtime's own
// come when the poller is first used, and stay.
func descriptors() []string {
	names, _ := os.ReadDir("/proc/self/fd")
	var out []string
	for _, n := range names {
		to, err := os.Readlink("/proc/self/fd/" + n.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") {
			continue // closed by now, or the poller's
		}
		out = append(out, n.Name()+" "+to)
	}
	return out
}

// orphans are leaves that nobody owns: a running start holds a lock on its
// leaf's directory, and the parent's lock is held while a leaf is made. A
// launcher that became the program (its leaf's name begins with x) leaves an
// empty one to the next start, by design.
func orphans(parent string) []string {
	mount, err := cgroup.Mount()
	if err != nil {
		return nil
	}
	dir := filepath.Join(mount, parent)
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	if unix.Flock(int(d.Fd()), unix.LOCK_EX) != nil {
		return nil
	}
	entries, _ := d.ReadDir(-1)
	var out []string
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), "x") {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil && !cgroup.Populated(f.Name()) {
			out = append(out, f.Name())
		}
		f.Close()
	}
	return out
}
