// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package verify compares what the kernel says of a process with what its
// plan says it must be. It is asked between confinement and the program's
// first instruction, by the parent, while the child waits at its gate.
package verify

import (
	"fmt"
	"strconv"
	"strings"
)

// Expect is what must hold of a process.
type Expect struct {
	// Cgroup is its path in the v2 hierarchy; empty: not checked.
	Cgroup string
	// Filters is the least number of seccomp filters.
	Filters int
	// UID and GID are all four ids of the process; -1: not checked.
	UID, GID int
	// NoCaps: no capability in any set, the bounding set too.
	NoCaps bool
	// Groups: no supplementary groups but these.
	Groups []int
	// NotMount is the mount namespace it must not be in (the parent's), as
	// /proc names it; empty: not checked.
	NotMount string
	// NotIPC likewise for the System V IPC namespace.
	NotIPC string
	// View is the private tree; nil: not checked.
	View *View
	// Std are the files that the standard descriptors lead to, as /proc names
	// them; empty: not checked.
	Std [3]string
}

// Seen is what the kernel shows of a process.
type Seen struct {
	Status string    // /proc/PID/status
	Cgroup string    // /proc/PID/cgroup
	Mount  string    // the target of /proc/PID/ns/mnt
	IPC    string    // the target of /proc/PID/ns/ipc
	Mounts string    // /proc/PID/mountinfo
	Std    [3]string // the targets of /proc/PID/fd/0, 1 and 2
}

// Failure is a check that did not hold.
type Failure struct {
	Check     string // "seccomp", "no_new_privs", "capabilities", ...
	Want, Got string
}

// Error names the check, what was wanted and what the kernel shows.
func (f *Failure) Error() string {
	return fmt.Sprintf("check %s: want %s, the kernel shows %s", f.Check, f.Want, f.Got)
}

// Check returns the first failure, or nil.
func Check(e Expect, s Seen) error {
	st := parseStatus(s.Status)
	fail := func(check, want, got string) error { return &Failure{check, want, strconv.Quote(got)} }
	if got := st["NoNewPrivs"]; got != "1" {
		return fail("no_new_privs", "1", got)
	}
	if got := st["Seccomp"]; got != "2" {
		return fail("seccomp", "mode 2 (filter)", got)
	}
	// Seccomp_filters is there since Linux 5.9.
	if n, err := strconv.Atoi(st["Seccomp_filters"]); err != nil || n < e.Filters {
		return fail("seccomp_filters", "at least "+strconv.Itoa(e.Filters), st["Seccomp_filters"])
	}
	for _, id := range []struct {
		key  string
		want int
	}{{"Uid", e.UID}, {"Gid", e.GID}} {
		if id.want < 0 {
			continue
		}
		f := strings.Fields(st[id.key])
		if len(f) != 4 || strings.Join(f, " ") != strings.TrimSpace(strings.Repeat(strconv.Itoa(id.want)+" ", 4)) {
			return fail(strings.ToLower(id.key), "four times "+strconv.Itoa(id.want), st[id.key])
		}
	}
	if e.UID >= 0 {
		allowed := map[string]bool{}
		for _, g := range e.Groups {
			allowed[strconv.Itoa(g)] = true
		}
		for _, g := range strings.Fields(st["Groups"]) {
			if !allowed[g] {
				return fail("groups", fmt.Sprint(e.Groups), st["Groups"])
			}
		}
	}
	if e.NoCaps {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if n, err := strconv.ParseUint(st[set], 16, 64); err != nil || n != 0 {
				return fail("capabilities", set+" 0", st[set])
			}
		}
	}
	if e.Cgroup != "" {
		got, ok := "", false
		for line := range strings.Lines(s.Cgroup) {
			if p, is := strings.CutPrefix(line, "0::"); is {
				got, ok = strings.TrimSuffix(p, "\n"), true
			}
		}
		if !ok || got != e.Cgroup {
			return fail("cgroup", e.Cgroup, got)
		}
	}
	if e.NotMount != "" && (s.Mount == "" || s.Mount == e.NotMount) {
		return fail("mount namespace", "one of its own", s.Mount)
	}
	if e.NotIPC != "" && (s.IPC == "" || s.IPC == e.NotIPC) {
		return fail("ipc namespace", "one of its own", s.IPC)
	}
	for i, want := range e.Std {
		if want != "" && s.Std[i] != want {
			return fail("descriptor "+strconv.Itoa(i), want, s.Std[i])
		}
	}
	if e.View != nil {
		return e.View.check(s.Mounts)
	}
	return nil
}

// Filters returns the number of seccomp filters in the text of
// /proc/PID/status; 0 where the kernel does not say.
func Filters(status string) int {
	n, err := strconv.Atoi(parseStatus(status)["Seccomp_filters"])
	if err != nil {
		return 0
	}
	return n
}

// parseStatus splits /proc/PID/status into its fields (proc_pid_status(5)).
func parseStatus(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			// The first counts: a later line cannot overrule it.
			if _, dup := m[k]; !dup {
				m[k] = strings.TrimSpace(v)
			}
		}
	}
	return m
}
