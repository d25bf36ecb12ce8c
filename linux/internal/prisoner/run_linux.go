// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// act does one thing and says what it saw, or why it failed. args are the
// words after its name.
type act func(args []string) (saw string, err error)

// acts are filled by the files of this package, one subject each.
var acts = map[string]act{}

func register(more map[string]act) {
	for name, a := range more {
		if acts[name] != nil {
			panic("act " + name + " is registered twice")
		}
		acts[name] = a
	}
}

// run carries out the acts of a file, or plays a part in one of them.
func run(args []string) int {
	// Ids, filters and signals belong to threads: all acts are one thread's.
	runtime.LockOSThread()
	if len(args) == 3 && args[1] == "child" {
		return child(args[2])
	}
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prisoner ACTS.json")
		return 2
	}
	b, err := os.ReadFile(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prisoner: read acts:", err)
		return 2
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		fmt.Fprintln(os.Stderr, "prisoner: decode acts:", err)
		return 2
	}
	outcomes := make([]string, len(list))
	for i, line := range list {
		outcomes[i] = try(line)
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		fmt.Fprintln(os.Stderr, "prisoner: print outcomes:", err)
		return 2
	}
	return 0
}

// try carries out one act. A mistake of the table ends as an outcome that no
// table expects.
func try(line string) (outcome string) {
	defer func() {
		if r := recover(); r != nil {
			outcome = fmt.Sprint("panic: ", r)
		}
	}()
	words := strings.Fields(strings.ReplaceAll(line, "LEAF", leaf()))
	a := acts[words[0]]
	if a == nil {
		return "no such act"
	}
	saw, err := a(words[1:])
	return judge(saw, err)
}

// leaf is this process's place in the version 2 cgroup hierarchy (cgroups(7)).
func leaf() string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(p)
		}
	}
	return ""
}

// judge turns what an act returned into an outcome.
func judge(saw string, err error) string {
	step := ""
	if s, ok := err.(*stepError); ok {
		step, err = " at "+s.step, s.err
	}
	e, ok := err.(unix.Errno)
	switch {
	case err == nil && saw != "":
		return saw
	case err == nil || ok && e == 0:
		return "allowed"
	case !ok:
		return "error: " + err.Error()
	}
	kind := "allowed "
	switch e {
	case unix.EPERM, unix.EACCES, unix.EROFS, unix.EXDEV, unix.EBUSY, unix.EOVERFLOW:
		kind = "denied "
	case unix.ENOENT, unix.ENOSYS, unix.ESRCH, unix.ENODEV, unix.ENXIO, unix.EAFNOSUPPORT,
		unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENOPROTOOPT, unix.ECHILD:
		kind = "absent "
	}
	return kind + unix.ErrnoName(e) + step
}

// stepError is an error of a step before the act itself.
type stepError struct {
	step string
	err  error
}

func (s *stepError) Error() string { return s.step + ": " + s.err.Error() }

// at names the step that err comes from.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step, err}
}
