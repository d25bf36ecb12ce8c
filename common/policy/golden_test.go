// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// document under test, or a string for a flag.
type input struct{ name, text string }

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var wl, gl string
		if i < len(w) {
			wl = w[i]
		}
		if i < len(g) {
			gl = g[i]
		}
		if wl != gl {
			t.Fatalf("%s:%d differs; run with -update and review:\n got %q\nwant %q", file, i+1, gl, wl)
		}
	}
}

// badGolden parses every input, each of which must fail, and compares errors
// and hints with a golden file.
func badGolden(t *testing.T, file string, inputs []input, parse func(string) (any, error)) {
	t.Helper()
	var b strings.Builder
	names := map[string]bool{}
	for _, in := range inputs {
		if names[in.name] {
			t.Errorf("two inputs are named %q", in.name)
		}
		names[in.name] = true
		v, err := parse(in.text)
		if err == nil {
			t.Errorf("%s: no error, but %v", in.name, v)
			continue
		}
		e := checkError(t, err)
		if strings.Contains(e.Error(), "%!") {
			t.Errorf("%s: %v is not formatted", in.name, e)
		}
		fmt.Fprintf(&b, "# %s\n%s\n", in.name, strings.ReplaceAll(e.Error(), strings.Repeat("a", 64), "a{64}"))
		if e.File == "" {
			fmt.Fprintf(&b, "column: %d\n", e.Column)
		}
		if e.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", e.Hint)
		}
	}
	golden(t, file, b.String())
}

// checkError holds what is true of every error of a parser.
func checkError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrInvalid) {
		t.Fatalf("error %v is %T, not *Error and ErrInvalid", err, err)
	}
	if e.Line < 1 || e.Column < 1 || e.Msg == "" {
		t.Fatalf("error without position or message: %+v", e)
	}
	return e
}

// posixOnly skips a test whose documents hold POSIX paths.
func posixOnly(t testing.TB) {
	if hostStyle() != posix {
		t.Skip("the documents of this test hold POSIX paths; TestCleanPath covers those of Windows")
	}
}
