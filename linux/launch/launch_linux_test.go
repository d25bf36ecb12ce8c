// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// start clones list with a status pipe (@status) and a pipe for output (@out)
// and returns the report, what was written to @out, and the exit status.
func start(t *testing.T, list List) (status []byte, out string, ws syscall.WaitStatus) {
	t.Helper()
	sr, sw := pipe(t)
	or, ow := pipe(t)
	img, err := list.Assemble(map[string]int{"status": int(sw.Fd()), "out": int(ow.Fd())}, int(sw.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer img.Free()
	pid, pidfd, err := img.Clone(0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	sw.Close()
	ow.Close()
	status, _ = io.ReadAll(sr)
	b, _ := io.ReadAll(or)
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	return status, string(b), ws
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func write(s string) Op {
	return Op{Call: Write, Args: []Arg{Handle("out"), Str(s), Num(int64(len(s)))}}
}

func TestListRunsInOrderAndEnds(t *testing.T) {
	status, out, ws := start(t, List{write("a"), write("b"), write("c")})
	if len(status) != 0 || out != "abc" || ws.ExitStatus() != 0 {
		t.Fatalf("status %x, out %q, exit %v", status, out, ws)
	}
}

func TestFailedCallEndsTheLaunch(t *testing.T) {
	list := List{
		write("a"),
		{Call: Chdir, Args: []Arg{Str("/no such directory")}},
		write("never"),
	}
	status, out, ws := start(t, list)
	if out != "a" || ws.ExitStatus() != 70 {
		t.Fatalf("out %q, exit %v", out, ws)
	}
	r, err := ParseReport(status, len(list))
	if err != nil || r.Ready || r.Index != 1 {
		t.Fatalf("report %+v, %v", r, err)
	}
	e := &OpError{Op: list[r.Index], Result: r.Result}
	if !errors.Is(e, unix.ENOENT) || !strings.Contains(e.Error(), `chdir("/no such directory")`) {
		t.Fatalf("error %v", e)
	}
}

func TestWanted(t *testing.T) {
	refused := Op{Call: Chdir, Args: []Arg{Str("/no such directory")}}
	tests := []struct {
		name string
		want Want
		goes bool
	}{
		{"success", Succeed(), false},
		{"any", Any(), true},
		{"the errno", Exactly(-int64(unix.ENOENT)), true},
		{"another errno", Exactly(-int64(unix.EACCES)), false},
		{"zero", Exactly(0), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := refused
			o.Want = tt.want
			_, out, _ := start(t, List{o, write("on")})
			if (out == "on") != tt.goes {
				t.Fatalf("out %q, want goes on %v", out, tt.goes)
			}
		})
	}
}

// A descriptor that one call makes is an argument of the next ones, also
// inside a structure.
func TestSlots(t *testing.T) {
	dir := t.TempDir()
	fd := NewSlot("dir")
	how := &Blob{Bytes: make([]byte, 24), Text: "{O_DIRECTORY}"}
	how.Bytes[0], how.Bytes[2] = 0, 1 // O_DIRECTORY is 0200000
	if runtime.GOARCH == "arm64" {
		how.Bytes[1], how.Bytes[2] = 0x40, 0
	}
	status, _, ws := start(t, List{
		{Call: OpenAt2, Args: []Arg{Named(atFDCWD, "AT_FDCWD"), Str(dir), Ptr(how), Num(24)}, Save: fd},
		{Call: MkdirAt, Args: []Arg{From(fd), Str("made"), Named(0o700, "0700")}},
	})
	if len(status) != 0 || ws.ExitStatus() != 0 {
		t.Fatalf("status %x, exit %v", status, ws)
	}
	if st, err := os.Stat(dir + "/made"); err != nil || !st.IsDir() {
		t.Fatal("directory was not made:", err)
	}
}

func TestExecve(t *testing.T) {
	list := List{
		{Call: Dup3, Args: []Arg{Handle("out"), Num(1), Num(0)}},
		{Call: Execve, Args: []Arg{Str("/bin/sh"), Ptr(Vector("argv", []string{"sh", "-c", "echo $0 $1 $V", "x y"})), Ptr(Vector("envp", []string{"V=v"}))}},
	}
	status, out, ws := start(t, list)
	if len(status) != 0 || out != "x y v\n" || ws.ExitStatus() != 0 {
		t.Fatalf("status %x, out %q, exit %v", status, out, ws)
	}
}

func TestUnknownHandle(t *testing.T) {
	_, err := List{write("x")}.Assemble(nil, -1)
	if err == nil || !strings.Contains(err.Error(), `"out"`) {
		t.Fatalf("err %v", err)
	}
}

// The parent collects garbage and grows its stacks while children share its
// memory: nothing of theirs may move.
func TestCloneUnderGarbageCollection(t *testing.T) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var keep [][]byte
		for {
			select {
			case <-stop:
				return
			default:
				keep = append(keep[:len(keep)%64], make([]byte, 1<<16))
				runtime.GC()
			}
		}
	}()
	for range 200 {
		if _, out, ws := start(t, List{write("a"), write("b")}); out != "ab" || ws.ExitStatus() != 0 {
			t.Fatalf("out %q, exit %v", out, ws)
		}
	}
	close(stop)
	<-done
}

const atFDCWD = ^uint64(99) // -100

func BenchmarkClone(b *testing.B) {
	list := List{{Call: Execve, Args: []Arg{Str("/bin/true"), Ptr(Vector("argv", []string{"true"})), Ptr(Vector("envp", nil))}}}
	b.Run("launch", func(b *testing.B) {
		for b.Loop() {
			img, err := list.Assemble(nil, -1)
			if err != nil {
				b.Fatal(err)
			}
			pid, fd, err := img.Clone(0, -1)
			if err != nil {
				b.Fatal(err)
			}
			unix.Close(fd)
			syscall.Wait4(pid, nil, 0, nil)
			img.Free()
		}
	})
	b.Run("os.StartProcess", func(b *testing.B) {
		for b.Loop() {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
			if err != nil {
				b.Fatal(err)
			}
			p.Wait()
		}
	})
}
