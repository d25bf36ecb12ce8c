// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/common/sandtest"
)

// work is something that honest programs do, and that must go on working.
type work struct {
	name   string
	needs  []string // programs, absolute
	flags  []string // of thole run, beyond --rw for the working directory
	script string   // for sh
	out    string   // what it prints, white space aside
	code   int
	slow   bool // it runs as root alone
	outbox bool // an outbox is granted beside the directory
	// viewOnly: it needs the private view, or is refused by it alone.
	viewOnly bool
}

// TestPrograms runs them as root and as an ordinary user.
func TestPrograms(t *testing.T) {
	sandtest.Root(t, "programs run as root and as another user")
	thole := sandtest.Build(t, "github.com/tholehq/thole/cmd/thole")
	for _, uid := range []int{0, nobody} {
		name := "root"
		if uid != 0 {
			name = "user"
		}
		t.Run(name, func(t *testing.T) {
			for _, w := range slices.Concat(shellWorks, programWorks) {
				if w.slow && uid != 0 {
					continue
				}
				t.Run(w.name, func(t *testing.T) {
					w.run(t, thole, uid)
				})
			}
		})
	}
}

func (w *work) run(t *testing.T, thole string, uid int) {
	for _, p := range w.needs {
		if _, err := os.Stat(p); err != nil {
			t.Skipf("not installed: %s", p)
		}
	}
	if w.viewOnly && uid != 0 && !userNamespaces(t) {
		t.Skip("this host gives an ordinary user no view")
	}
	if w.slow && testing.Short() {
		t.Skip("slow: runs without -short")
	}
	sandtest.Leaks(t, leaves)
	dir := workDir(t, uid)
	args := append([]string{"run", "-q", "--rw", dir, "--workdir", dir}, w.flags...)
	if w.outbox {
		args = append(args, "--wo", workDir(t, uid))
	}
	out, code := start(t, uid, nil, thole, append(args, "--", "/bin/sh", "-c", w.script)...)
	if got, want := strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(w.out), " "); got != want || code != w.code {
		t.Errorf("ended with %d, want %d, and printed\n%s\nwant\n%s", code, w.code, out, w.out)
	}
}

// userNamespaces says whether an ordinary user can have a view here.
func userNamespaces(t *testing.T) bool {
	t.Helper()
	_, code := start(t, nobody, nil, "/usr/bin/unshare", "--user", "--mount", "/bin/true")
	return code == 0
}

func workDir(t *testing.T, uid int) string {
	t.Helper()
	dir := sandtest.Dir(t)
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs a program as uid and returns what it printed, errors too, and
// its status. It is given far more time than anything here takes.
func start(t *testing.T, uid int, stdin io.Reader, program string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatalf("start %s: %v\n%s", program, err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// zeros is an endless reader's worth of n bytes.
type zeros struct{ n int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := int(min(z.n, int64(len(b))))
	clear(b[:n])
	z.n -= int64(n)
	return n, nil
}

// TestPipes sends 100 MB through a sandbox's standard streams.
func TestPipes(t *testing.T) {
	sandtest.Root(t, "sandboxes of root")
	sandtest.Leaks(t, leaves)
	thole := sandtest.Build(t, "github.com/tholehq/thole/cmd/thole")
	const size = 100 << 20
	cmd := exec.CommandContext(t.Context(), thole, "run", "-q", "--", "/bin/cat")
	cmd.Stdin = &zeros{size}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || n != size {
		t.Errorf("%d bytes of %d, %v: %s", n, size, err, stderr.Bytes())
	}
}

// TestSocketAsStdin: a socket from outside carries its maker's cgroup.
func TestSocketAsStdin(t *testing.T) {
	sandtest.Root(t, "sandboxes of root")
	sandtest.Leaks(t, leaves)
	thole := sandtest.Build(t, "github.com/tholehq/thole/cmd/thole")
	for _, uid := range []int{0, nobody} {
		conn := listeningSocket(t)
		out, code := start(t, uid, conn, thole, "run", "-q", "--", "/bin/echo", "ran")
		conn.Close()
		if code != 70 || strings.Contains(out, "ran") || !strings.Contains(out, "socket") {
			t.Errorf("uid %d: ended with %d and printed %s", uid, code, out)
		}
	}
}

// listeningSocket is a TCP socket that could accept connections.
func listeningSocket(t *testing.T) *os.File {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "socket")
}

// TestClosedStreams: without standard streams a program still starts, and
// finds nothing of ours in their places.
func TestClosedStreams(t *testing.T) {
	sandtest.Root(t, "sandboxes of root")
	sandtest.Leaks(t, leaves)
	thole := sandtest.Build(t, "github.com/tholehq/thole/cmd/thole")
	for _, uid := range []int{0, nobody} {
		dir := workDir(t, uid)
		out, code := start(t, uid, nil, "/bin/sh", "-c",
			thole+` run -q --rw `+dir+` --workdir `+dir+` -- /bin/sh -c 'cat; echo $? >in; ls -l /proc/self/fd | wc -l >count' <&-; cat `+dir+`/in`)
		if f := strings.Fields(out); code != 0 || len(f) == 0 || f[len(f)-1] != "0" {
			t.Errorf("uid %d: ended with %d and printed %s", uid, code, out)
		}
	}
}
