// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

// Error says which step of setting up or using the programs failed. Err is
// usually a syscall.Errno; Hint is a remedy, or empty.
type Error struct {
	Step   string // what was being done, such as "load program"
	Object string // the program, map or path it was done to
	Err    error
	Hint   string
	// Log is the verifier's account of a program that did not load.
	Log string
}

func (e *Error) Error() string {
	s := e.Step
	if e.Object != "" {
		s += " " + e.Object
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
