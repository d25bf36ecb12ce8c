// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/sandtest"
)

const tholePackage = "github.com/tholehq/thole/cmd/thole"

// TestScript runs the command as a person does; see testdata/script.
func TestScript(t *testing.T) {
	sandtest.Root(t, "its scripts run the full sandbox")
	bin := sandtest.Build(t, tholePackage)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		// Outside of what a sandbox replaces by its own.
		WorkdirRoot:         sandtest.Dir(t),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(bin)+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
			e.Setenv("THOLE", bin)
			for _, err := range []error{
				os.Chmod(e.WorkDir, 0o755),
				writePolicy(e.WorkDir, "rw.json", `{"rw": ["$W/rw"]}`),
				writePolicy(e.WorkDir, "every.json", `{"module": "m", "kind": "probe", "ro": ["/usr/share"], "rw": ["$W/rw"], "rd": ["$W/rd"], "wo": ["$W/wo"],
					"net": "egress-any", "proxy_port": null, "broker_socket": null, "gpu": true, "exec_rw": true, "exe": "/bin/sh"}`),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":  scriptStatus,
			"records": scriptRecords,
			"grow":    scriptGrow,
			"absent":  scriptAbsent,
		},
	})
}

// writePolicy writes a policy whose paths lie in dir, which it calls $W.
func writePolicy(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "$W", dir)), 0o644)
}

// scriptStatus runs a command and wants an exit status: status CODE COMMAND….
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		code, ok := strings.CutPrefix(err.Error(), "exit status ")
		if got = code; !ok {
			ts.Fatalf("%v", err)
		}
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// scriptRecords reads a file of records as the library does, and wants their
// types in order: records FILE TYPE….
func scriptRecords(ts *testscript.TestScript, neg bool, args []string) {
	var types []string
	r := event.NewReader(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	var seq uint64
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		types = append(types, string(e.Type))
		if e.Seq <= seq {
			ts.Fatalf("record %d has number %d", len(types), e.Seq)
		}
		seq = e.Seq
	}
	if lines := strings.Count(ts.ReadFile(args[0]), "\n"); lines != len(types) {
		ts.Fatalf("%d lines, %d records", lines, len(types))
	}
	if !slices.Equal(types, args[1:]) {
		ts.Fatalf("records %v, want %v", types, args[1:])
	}
}

// scriptGrow makes a policy that is too big: grow FILE bytes|paths N.
func scriptGrow(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if _, err := fmt.Sscan(args[2], &n); err != nil {
		ts.Fatalf("%v", err)
	}
	var b strings.Builder
	switch args[1] {
	case "bytes":
		b.WriteString(`{"module":"` + strings.Repeat("x", n) + `"}`)
	case "paths":
		b.WriteString(`{"ro":[`)
		for i := range n {
			if i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, `"/nonexistent/%d"`, i)
		}
		b.WriteString("]}")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// scriptAbsent wants that the path in a file is not there: what a program said
// of its private directories is gone with it.
func scriptAbsent(ts *testscript.TestScript, neg bool, args []string) {
	p := strings.TrimSpace(ts.ReadFile(args[0]))
	if _, err := os.Lstat(p); p == "" || (err == nil) != neg {
		ts.Fatalf("%q: %v", p, err)
	}
}

// roleVar makes the test binary one of the programs of the tests.
const roleVar = "THOLE_CLI_TEST_ROLE"

// TestMain removes what the tests built.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(sandtest.Main(m))
	case "signals":
		signalsMain()
	case "session":
		sessionMain()
	}
}
