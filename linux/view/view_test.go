// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/linux/landlock"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// cases are views of every shape.
var cases = []struct {
	name string
	View
}{
	{"empty", View{}},
	{"private", View{Private: []string{"/tmp", "/dev/shm"}, Home: "/tmp/home", UID: 7, GID: 8, Size: "64m", Proc: true, Rules: "rules", Handled: landlock.Of(9).FS}},
	{"exec", View{Private: []string{"/tmp"}, ExecPrivate: true, Rules: "rules", Handled: landlock.Of(2).FS,
		Roots: []Root{{Path: "/srv/rw", Write: true, IDMap: "u"}}}},
	{"nested", View{Roots: []Root{
		{Path: "/srv/a/b/fixed"},
		{Path: "/srv/a", Write: true, NoExec: true},
		{Path: "/srv/a/b", Write: true},
		{Path: "/srv/file", File: true}}}},
	{"inprivate", View{Private: []string{"/tmp"}, Home: "/tmp/home", Roots: []Root{
		{Path: "/tmp/x/y", Write: true},
		{Path: "/tmp/x/f", File: true},
		{Path: "/tmp/home", Write: true}}}},
	{"granted-private", View{Private: []string{"/tmp"}, Home: "/tmp/home", Roots: []Root{{Path: "/tmp", Write: true}}}},
	{"blocked", View{Roots: []Root{
		{Path: "/root/a/tool", Blocked: "/root", IDMap: "u"},
		{Path: "/root/b", Blocked: "/root", Write: true},
		{Path: "/srv/a/deep", Blocked: "/srv/a/deep"}, // itself: its own mount maps the ids
		{Path: "/srv/open/shut/x", Blocked: "/srv/open/shut"},
		{Path: "/srv/open", Write: true}},
		Links: []Link{{Path: "/root/bin/t", Target: "../a/tool/t", Blocked: "/root"}, {Path: "/srv/open/l", Target: "x"}}}},
	{"blockedlink", View{Links: []Link{{Path: "/home/u/bin/sh", Target: "/bin/sh", Blocked: "/home/u"}, {Path: "/usr/bin/x", Target: "y"}}}},
}

// TestOps compares the calls, and what they leave mounted.
func TestOps(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(c.Ops().String())
			for _, m := range c.Mounts() {
				fmt.Fprintf(&b, "%+v\n", m)
			}
			file := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("%s differs; run with -update and review:\n%s", file, got)
			}
		})
	}
}

// TestOrder: every tree is taken before anything is covered, an outer root is
// mounted before one inside it, and the rest is read-only before the first is
// mounted.
func TestOrder(t *testing.T) {
	for _, c := range cases {
		rest, firstMove, lastTree := -1, -1, -1
		at := map[string]int{}
		for i, o := range c.Ops() {
			s := o.String()
			switch {
			case strings.HasPrefix(s, "open_tree("):
				lastTree = i
			case strings.HasPrefix(s, `mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, {set=rdonly|nosuid, propagation=private}`):
				rest = i
			case strings.HasPrefix(s, "move_mount(") && firstMove < 0:
				firstMove = i
			case strings.HasPrefix(s, "openat2(") && strings.Contains(s, "$on_"):
				at[strings.Split(s, `"`)[1]] = i
			}
			if o.Step != Step {
				t.Errorf("%s: %s belongs to step %q", c.name, s, o.Step)
			}
		}
		if rest < 0 || lastTree > rest || firstMove >= 0 && firstMove < rest {
			t.Errorf("%s: trees up to %d, the rest read-only at %d, first mount at %d", c.name, lastTree, rest, firstMove)
		}
		for _, r := range c.Roots {
			if _, ok := at[r.Path]; !ok {
				t.Errorf("%s: %s is never mounted", c.name, r.Path)
			}
			for _, in := range c.Roots {
				if strings.HasPrefix(in.Path, r.Path+"/") && at[in.Path] < at[r.Path] {
					t.Errorf("%s: %s is mounted before %s and so covered by it", c.name, in.Path, r.Path)
				}
			}
		}
	}
}

// TestMounts: what verification expects is what is mounted: nothing is writable
// that was not asked for.
func TestMounts(t *testing.T) {
	for _, c := range cases {
		asked := map[string]bool{}
		for _, r := range c.Roots {
			asked[r.Path] = r.Write
		}
		for _, p := range c.Private {
			asked[p] = true
		}
		for _, m := range c.Mounts() {
			if m.Writable && !asked[m.Path] && m.Path != "/proc" {
				t.Errorf("%s: %s is expected writable", c.name, m.Path)
			}
		}
	}
}
