// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/launch"
)

func accept(names ...platform.Capability) []platform.Capability { return names }

// printed are the pairs that have a golden of the whole plan: every policy
// where everything can be had, and on every other host the policies that come
// out differently there.
func printed(host, pol string) bool {
	switch pol {
	case "closed":
		return true
	case "rw-ro":
		return host == "root" || host == "user" || host == "user-userns" || host == "root-landlock2"
	case "broker", "allowlist", "any", "self-exec":
		return host == "root" || host == "user" || host == "user-userns" || host == "root-nobpf"
	}
	return host == "root"
}

// TestPlans compares what plans print.
func TestPlans(t *testing.T) {
	for _, h := range hosts() {
		for _, p := range policies() {
			if !printed(h.name, p.name) {
				continue
			}
			t.Run(h.name+"/"+p.name, func(t *testing.T) {
				plan, err := Compile(h.Host, p.Resolved, p.o)
				if err != nil {
					t.Fatal(err)
				}
				text := plan.String()
				if again := plan.String(); again != text {
					t.Error("a plan prints differently the second time")
				}
				golden(t, "plan."+h.name+"."+p.name+".txt", text)
			})
		}
	}
}

// TestLaunchOfSelf compares the list of a launcher that becomes the program.
func TestLaunchOfSelf(t *testing.T) {
	p := find(t, "self-exec")
	plan, err := Compile(fullHost(), p.Resolved, p.o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := plan.calls(steps{self: true, uid: 1900000000, nofileSoft: 1024, nofileHard: 4096})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "launch.self.txt", l.String())
}

