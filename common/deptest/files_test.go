// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPackagesDocumented wants, on every system, a package comment in the
// usual form. It follows that no package consists of constrained files alone:
// a directory named after a system carries an unconstrained doc.go.
func TestPackagesDocumented(t *testing.T) {
	all := make(map[string]int)
	for _, goos := range systems {
		for _, p := range packages(t, goos) {
			all[p.rel()]++
			want := "Package " + p.Name + " "
			if p.Name == "main" {
				want = "Command " + path.Base(p.ImportPath) + " "
			}
			if !strings.HasPrefix(p.Doc, want) {
				t.Errorf("%s: the comment of %s begins with %q, not %q", goos, p.rel(), first(p.Doc), want)
			}
		}
	}
	for rel, n := range all {
		if n != len(systems) {
			t.Errorf("%s exists on %d of %d systems: give it an unconstrained doc.go", rel, n, len(systems))
		}
	}
}

func first(doc string) string {
	if f := strings.Fields(doc); len(f) > 3 {
		return strings.Join(f[:3], " ")
	}
	return doc
}

// vague names say nothing about what a package does.
var vague = []string{"util", "utils", "helper", "helpers", "misc", "shared", "base", "common", "lib"}

func TestPackageNames(t *testing.T) {
	for _, goos := range systems {
		for _, p := range packages(t, goos) {
			if slices.Contains(vague, p.Name) || slices.Contains(vague, path.Base(p.ImportPath)) {
				t.Errorf("%s: name it after what it does", p.rel())
			}
		}
	}
}

// long lists the files over maxLines, each with its reason.
var long = map[string]string{}

const maxLines = 500

func TestFileSizes(t *testing.T) {
	seen := make(map[string]bool)
	files(t, func(name string, data []byte) {
		if comment(name, data) == "" || generated(data) || strings.Contains(name, "testdata/") {
			return
		}
		if n := bytes.Count(data, []byte("\n")); n > maxLines {
			seen[name] = true
			if long[name] == "" {
				t.Errorf("%s has %d lines", name, n)
			}
		}
	})
	for name := range long {
		if !seen[name] {
			t.Errorf("%s is no longer over %d lines: take it from the list", name, maxLines)
		}
	}
}

// top lists what the top level holds.
var top = []string{
	".ci", ".git", ".github", ".gitignore", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
	"bench", "bin", "bpf", "cmd", "common", "darwin", "go.mod", "go.sum", "linux", "windows",
}

func TestTopLevel(t *testing.T) {
	files(t, func(name string, _ []byte) {
		if dir, _, _ := strings.Cut(name, "/"); !slices.Contains(top, dir) {
			t.Errorf("%s: the top level is fixed", name)
		}
		if dir, file := path.Split(name); dir == "common/" {
			t.Errorf("common/%s: common has no file of its own", file)
		}
	})
}

// TestNoTraces wants no unfinished work in the sources.
func TestNoTraces(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}
	files(t, func(name string, data []byte) {
		if comment(name, data) == "" || generated(data) || strings.Contains(name, "testdata/") {
			return
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, w := range words {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d: %s", name, i+1, w)
				}
			}
		}
	})
}
