// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers gives each directory its height. A package imports only what lies
// lower, or what shares its directory here. The longest matching entry counts.
// A package without an entry fails the test: decide where it belongs.
var layers = []struct {
	dir    string
	height int
}{
	{"cmd", 70},
	{"bench", 70},
	{"common/agent", 60},
	{"common/conform", 60},
	{"common/sandtest", 55},
	{"common/sandbox", 50},
	{"linux", 40},
	{"darwin", 40},
	{"windows", 40},
	{"common/broker", 35},
	{"common/egress", 35},
	{"common/approval", 35},
	{"common/tools", 35},
	{"common/platform", 30},
	{"common/policy", 20},
	{"common/event", 20},
	{"common/portable", 10},
	{"common/addr", 10},
	{"bpf", 10},
	{"common/deptest", 0},
}

// within says whether a package's path is dir or lies below it.
func within(rel, dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") }

func layer(rel string) (dir string, height int, ok bool) {
	for _, l := range layers {
		if within(rel, l.dir) && len(l.dir) > len(dir) {
			dir, height, ok = l.dir, l.height, true
		}
	}
	return dir, height, ok
}

// importError says what is wrong with one import, "" for nothing.
func importError(from, to string) string {
	fromDir, fromHeight, ok := layer(from)
	if !ok {
		return "has no place in the table of layers"
	}
	toDir, toHeight, ok := layer(to)
	switch {
	case !ok:
		return "imports " + to + ", which has no place in the table of layers"
	case fromDir == toDir:
		return ""
	case isSystem(fromDir) && isSystem(toDir):
		return "imports " + to + ": platforms never import each other"
	case toHeight >= fromHeight:
		return "imports " + to + ", which does not lie below it"
	case within(to, "bpf") && fromDir != "linux":
		return "imports " + to + ": bpf is for linux alone"
	case within(from, "cmd/thole") && isSystem(toDir):
		return "imports " + to + ": the command goes through common/sandbox"
	}
	return ""
}

func isSystem(dir string) bool { return slices.Contains(systems, dir) }

func TestLayers(t *testing.T) {
	for _, goos := range systems {
		for _, p := range packages(t, goos) {
			if _, _, ok := layer(p.rel()); !ok {
				t.Errorf("%s: %s has no place in the table of layers", goos, p.rel())
				continue
			}
			for _, imp := range p.Imports {
				if to, ok := ours(imp); ok {
					if msg := importError(p.rel(), to); msg != "" {
						t.Errorf("%s: %s %s", goos, p.rel(), msg)
					}
				}
			}
			from, _, _ := layer(p.rel())
			for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
				if to, ok := ours(imp); ok {
					if dir, _, _ := layer(to); isSystem(from) && isSystem(dir) && from != dir {
						t.Errorf("%s: a test of %s imports %s", goos, p.rel(), to)
					}
				}
			}
		}
	}
}

// TestImportError holds the rule itself: a table that allows everything would
// pass TestLayers.
func TestImportError(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"cmd/thole/cli", "common/sandbox", true},
		{"cmd/thole/cli", "common/event", true},
		{"cmd/thole", "linux/netbpf", false},
		{"cmd/tholed", "linux/lsmbpf", true},
		{"cmd/tholed", "bpf", false},
		{"common/sandbox", "linux", true},
		{"common/sandbox", "cmd/thole/cli", false},
		{"linux", "linux/seccomp", true},
		{"linux", "common/platform", true},
		{"linux", "common/sandbox", false},
		{"linux/netbpf", "bpf", true},
		{"linux", "darwin", false},
		{"windows", "linux/seccomp", false},
		{"common/platform", "common/policy", true},
		{"common/platform", "linux", false},
		{"common/policy", "common/event", false},
		{"common/event", "common/policy", false},
		{"common/policy", "common/addr", true},
		{"common/unheard", "common/addr", false},
		{"common/policy", "common/unheard", false},
		{"bpf/internal/flatten", "bpf", true},
	} {
		if msg := importError(c.from, c.to); (msg == "") != c.allowed {
			t.Errorf("%s → %s: %q", c.from, c.to, msg)
		}
	}
}

// mechanisms take plain values: they know no policy, not even by way of a
// package between.
var mechanisms = []string{
	"linux/landlock", "linux/seccomp", "linux/cgroup", "linux/netbpf", "linux/verify",
	"linux/launch", "linux/view", "linux/lsmbpf", "linux/audit",
	"darwin/seatbelt",
	"windows/appcontainer", "windows/job", "windows/acl", "windows/wfp",
}

func TestMechanismsKnowNoPolicy(t *testing.T) {
	for _, goos := range systems {
		for _, p := range packages(t, goos) {
			for _, m := range mechanisms {
				if within(p.rel(), m) && slices.Contains(p.Deps, module+"/common/policy") {
					t.Errorf("%s: %s depends on common/policy", goos, p.rel())
				}
			}
		}
	}
}

// lean lists what cmd/thole must not link: each costs start-up time in its
// package initialisation or brings in what a launcher has no use for. An entry
// forbids the packages below it too.
var lean = []string{
	"github.com/cilium/ebpf", "github.com/vishvananda/netlink", "github.com/containerd/cgroups",
	"net/http", "net/rpc", "net/smtp", "net/textproto", "crypto", "log", "encoding/xml", "encoding/gob",
	"text/template", "html", "regexp", "go/parser", "testing",
}

// leanExactly forbids one package and not those below: net/netip and net/url are light.
var leanExactly = []string{"net"}

func TestLauncherIsLean(t *testing.T) {
	for _, goos := range systems {
		found := false
		for _, p := range packages(t, goos) {
			if p.rel() != "cmd/thole" {
				continue
			}
			found = true
			for _, dep := range p.Deps {
				if slices.ContainsFunc(lean, func(l string) bool { return within(dep, l) }) || slices.Contains(leanExactly, dep) {
					t.Errorf("%s: cmd/thole links %s (go list -deps finds by which way)", goos, dep)
				}
			}
		}
		if !found {
			t.Errorf("%s: no package cmd/thole", goos)
		}
	}
}

// TestEventIsLight: every command links common/event, and the encoders of the
// standard library cost more at start-up than all of its own code.
func TestEventIsLight(t *testing.T) {
	for _, p := range packages(t, "linux") {
		if p.rel() != "common/event" {
			continue
		}
		for _, dep := range []string{"fmt", "reflect", "encoding/json"} {
			if slices.Contains(p.Deps, dep) {
				t.Errorf("common/event links %s", dep)
			}
		}
		return
	}
	t.Error("no package common/event")
}

// TestWindowsNames: our package windows and x/sys/windows in one file would
// leave the reader to guess which is meant.
func TestWindowsNames(t *testing.T) {
	files(t, func(name string, data []byte) {
		if path.Ext(name) != ".go" || strings.Contains(name, "/testdata/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		imports := make(map[string]bool)
		for _, imp := range f.Imports {
			imports[strings.Trim(imp.Path.Value, `"`)] = true
		}
		for _, system := range []string{"windows", "linux"} {
			if imports[module+"/"+system] && imports["golang.org/x/sys/"+system] {
				t.Errorf("%s imports two packages named %s", name, system)
			}
		}
	})
}
