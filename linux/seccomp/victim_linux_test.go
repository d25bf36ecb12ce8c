// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// victimEnv holds an order: this test binary, started with it, installs a
// filter on all its threads, carries the order out and prints what came of it.
const victimEnv = "THOLE_SECCOMP_VICTIM"

// marked is added to the error numbers of a marked filter. The kernel has no
// such numbers, so an answer that carries it came from the filter.
const marked = 3000

type order struct {
	Options Options
	Mark    bool     // answer with marked error numbers
	Split   bool     // install the two halves of the program
	None    bool     // install nothing
	Calls   []probe  // issue these one after another
	Do      []string // carry out these deeds
}

// probe is one raw system call.
type probe struct {
	Nr   uint32
	Args [6]uint64
	I386 bool // by int 0x80
}

// outcome is what the victim prints: error numbers of Calls, texts of Do.
type outcome struct {
	Errnos []int
	Deeds  map[string]string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimEnv); text != "" {
		if err := victim(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func victim(text string) error {
	runtime.LockOSThread()
	os.Unsetenv(victimEnv)
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	p := Rules(o.Options)
	if o.Mark {
		p = mark(p)
	}
	programs := []Program{p}
	if o.Split {
		loud, quiet := p.Split()
		programs = []Program{loud, quiet}
	}
	for _, p := range programs {
		if o.None {
			break
		}
		code, err := Compile(p)
		if err != nil {
			return err
		}
		if err := install(code, p.Flags()|flagTsync); err != nil {
			return err
		}
	}
	out := outcome{Deeds: map[string]string{}}
	for _, c := range o.Calls {
		if c.I386 {
			out.Errnos = append(out.Errnos, int80(c.Nr))
			continue
		}
		_, _, errno := unix.RawSyscall6(uintptr(c.Nr), uintptr(c.Args[0]), uintptr(c.Args[1]), uintptr(c.Args[2]),
			uintptr(c.Args[3]), uintptr(c.Args[4]), uintptr(c.Args[5]))
		out.Errnos = append(out.Errnos, int(errno))
	}
	for _, name := range o.Do {
		out.Deeds[name] = "done"
		if err := deeds[name](); err != nil {
			out.Deeds[name] = err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// mark gives a program's errors numbers that only a filter answers with.
func mark(p Program) Program {
	m := func(a Action) Action {
		if a == Allow {
			return a
		}
		return Errno(a.Errno() + marked)
	}
	p.Foreign, p.Unknown, p.Default = m(p.Foreign), m(p.Unknown), m(p.Default)
	if p.Arch == AMD64 {
		p.X32 = m(p.X32)
	}
	rules := make([]Rule, len(p.Rules))
	for i, r := range p.Rules {
		r.Action = m(r.Action)
		rules[i] = r
	}
	p.Rules = rules
	return p
}

// native returns the architecture whose kernel runs the test.
func native(t testing.TB) Arch {
	a, ok := Native()
	if !ok {
		t.Skip("no filter for " + runtime.GOARCH)
	}
	return a
}

// run starts a victim and returns what it prints. The victim is its own
// session, so that nothing it does meets a terminal of ours.
func run(t *testing.T, o order) (outcome, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	stdout, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok && len(e.Stderr) > 0 {
			err = fmt.Errorf("%w: %.400s", err, e.Stderr)
		}
		return outcome{}, err
	}
	var out outcome
	if err := json.Unmarshal(stdout, &out); err != nil {
		t.Fatalf("victim printed %q: %v", stdout, err)
	}
	return out, nil
}

func mustRun(t *testing.T, o order) outcome {
	t.Helper()
	out, err := run(t, o)
	if err != nil {
		t.Fatalf("victim failed: %v", err)
	}
	return out
}
