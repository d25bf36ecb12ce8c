// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindMount(t *testing.T) {
	const v1 = "30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	tests := []struct{ name, text, want string }{
		{"unified", "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup"},
		{"hybrid", v1 + "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified"},
		{"optional fields", "31 24 0:27 / /c rw shared:9 master:1 - cgroup2 none rw\n", "/c"},
		{"escaped", "31 24 0:27 / /a\\040b\\134c rw - cgroup2 none rw\n", "/a b\\c"},
		{"v1 alone", v1, ""},
		{"nothing", "", ""},
		{"a file system that says cgroup2 elsewhere", "1 2 0:1 / /x rw - tmpfs cgroup2 rw\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FindMount(tt.text)
			if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, ErrNoV2) {
				t.Fatalf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestSelf(t *testing.T) {
	got, err := Self("5:memory:/m\n0::/user.slice/x\n")
	if got != "/user.slice/x" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := Self("5:memory:/m\n"); !errors.Is(err, ErrNoV2) {
		t.Fatal(err)
	}
}

func TestLeafNames(t *testing.T) {
	for _, name := range []string{"", "j", "x", "j0", "j12", "y1879048192", "j2147483647", "j18790481920", "j-1879048192", "j1879048192x", "cgroup.procs"} {
		if _, _, ok := leafUID(name); ok {
			t.Errorf("%q taken for a leaf", name)
		}
	}
	for _, uid := range []int{FirstUID, LastUID} {
		for prefix, owner := range map[string]bool{ownedPrefix: true, execPrefix: false} {
			got, owned, ok := leafUID(fmt.Sprint(prefix, uid))
			if got != uid || owned != owner || !ok {
				t.Errorf("%s%d: %d %v %v", prefix, uid, got, owned, ok)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	got := Limits{MemoryBytes: 1 << 30, MilliCPU: 1500, Pids: 64}.Settings()
	want := []Setting{
		{"memory", "memory.max", "1073741824"}, {"memory", "memory.swap.max", "0"}, {"memory", "memory.oom.group", "1"},
		{"cpu", "cpu.max", "150000 100000"}, {"pids", "pids.max", "64"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := (Limits{}).Settings(); s != nil {
		t.Error("no limits, but settings:", s)
	}
	// The kernel refuses a quota under a millisecond.
	if s := (Limits{MilliCPU: 1}).Settings(); s[0].Value != "1000 100000" {
		t.Error(s)
	}
}

func FuzzFindMount(f *testing.F) {
	f.Add("31 24 0:27 / /a\\040b rw shared:1 - cgroup2 cgroup2 rw\n")
	f.Add("\\ - cgroup2 \\")
	f.Add("1 2 3 4 \\99\\4 - cgroup2 x")
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := FindMount(s); (m == "") != (err != nil) && !strings.Contains(s, "cgroup2") {
			t.Fatal(m, err)
		}
	})
}
