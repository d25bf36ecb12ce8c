// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import "errors"

// The kinds of failure, for errors.Is. In every one of them the program did
// not run.
var (
	// ErrUnsupported: this operating system has no backend, or none that can
	// do what is asked.
	ErrUnsupported = errors.New("no sandbox backend on this platform")
	// ErrConfine: the confinement could not be set up in full. Launchers exit
	// with status 70.
	ErrConfine = errors.New("confinement not set up")
	// ErrVerify: the confinement was set up and the kernel does not show it.
	// Launchers exit with status 70.
	ErrVerify = errors.New("confinement not verified")
	// ErrStart: the confinement holds and the program could not be started.
	// Launchers exit with status 71.
	ErrStart = errors.New("program not started")
)

// Exit statuses of launchers, as their callers know them.
const (
	ExitUsage   = 64 // the command line is wrong
	ExitConfine = 70 // the confinement could not be set up in full
	ExitStart   = 71 // the confinement holds, the program could not be started
)

// Error is the one type of error that plans return.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Capability is what could not be had, where one can be named.
	Capability Capability
	// Pos is where the policy asks for it.
	Pos string
	// Err says what happened.
	Err error
	// Remedy is what the operator can do.
	Remedy string
}

// Error returns position, kind and cause; the remedy is printed apart.
func (e *Error) Error() string {
	s := e.Kind.Error()
	if e.Capability != "" {
		s += ": " + string(e.Capability)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Pos != "" {
		s = e.Pos + ": " + s
	}
	return s
}

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Exit returns the launcher's exit status for err.
func Exit(err error) int {
	if errors.Is(err, ErrStart) {
		return ExitStart
	}
	return ExitConfine
}
