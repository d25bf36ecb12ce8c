// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroup keeps the cgroup v2 leaves that sandboxes are born in.
//
// All leaves are children of one directory ([Parent]). A leaf belongs to who
// holds a lock on its directory (flock(2)): a lock ends with its holder, so
// that a leaf whose owner was killed can be told from one in use without
// guessing by pid, and [Parent.Sweep] takes it away.
//
// A job runs under a uid of its own, and that uid is the leaf's name: making
// the directory is taking the uid.
package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The range of ephemeral uids. systemd's list of uid ranges (UIDS-GIDS.md)
// leaves it unassigned: above the container range, below the sign bit.
const (
	FirstUID = 0x70000000
	LastUID  = 0x7ffffffe
)

// Prefixes of leaf names.
const (
	// ownedPrefix: the leaf has an owner who waits for it; without one it is
	// swept, and what runs in it is killed.
	ownedPrefix = "j"
	// execPrefix: the launcher became the program, nobody waits. The leaf is
	// swept when it is empty.
	execPrefix = "x"
)

// ErrNoV2 is wrapped where no cgroup v2 hierarchy is mounted.
var ErrNoV2 = errors.New("no cgroup v2 hierarchy is mounted")

// ErrNoController is wrapped where a limit needs a controller that the
// hierarchy does not offer.
var ErrNoController = errors.New("controller not available in the cgroup v2 hierarchy")

// FindMount returns the mount point of the cgroup v2 hierarchy in the text of
// /proc/self/mountinfo (see proc(5)): the first of its kind, as the kernel
// lists them. Nothing is assumed about its place, which differs on hosts that
// mount both versions.
func FindMount(mountinfo string) (string, error) {
	for line := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(line, " - ")
		if !ok {
			continue
		}
		f := strings.Fields(head)
		if len(f) < 5 || !strings.HasPrefix(tail, "cgroup2 ") {
			continue
		}
		return unescape(f[4]), nil
	}
	return "", fmt.Errorf("find cgroup mount: %w", ErrNoV2)
}

// unescape undoes the octal escapes of mountinfo (space, tab, newline,
// backslash).
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Self returns the process's path in the v2 hierarchy from the text of
// /proc/PID/cgroup.
func Self(text string) (string, error) {
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(p, "\n"), nil
		}
	}
	return "", fmt.Errorf("find own cgroup: %w", ErrNoV2)
}

// leafUID returns the uid that a leaf's name holds, and whether the leaf has
// an owner.
func leafUID(name string) (uid int, owned, ok bool) {
	num, owned := strings.CutPrefix(name, ownedPrefix)
	if !owned {
		if num, ok = strings.CutPrefix(name, execPrefix); !ok {
			return 0, false, false
		}
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < FirstUID || n > LastUID {
		return 0, false, false
	}
	return n, owned, true
}

// Limits bound a leaf; 0 means no limit.
type Limits struct {
	MemoryBytes uint64
	MilliCPU    uint64 // thousandths of a CPU
	Pids        uint64
}

// Setting is one file of a leaf and what is written to it.
type Setting struct {
	Controller, File, Value string
}

// period is cpu.max's period in microseconds, the kernel's default.
const period = 100_000

// Settings returns what is written for the limits (cgroup-v2.rst of the
// kernel). Memory counts swap in, and a job over its limit is killed whole.
func (l Limits) Settings() []Setting {
	var s []Setting
	if l.MemoryBytes != 0 {
		s = append(s,
			Setting{"memory", "memory.max", strconv.FormatUint(l.MemoryBytes, 10)},
			Setting{"memory", "memory.swap.max", "0"},
			Setting{"memory", "memory.oom.group", "1"})
	}
	if l.MilliCPU != 0 {
		quota := max(1000, uint64(math.Min(float64(l.MilliCPU)*period/1000, math.MaxInt64)))
		s = append(s, Setting{"cpu", "cpu.max", strconv.FormatUint(quota, 10) + " " + strconv.Itoa(period)})
	}
	if l.Pids != 0 {
		s = append(s, Setting{"pids", "pids.max", strconv.FormatUint(l.Pids, 10)})
	}
	return s
}
