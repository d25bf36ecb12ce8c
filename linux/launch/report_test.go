// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
)

func report(index uint64, result int64) []byte {
	return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, index), uint64(result))
}

func TestParseReport(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		want Report
		bad  bool
	}{
		{"ready", ReadyReport().Bytes, Report{Ready: true}, false},
		{"first", report(0, -2), Report{Result: -2}, false},
		{"last", report(2*80, 7), Report{Index: 2, Result: 7}, false},
		{"beyond", report(3*80, -1), Report{}, true},
		{"between", report(81, -1), Report{}, true},
		{"far beyond", report(1<<63, -1), Report{}, true},
		{"nothing", nil, Report{}, true},
		{"short", report(0, -1)[:15], Report{}, true},
		{"long", append(report(0, -1), 0), Report{}, true},
	} {
		got, err := ParseReport(tt.b, 3)
		if got != tt.want || errors.Is(err, ErrReport) != tt.bad {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	if len(ReadyReport().Bytes) != ReportSize {
		t.Errorf("a report has %d bytes", len(ReadyReport().Bytes))
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add(report(80, -13), 3)
	f.Add(ReadyReport().Bytes, 0)
	f.Add([]byte{}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		r, err := ParseReport(b, n%1000)
		if err == nil && !r.Ready && (r.Index < 0 || n > 0 && r.Index >= n%1000) {
			t.Errorf("%+v of %d calls", r, n%1000)
		}
	})
}

func TestOpError(t *testing.T) {
	o := Op{Call: OpenAt, Step: "landlock", Args: []Arg{Str("/"), Num(0)}, Want: Exactly(-13)}
	refused, answered := &OpError{o, -2}, &OpError{o, 5}
	if !errors.Is(refused, syscall.ENOENT) || refused.Error() != `landlock: openat("/", 0) must be -13: no such file or directory` {
		t.Error(refused)
	}
	if answered.Unwrap() != nil || answered.Error() != `landlock: openat("/", 0) must be -13: answered 5` {
		t.Error(answered)
	}
}

// TestPrint: a list prints each call with its step, its result's name, the
// answer it needs and why it is made.
func TestPrint(t *testing.T) {
	var l List
	fd := NewSlot("fd")
	l.Add("one", Op{Call: OpenAt, Args: []Arg{Named(^uint64(99), "AT_FDCWD"), Str("a \"b\"\n")}, Save: fd})
	l.Add("two", Op{Call: Close, Args: []Arg{From(fd)}, Want: Any(), Note: "why"},
		Op{Call: Read, Args: []Arg{Handle("gate"), Ptr(&Blob{Text: "{x}"}), Num(-1)}, Want: Exactly(1)})
	want := `one        openat(AT_FDCWD, "a \"b\"\n") = $fd
two        close($fd) (any answer)  # why
two        read(@gate, {x}, -1) must be 1
`
	if got := l.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	if l.Index("two") != 1 || l.Index("three") != -1 {
		t.Errorf("index %d, %d", l.Index("two"), l.Index("three"))
	}
	for c := Call(0); c < nCalls; c++ {
		if c.String() == "" || strings.HasSuffix(c.String(), "?") {
			t.Errorf("call %d has no name", c)
		}
	}
	if nCalls.String() != "call?" {
		t.Error("a call that does not exist has a name")
	}
}
