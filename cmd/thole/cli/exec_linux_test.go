// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/common/sandtest"
)

// launcher is `thole sandbox-exec` on a policy.
type launcher struct {
	cmd *exec.Cmd
	err bytes.Buffer
	out bytes.Buffer
}

// newLauncher runs the program under a policy; uid negative: as root.
func newLauncher(t *testing.T, uid int, policy string, argv ...string) *launcher {
	t.Helper()
	sandtest.Root(t, "the full sandbox, and another user's")
	dir := sandtest.Dir(t)
	file := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(file, []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &launcher{cmd: exec.Command(sandtest.Build(t, tholePackage), append([]string{"sandbox-exec", file, "--"}, argv...)...)}
	l.cmd.Dir, l.cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.err
	if uid >= 0 {
		l.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return l
}

// status runs it and returns what its parent sees.
func (l *launcher) status(t *testing.T) syscall.WaitStatus {
	t.Helper()
	_ = l.cmd.Run()
	if l.cmd.ProcessState == nil {
		t.Fatal("did not start")
	}
	return l.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// users are who starts the launcher in the tests.
var users = []struct {
	name string
	uid  int
}{{"root", -1}, {"nobody", 65534}}

// TestLauncherStatus: the parent sees the program's own end, a signal as a
// signal, and the same process before and after.
func TestLauncherStatus(t *testing.T) {
	for _, u := range users {
		l := newLauncher(t, u.uid, "{}", "/bin/sh", "-c", "echo $$; exit 9")
		if ws := l.status(t); ws.ExitStatus() != 9 {
			t.Errorf("%s: %v, %s", u.name, ws, l.err.String())
		}
		if got := strings.TrimSpace(l.out.String()); got != strconv.Itoa(l.cmd.ProcessState.Pid()) {
			t.Errorf("%s: started as %d, runs as %s", u.name, l.cmd.ProcessState.Pid(), got)
		}
		l = newLauncher(t, u.uid, "{}", "/bin/sh", "-c", "kill -USR1 $$")
		if ws := l.status(t); !ws.Signaled() || ws.Signal() != syscall.SIGUSR1 {
			t.Errorf("%s: %v", u.name, ws)
		}
		l = newLauncher(t, u.uid, "{}", "/nonexistent")
		if ws := l.status(t); ws.ExitStatus() != 71 {
			t.Errorf("%s: %v, %s", u.name, ws, l.err.String())
		}
		l = newLauncher(t, u.uid, `{"nett": "none"}`, "/bin/true")
		if ws := l.status(t); ws.ExitStatus() != 70 {
			t.Errorf("%s: %v, %s", u.name, ws, l.err.String())
		}
	}
}

// TestLauncherNeedsMore: a policy that an ordinary user's launcher cannot hold
// is refused, and the capability named.
func TestLauncherNeedsMore(t *testing.T) {
	for policy, capability := range map[string]string{
		`{"net": "egress-allowlist", "proxy_port": 3128}`: "net.egress-allowlist",
		`{"net": "egress-any"}`:                           "net.egress-any",
	} {
		l := newLauncher(t, 65534, policy, "/bin/echo", "ran")
		if ws := l.status(t); ws.ExitStatus() != 70 || !strings.Contains(l.err.String(), capability) || !strings.Contains(l.err.String(), "hint: ") || l.out.Len() != 0 {
			t.Errorf("%s: %v, %s%s", policy, ws, l.err.String(), l.out.String())
		}
	}
}

// TestHandshake: one byte comes before the program's first output; the
// variable and the pipe are not the program's.
func TestHandshake(t *testing.T) {
	for _, u := range users {
		l := newLauncher(t, u.uid, "{}", "/bin/sh", "-c", `echo "$OARBANK_CONFINED"; echo x >&3 || echo closed`)
		r, w := pipe(t)
		l.cmd.ExtraFiles, l.cmd.Stdout = []*os.File{w}, w
		l.cmd.Env = append(l.cmd.Env, "OARBANK_CONFINED=3")
		if err := l.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		got, err := io.ReadAll(r)
		if werr := l.cmd.Wait(); err != nil || werr != nil || string(got) != "\x01\nclosed\n" {
			t.Errorf("%s: %q, %v, %v, %s", u.name, got, err, werr, l.err.String())
		}
	}
}

// TestNoHandshake: a launcher that fails never writes the byte, and one that
// is told of no pipe starts nothing.
func TestNoHandshake(t *testing.T) {
	for _, tt := range []struct{ name, policy, value string }{
		{"policy", `{"rww": []}`, "3"},
		{"root", `{"rw": ["/nonexistent"]}`, "3"},
		{"closed descriptor", "{}", "77"},
		{"no number", "{}", "pipe"},
		{"standard descriptor", "{}", "1"},
		{"not a pipe", "{}", "4"},
	} {
		l := newLauncher(t, -1, tt.policy, "/bin/echo", "ran")
		r, w := pipe(t)
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		l.cmd.ExtraFiles = []*os.File{w, null}
		l.cmd.Env = append(l.cmd.Env, "OARBANK_CONFINED="+tt.value)
		ws := l.status(t)
		w.Close()
		if got, err := io.ReadAll(r); ws.ExitStatus() != 70 || len(got) != 0 || err != nil || l.out.Len() != 0 {
			t.Errorf("%s: %v, byte %q, %v, %s%s", tt.name, ws, got, err, l.out.String(), l.err.String())
		}
	}
}

// TestLauncherLinks: the links on the way to the program stay, in directories
// too that the job's user cannot search; and those of `exe`.
func TestLauncherLinks(t *testing.T) {
	sandtest.Root(t, "a private view with links in it")
	dir := sandtest.Dir(t)
	hidden := filepath.Join(dir, "hidden")
	for _, d := range []string{hidden, hidden + "/a", hidden + "/v2", hidden + "/v2/bin"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{hidden + "/a/b": "../current", hidden + "/current": "v2", hidden + "/sh": "/bin/sh"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(hidden+"/v2/bin/x", []byte("#!/bin/sh\necho \"$0\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		policy string
		argv   []string
		want   string
	}{
		{`{"ro": ["` + hidden + `/v2"]}`, []string{hidden + "/a/b/bin/x"}, hidden + "/a/b/bin/x\n"},
		{`{}`, []string{hidden + "/sh", "-c", "echo through"}, "through\n"},
		{`{"exe": "` + hidden + `/sh"}`, []string{"/bin/sh", "-c", hidden + "/sh -c 'echo again'"}, "again\n"},
	} {
		l := newLauncher(t, -1, tt.policy, tt.argv...)
		if ws := l.status(t); ws.ExitStatus() != 0 || l.out.String() != tt.want {
			t.Errorf("%s %v: %v, %q, %s", tt.policy, tt.argv, ws, l.out.String(), l.err.String())
		}
	}
}
