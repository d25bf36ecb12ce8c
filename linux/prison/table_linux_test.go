// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
)

// row is a line of the tables: see the package's documentation.
type row struct {
	act   string
	want  map[string]string // by place; "" for everywhere else
	where string            // file:line
}

// modes are the starts of each kind of caller.
var modes = map[string][]string{
	"root": {"none", "allow", "any", "audit", "broker"},
	"user": {"none", "allow", "any", "broker"},
	"bare": {"none"},
	"same": {"none"},
}

// places are all names that a line may use.
func places() []string {
	var out []string
	for kind, ms := range modes {
		out = append(out, kind)
		for _, m := range ms {
			out = append(out, kind+"/"+m, "*/"+m)
		}
	}
	return out
}

// expected returns what a row wants of a start.
func (r *row) expected(kind, mode string) string {
	names := []string{kind + "/" + mode, "*/" + mode, kind}
	switch kind {
	case "bare":
		names = append(names, "user/"+mode, "user")
	case "same":
		names = append(names, "root/"+mode, "root")
	}
	for _, n := range names {
		if w, ok := r.want[n]; ok {
			return w
		}
	}
	return r.want[""]
}

func readTables(t *testing.T) []row {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	var rows []row
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseTable(f, string(b))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r...)
	}
	return rows
}

func parseTable(name, text string) ([]row, error) {
	var rows []row
	macros := map[string]string{}
	known, seen := places(), map[string]bool{}
	for line := range strings.Lines(text) {
		if name, right, ok := strings.Cut(strings.TrimSpace(line), " => "); ok && name[0] == '@' {
			macros[name[1:]] = right
		}
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := fmt.Sprintf("%s:%d", filepath.Base(name), i+1)
		act, right, ok := strings.Cut(line, " => ")
		if !ok {
			return nil, fmt.Errorf("%s: no =>", at)
		}
		act = strings.Join(strings.Fields(act), " ")
		if act[0] == '@' {
			continue
		}
		if seen[act] {
			return nil, fmt.Errorf("%s: %s is in the table twice", at, act)
		}
		seen[act] = true
		r := row{act: act, want: map[string]string{}, where: at}
		parts := strings.Split(right, ";")
		if m, ok := strings.CutPrefix(strings.TrimSpace(parts[0]), "@"); ok {
			full, ok := macros[m]
			if !ok {
				return nil, fmt.Errorf("%s: no @%s", at, m)
			}
			parts = append(strings.Split(full, ";"), parts[1:]...)
		}
		for j, p := range parts {
			where, want := "", p
			if j > 0 {
				if where, want, ok = strings.Cut(p, ":"); !ok {
					return nil, fmt.Errorf("%s: %q names no place", at, p)
				}
			}
			for w := range strings.SplitSeq(where, ",") {
				w = strings.TrimSpace(w)
				if w != "" && !slices.Contains(known, w) {
					return nil, fmt.Errorf("%s: no place %q", at, w)
				}
				r.want[w] = strings.TrimSpace(want)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// met says whether an outcome is one of those wanted.
func met(want, got string, gaps []platform.Gap) bool {
	for w := range strings.SplitSeq(want, "|") {
		w = strings.TrimSpace(w)
		w, capability, conditional := strings.Cut(w, " ?")
		if conditional && !slices.ContainsFunc(gaps, func(g platform.Gap) bool { return string(g.Capability) == capability }) {
			continue
		}
		if metOne(w, got) {
			return true
		}
	}
	return false
}

func metOne(want, got string) bool {
	if want == got {
		return true
	}
	wantKind, wantErr, wantStep := split(want)
	kind, err, step := split(got)
	switch {
	case wantKind != kind || wantStep != step:
		return false
	case kind != "allowed" && kind != "denied" && kind != "absent":
		return false
	case wantErr == "":
		return kind == "allowed" || err == ""
	}
	return slices.Contains(strings.Split(wantErr, "/"), err)
}

// split takes "denied EPERM at step" apart.
func split(s string) (kind, err, step string) {
	s, step, _ = strings.Cut(s, " at ")
	kind, err, _ = strings.Cut(s, " ")
	return kind, err, step
}

// The tables' own language: a table that accepts everything proves nothing.
func TestMet(t *testing.T) {
	gaps := []platform.Gap{{Capability: platform.Identity}}
	for _, c := range []struct {
		want, got string
		met       bool
	}{
		{"allowed", "allowed", true},
		{"allowed", "allowed ENETUNREACH", true},
		{"allowed", "allowed at socket", false},
		{"allowed", "denied EPERM", false},
		{"allowed", "absent ENOENT", false},
		{"allowed EINVAL", "allowed", false},
		{"denied EPERM", "denied EPERM", true},
		{"denied EPERM", "denied EACCES", false},
		{"denied EPERM/EACCES", "denied EACCES", true},
		{"denied EPERM", "denied EPERM at socket", false},
		{"denied EPERM at socket", "denied EPERM", false},
		{"denied", "denied EPERM", false},
		{"absent ENOENT", "denied ENOENT", false},
		{"denied EPERM | absent ENOENT", "absent ENOENT", true},
		{"allowed ?identity", "allowed", true},
		{"allowed ?fs.metadata", "allowed", false},
		{"allowed ?fs.metadata | denied EROFS", "denied EROFS", true},
		{"fds 0 1 2", "fds 0 1 2", true},
		{"fds 0 1 2", "fds 0 1 2 3", false},
		{"not root", "root", false},
	} {
		if met(c.want, c.got, gaps) != c.met {
			t.Errorf("met(%q, %q) is %v", c.want, c.got, !c.met)
		}
	}
}

func TestParseTable(t *testing.T) {
	rows, err := parseTable("x.txt", "# note\n@m => denied EPERM; root/any: allowed\na b => @m; user: -\nc => allowed; */none: denied EACCES; bare: absent ENOENT\n")
	if err != nil || len(rows) != 2 {
		t.Fatalf("rows %v, err %v", rows, err)
	}
	for _, c := range []struct{ row, kind, mode, want string }{
		{"a b", "root", "none", "denied EPERM"},
		{"a b", "root", "any", "allowed"},
		{"a b", "user", "any", "-"},
		{"a b", "bare", "none", "-"},
		{"c", "root", "any", "allowed"},
		{"c", "user", "none", "denied EACCES"},
		{"c", "bare", "none", "denied EACCES"},
	} {
		for _, r := range rows {
			if r.act == c.row {
				if got := r.expected(c.kind, c.mode); got != c.want {
					t.Errorf("%s of %s/%s: %q, want %q", c.row, c.kind, c.mode, got, c.want)
				}
			}
		}
	}
	for _, bad := range []string{"a", "a => @none", "a => x; nowhere: y", "a => x; y", "a => x\na => y"} {
		if _, err := parseTable("x.txt", bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
