// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLeftBehind leaves something of each kind that needs no privilege, and
// takes it away again: a check that sees nothing would pass every test.
func TestLeftBehind(t *testing.T) {
	name := "/dev/shm/thole-sandtest"
	tests := []struct {
		what  string
		leave func(t *testing.T) (undo func())
	}{
		{"descriptor", func(t *testing.T) func() {
			f, err := os.Open("/")
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		}},
		{"child process", func(t *testing.T) func() {
			cmd := exec.Command("/bin/cat")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return func() { in.Close(); cmd.Wait() }
		}},
		{"file", func(t *testing.T) func() {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { os.Remove(name) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			before := look("")
			undo := tt.leave(t)
			left := behind(before, look(""))
			undo()
			if !slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, tt.what+" left behind: ") }) {
				t.Errorf("not noticed: %q", left)
			}
			if left := behind(before, look("")); len(left) > 0 {
				t.Errorf("taken away, and still seen: %q", left)
			}
		})
	}
}

func TestMore(t *testing.T) {
	for _, c := range []struct{ before, now, want []string }{
		{nil, nil, nil},
		{[]string{"a"}, []string{"a"}, nil},
		{[]string{"a"}, []string{"a", "a"}, []string{"a"}},
		{[]string{"a", "b"}, []string{"c", "b"}, []string{"c"}},
		{[]string{"a"}, nil, nil},
	} {
		if got := more(c.before, c.now); !slices.Equal(got, c.want) {
			t.Errorf("more(%q, %q) = %q, want %q", c.before, c.now, got, c.want)
		}
	}
}

func TestDirIsOpenToEveryone(t *testing.T) {
	dir := Dir(t)
	for d := dir; d != "/"; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o001 == 0 {
			t.Errorf("%s has mode %v", d, st.Mode())
		}
	}
}
