// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/common/sandtest"
)

// TestMeeting runs two sandboxes of one caller at the same time: neither finds
// the other, by file, memory, socket or process.
func TestMeeting(t *testing.T) {
	sandtest.Root(t, "sandboxes of root and of another user")
	thole := sandtest.Build(t, "github.com/tholehq/thole/cmd/thole")
	prisoner := sandtest.Build(t, "github.com/tholehq/thole/linux/internal/prisoner")
	for _, uid := range []int{0, nobody} {
		name := map[int]string{0: "root", nobody: "user"}[uid]
		t.Run(name, func(t *testing.T) {
			if uid != 0 && !userNamespaces(t) {
				t.Skip("this host gives an ordinary user no view")
			}
			sandtest.Leaks(t, leaves)
			dir := workDir(t, uid)
			pid, shm := first(t, uid, thole, dir)
			others, see := "absent ENOENT", "alone"
			if uid != 0 {
				// The same uid, which the gap "identity" says: the names of its
				// processes are seen, and no more.
				others, see = "denied EACCES", "sees others"
			}
			acts := []struct{ act, want string }{
				{"meet /dev/shm second", "seen []"},
				{"meet /tmp second", "seen [home]"},
				{"shm " + shm, "allowed EINVAL"},
				{"kill " + pid + " 0", "denied EPERM"},
				{"kill " + pid + " 18", "denied EPERM"},
				{"pidfd-kill " + pid, "denied EPERM"},
				{"ptrace " + pid + " 0 0", "denied EPERM"},
				{"vm-read " + pid, "denied EPERM"},
				{"getfd " + pid, "denied EPERM"},
				{"read /proc/" + pid + "/environ", others},
				{"list /proc/" + pid + "/root", others},
				{"list /proc/" + pid + "/root/dev/shm", others},
				{"read /proc/" + pid + "/mem", others},
				{"pids", see},
			}
			var list []string
			for _, a := range acts {
				list = append(list, a.act)
			}
			b, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "acts.json")
			if err := os.WriteFile(file, b, 0o644); err != nil {
				t.Fatal(err)
			}
			out, code := start(t, uid, nil, thole, "run", "-q", "--ro", filepath.Dir(prisoner), "--rd", dir, "--", prisoner, file)
			var got []string
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != len(acts) {
				t.Fatalf("prisoner ended with %d and printed %s", code, out)
			}
			for i, a := range acts {
				if !met(a.want, got[i], nil) {
					t.Errorf("%s: %s, want %s", a.act, got[i], a.want)
				}
			}
		})
	}
}

// first starts a sandbox that leaves things to be found, and waits until it
// has. It ends with the test. It returns the pid of its program and the id of
// a piece of System V memory.
func first(t *testing.T, uid int, thole, dir string) (pid, shm string) {
	t.Helper()
	const script = `echo x >/dev/shm/first; echo x >/tmp/first; echo $$; ipcmk -M 4096 -p 0666; read x`
	cmd := exec.Command(thole, "run", "-q", "--rw", dir, "--", "/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // read ends, and the program with status 1
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("first sandbox: %v", err)
		}
	})
	s := bufio.NewScanner(out)
	for len(pid) == 0 || len(shm) == 0 {
		if !s.Scan() {
			t.Fatalf("first sandbox ended early (%v)", s.Err())
		}
		f := strings.Fields(s.Text())
		if len(f) == 0 {
			continue
		}
		if _, err := strconv.Atoi(f[len(f)-1]); err != nil {
			t.Fatalf("first sandbox printed %q", s.Text())
		}
		if pid == "" {
			pid = f[0]
		} else {
			shm = f[len(f)-1]
		}
	}
	return pid, shm
}
