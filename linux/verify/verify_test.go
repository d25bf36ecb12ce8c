// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"strings"
	"testing"
)

const good = `Name:	x
Uid:	1900000000	1900000000	1900000000	1900000000
Gid:	1900000000	1900000000	1900000000	1900000000
Groups:	44
CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
Seccomp_filters:	1
`

func TestCheck(t *testing.T) {
	expect := Expect{Cgroup: "/thole/j1", Filters: 1, UID: 1900000000, GID: 1900000000, NoCaps: true, Groups: []int{44}, NotMount: "mnt:[1]", NotIPC: "ipc:[1]"}
	seen := Seen{Status: good, Cgroup: "3:cpu:/\n0::/thole/j1\n", Mount: "mnt:[2]", IPC: "ipc:[2]"}
	if err := Check(expect, seen); err != nil {
		t.Fatal("the good process:", err)
	}
	status := func(old, new string) func(*Seen) {
		return func(s *Seen) {
			if !strings.Contains(s.Status, old) {
				t.Fatalf("%q is not in the status", old)
			}
			s.Status = strings.Replace(s.Status, old, new, 1)
		}
	}
	tests := []struct {
		check string
		spoil func(*Seen)
	}{
		{"no_new_privs", status("NoNewPrivs:\t1", "NoNewPrivs:\t0")},
		{"no_new_privs", status("NoNewPrivs:\t1\n", "")},
		{"seccomp", status("Seccomp:\t2", "Seccomp:\t0")},
		{"seccomp", status("Seccomp:\t2", "Seccomp:\t1")},
		{"seccomp_filters", status("Seccomp_filters:\t1", "Seccomp_filters:\t0")},
		{"seccomp_filters", status("Seccomp_filters:\t1\n", "")},
		{"uid", status("Uid:\t1900000000", "Uid:\t0")},
		{"uid", status("Uid:\t1900000000	1900000000	1900000000	1900000000", "Uid:\t1900000000	1900000000	1900000000	0")},
		{"uid", status("Uid:\t1900000000	1900000000	1900000000	1900000000", "Uid:\t1900000000")},
		{"gid", status("Gid:\t1900000000", "Gid:\t0")},
		{"groups", status("Groups:\t44", "Groups:\t44 0")},
		{"capabilities", status("CapEff:\t0000000000000000", "CapEff:\t0000000000200000")},
		{"capabilities", status("CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff")},
		{"capabilities", status("CapAmb:\t0000000000000000\n", "")},
		{"cgroup", func(s *Seen) { s.Cgroup = "0::/\n" }},
		{"cgroup", func(s *Seen) { s.Cgroup = "0::/thole/j1/..\n" }},
		{"cgroup", func(s *Seen) { s.Cgroup = "" }},
		{"mount namespace", func(s *Seen) { s.Mount = "mnt:[1]" }},
		{"mount namespace", func(s *Seen) { s.Mount = "" }},
		{"ipc namespace", func(s *Seen) { s.IPC = "ipc:[1]" }},
	}
	for _, tt := range tests {
		s := seen
		tt.spoil(&s)
		err := Check(expect, s)
		var f *Failure
		if !errors.As(err, &f) || f.Check != tt.check {
			t.Errorf("want check %s to fail, got %v", tt.check, err)
		}
	}
}

// A name is the program's own choice: it cannot write a line of its own.
func TestFirstLineCounts(t *testing.T) {
	s := Seen{Status: strings.Replace(good, "NoNewPrivs:\t1", "NoNewPrivs:\t0", 1) + "NoNewPrivs:\t1\n"}
	if err := Check(Expect{UID: -1, GID: -1}, s); err == nil {
		t.Fatal("a repeated line overruled the first")
	}
}