func find(t *testing.T, name string) planCase {
	t.Helper()
	for _, p := range policies() {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no policy %s", name)
	return planCase{}
}

// TestGaps holds the whole table of what cannot be had: host, policy,
// capability, and whether the start is refused.
func TestGaps(t *testing.T) {
	var b strings.Builder
	for _, h := range hosts() {
		for _, p := range policies() {
			plan, err := Compile(h.Host, p.Resolved, p.o)
			if err != nil {
				var pe *platform.Error
				if !errors.As(err, &pe) || pe.Remedy == "" {
					t.Errorf("%s %s: %v: no remedy", h.name, p.name, err)
				}
				fmt.Fprintf(&b, "%-16s %-10s error      %v\n", h.name, p.name, err)
				continue
			}
			required := true
			for _, g := range plan.Gaps() {
				kind := "hardening"
				if g.Required {
					kind = "REQUIRED"
					if !required {
						t.Errorf("%s %s: %s stands behind hardening", h.name, p.name, g.Capability)
					}
				}
				required = g.Required
				if g.Reason == "" || g.Remedy == "" {
					t.Errorf("%s %s: gap %s without reason or remedy", h.name, p.name, g.Capability)
				}
				fmt.Fprintf(&b, "%-16s %-10s %-10s %-20s %s\n", h.name, p.name, kind, g.Capability, g.Pos)
			}
		}
	}
	golden(t, "gaps.txt", b.String())
}

// TestAccept: a gap that was accepted no longer refuses, and no other one is
// touched by that.
func TestAccept(t *testing.T) {
	var user Host
	for _, h := range hosts() {
		if h.name == "user" {
			user = h.Host
		}
	}
	p := find(t, "limits")
	for _, o := range []Options{{}, {Accept: accept("limits.cpu")}, {Accept: accept("limits.cpu", "limits.memory", "limits.pids")}} {
		plan, err := Compile(user, p.Resolved, o)
		if err != nil {
			t.Fatal(err)
		}
		refusing := 0
		for _, g := range plan.Gaps() {
			if g.Required {
				refusing++
			}
		}
		if want := 3 - len(o.Accept); refusing != want {
			t.Errorf("accepting %v: %d gaps refuse, want %d", o.Accept, refusing, want)
		}
	}
}

// TestDefaultAllow: a sandbox is closed, whatever a policy for cgroups says.
func TestDefaultAllow(t *testing.T) {
	r := find(t, "closed").Resolved
	r.Policy.Net.Default = policy.Allow
	_, err := Compile(fullHost(), r, Options{})
	var pe *platform.Error
	if !errors.As(err, &pe) || !errors.Is(err, platform.ErrConfine) || pe.Remedy == "" {
		t.Fatalf("err %v", err)
	}
}

// index returns the position of the first op that prints with prefix, or -1.
func index(l launch.List, prefix string) int {
	for i, o := range l {
		if strings.HasPrefix(o.String(), prefix) {
			return i
		}
	}
	return -1
}

// TestProperties: what every launch must do, in which order, whatever the host
// and the policy.
func TestProperties(t *testing.T) {
	for _, h := range hosts() {
		for _, p := range policies() {
			for _, self := range []bool{false, true} {
				h, o := h.Host, p.o
				h.LastCap = 40
				o.Self = self
				plan, err := Compile(h, p.Resolved, o)
				if err != nil {
					continue // TestGaps holds which
				}
				l, err := plan.calls(steps{self: self, uid: 1900000000})
				if err != nil {
					t.Errorf("%s: %v", p.name, err)
					continue
				}
				if err := sound(plan, l, self); err != nil {
					t.Errorf("%s %s self=%v: %v\n%s", plan.Spec.Path, p.name, self, err, l)
				}
			}
		}
	}
}

// sound says what is wrong with a launch.
func sound(p *Plan, l launch.List, self bool) error {
	must := []string{
		"prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL", "capset(", "chdir(",
		"prctl(PR_SET_NO_NEW_PRIVS, 1", "landlock_restrict_self(@rules", "openat(AT_FDCWD, \"/\"",
		"close_range(3, ~0, CLOSE_RANGE_CLOEXEC", "seccomp(SECCOMP_SET_MODE_FILTER", "write(@status", "execve(",
	}
	if p.Ephemeral {
		must = append([]string{"setgroups(", "setresgid(", "setresuid("}, must...)
	}
	last := -1
	for _, m := range must {
		i := index(l, m)
		if i < 0 {
			return fmt.Errorf("no %s", m)
		}
		if m == "prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL" {
			continue // its place among the ids is free
		}
		if i <= last {
			return fmt.Errorf("%s comes too early", m)
		}
		last = i
	}
	if last != len(l)-1 {
		return fmt.Errorf("calls after execve")
	}
	// The gate is the last thing before the program.
	if g := l[len(l)-2]; g.Step != "gate" || g.Call != launch.Read {
		return fmt.Errorf("%s stands between gate and execve", g)
	}
	if want := index(l, `openat(AT_FDCWD, "/"`); !strings.Contains(l[want].String(), "must be -13") {
		return fmt.Errorf("the forbidden act may answer anything: %s", l[want])
	}
	if p.host.Root || p.UserNS {
		for c := 0; c <= p.LastCap; c++ {
			if i := index(l, fmt.Sprintf("prctl(PR_CAPBSET_DROP, %d,", c)); i < 0 || i > index(l, "capset(") {
				return fmt.Errorf("capability %d is not dropped from the bounding set", c)
			}
		}
	}
	for i, o := range l {
		if o.Step == "view" && o.Call != launch.Unshare && i > index(l, "capset(") {
			return fmt.Errorf("%s comes after the capabilities", o)
		}
		// Only reads of the gate and a refusal that is wanted may be other
		// than plain success; nothing is let pass whatever it answers.
		if strings.HasSuffix(o.String(), "(any answer)") {
			return fmt.Errorf("%s may fail", o)
		}
	}
	if p.View != nil {
		if i := index(l, `mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, {set=rdonly|nosuid, propagation=private}`); i < 0 {
			return fmt.Errorf("the view leaves the rest writable")
		}
		if self != (index(l, "unshare(") == 0) {
			return fmt.Errorf("unshare: self is %v", self)
		}
	}
	return nil
}

// TestOutboxIsNotRead: no layer takes back the reading that an outer grant, or
// the base system, gives an outbox.
func TestOutboxIsNotRead(t *testing.T) {
	for _, tt := range []struct {
		in      string
		out     Root
		refused bool
	}{
		{"/srv/a/out", root(RW, "/srv/a", 0, ""), true},
		{"/srv/a/out", root(RO, "/srv/a", 0, ""), true},
		{"/srv/a", root(RD, "/srv/a", 0, ""), true},
		{"/opt/out", root(RW, "/srv/a", 0, ""), true},
		{"/srv/ab", root(RW, "/srv/a", 0, ""), false},
		{"/srv/a", root(RW, "/srv/a/in", 0, ""), false},
	} {
		r := find(t, "closed").Resolved
		r.Roots = []Root{tt.out, root(WO, tt.in, 0, "")}
		_, err := Compile(fullHost(), r, Options{})
		var pe *platform.Error
		if (err != nil) != tt.refused || tt.refused && (!errors.As(err, &pe) || pe.Capability != platform.FoldersWrite || pe.Pos == "" || pe.Remedy == "") {
			t.Errorf("wo %s in %s %s: %v", tt.in, tt.out.Grant, tt.out.Path, err)
		}
	}
}
