// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumbers: every call has a number of this architecture, and no two the
// same.
func TestNumbers(t *testing.T) {
	seen := map[uint64]Call{}
	for c := Call(0); c < nCalls; c++ {
		if other, dup := seen[nr[c]]; dup {
			t.Errorf("%s and %s are both %d", c, other, nr[c])
		}
		seen[nr[c]] = c
	}
}

// TestStructures: descriptors and addresses inside structures are those of the
// run; here a struct iovec is written by way of a block that holds the address
// of another.
func TestStructures(t *testing.T) {
	text := &Blob{Bytes: []byte("hello")}
	head := &Blob{Bytes: make([]byte, 24)}
	head.PutAddress(0, text)
	head.PutHandle(8, "out")
	binary.NativeEndian.PutUint64(head.Bytes[16:], 0x1122334455667788)
	status, out, ws := start(t, List{{Call: Write, Args: []Arg{Handle("out"), Ptr(head), Num(24)}}, {Call: Write, Args: []Arg{Handle("out"), Ptr(text), Num(5)}}})
	if len(status) != 0 || ws.ExitStatus() != 0 || len(out) != 29 || out[24:] != "hello" {
		t.Fatalf("status %x, exit %v, %q", status, ws, out)
	}
	b := []byte(out)
	if a := binary.NativeEndian.Uint64(b); a == 0 {
		t.Error("no address was stored")
	}
	if fd := binary.NativeEndian.Uint64(b[8:]); fd < 3 || fd > 1<<20 {
		t.Errorf("descriptor %d was stored", fd)
	}
	if v := binary.NativeEndian.Uint64(b[16:]); v != 0x1122334455667788 {
		t.Errorf("the block's own bytes became %x", v)
	}
}

// TestSlotInStructure: a result lands in the structure that a later call reads.
func TestSlotInStructure(t *testing.T) {
	b := &Blob{Bytes: []byte("AAAAAAAA--------ZZZZZZZZ")}
	s := NewSlotIn("n", b, 8)
	_, out, _ := start(t, List{
		{Call: Write, Args: []Arg{Handle("out"), Str("12345"), Num(5)}, Save: s},
		{Call: Write, Args: []Arg{Handle("out"), Ptr(b), Num(24)}},
	})
	if want := "12345AAAAAAAA" + string(binary.NativeEndian.AppendUint64(nil, 5)) + "ZZZZZZZZ"; out != want {
		t.Errorf("%q", out)
	}
}

// TestChildIsPlain: the child has no handler of the parent's and its own
// descriptors.
func TestChildIsPlain(t *testing.T) {
	status, out, ws := start(t, List{
		{Call: Dup3, Args: []Arg{Handle("out"), Num(1), Num(0)}},
		{Call: Execve, Args: []Arg{Str("/bin/sh"), Ptr(Vector("argv", []string{"sh", "-c", "cat /proc/self/status; kill -TERM $$"})), Ptr(Vector("envp", nil))}},
	})
	if len(status) != 0 || !ws.Signaled() || ws.Signal() != syscall.SIGTERM {
		t.Fatalf("status %x, %v", status, ws)
	}
	lines := 0
	for line := range strings.Lines(out) {
		if name, set, _ := strings.Cut(line, ":"); name == "SigCgt" || name == "SigBlk" {
			lines++
			if strings.TrimSpace(set) != "0000000000000000" {
				t.Errorf("%q", line)
			}
		}
	}
	if lines != 2 {
		t.Errorf("%d lines of signals", lines)
	}
}

// TestCloneFails: a child that cannot be born is an error and leaves none.
func TestCloneFails(t *testing.T) {
	img, err := List{write("x")}.Assemble(map[string]int{"out": 1}, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Free()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		ns     uint64
		cgroup int
		want   error
	}{
		{0, int(null.Fd()), unix.EBADF}, // no cgroup directory
		{unix.CLONE_NEWUSER | unix.CLONE_FS, -1, unix.EINVAL},
	} {
		if pid, fd, err := img.Clone(tt.ns, tt.cgroup); !errors.Is(err, tt.want) || pid != 0 || fd != -1 {
			t.Errorf("%+v: %d, %d, %v", tt, pid, fd, err)
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
	img.Free() // twice is once
}

// TestAssembleFails: what the assembly could not hold is refused.
func TestAssembleFails(t *testing.T) {
	seven := make([]Arg, 7)
	inside := &Blob{Bytes: make([]byte, 8)}
	inside.PutHandle(0, "unknown")
	for name, l := range map[string]List{
		"seven arguments":  {{Call: Close, Args: seven}},
		"handle":           {{Call: Close, Args: []Arg{Handle("unknown")}}},
		"handle in memory": {{Call: Close, Args: []Arg{Ptr(inside)}}},
	} {
		if _, err := l.Assemble(nil, -1); err == nil {
			t.Errorf("%s: assembled", name)
		}
	}
}

// TestStatusIsWhole: every report of many failing children is whole and names
// its own call.
func TestStatusIsWhole(t *testing.T) {
	r, w := pipe(t)
	const n = 100
	for i := range n {
		l := make(List, i+1)
		for j := range l {
			l[j] = Op{Call: Close, Args: []Arg{Num(-1)}, Want: Any()}
		}
		l[i].Want = Succeed()
		img, err := l.Assemble(nil, int(w.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		pid, fd, err := img.Clone(0, -1)
		if err != nil {
			t.Fatal(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws.ExitStatus() != 70 {
			t.Fatalf("%v, %v", ws, err)
		}
		unix.Close(fd)
		img.Free()
		buf := make([]byte, ReportSize)
		if _, err := io.ReadFull(r, buf); err != nil {
			t.Fatal(err)
		}
		if got, err := ParseReport(buf, len(l)); err != nil || got != (Report{Index: i, Result: -int64(unix.EBADF)}) {
			t.Errorf("call %d: %+v, %v", i, got, err)
		}
	}
}
