// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
)

// ReportSize is the size in bytes of what a child writes to its status pipe.
const ReportSize = 16

// Ready is the report that a list writes when the confinement holds and it
// waits at the gate: an op of a list, see [ReadyReport].
const readyIndex = ^uint64(0)

// ReadyReport returns the bytes that say "confined, waiting at the gate".
func ReadyReport() *Blob {
	b := make([]byte, ReportSize)
	binary.NativeEndian.PutUint64(b, readyIndex)
	return &Blob{Bytes: b, Text: `"ready"`}
}

// Report is what the child said: ready, or which call failed and how.
type Report struct {
	// Ready: the child waits at the gate.
	Ready bool
	// Index is the failed op's position in the list.
	Index int
	// Result is its raw result: a negative errno, or a wrong value.
	Result int64
}

// ErrReport is wrapped by errors for bytes that no list writes.
var ErrReport = errors.New("malformed report")

// ParseReport reads a report of exactly [ReportSize] bytes for a list of n
// ops.
func ParseReport(b []byte, n int) (Report, error) {
	if len(b) != ReportSize {
		return Report{}, fmt.Errorf("read report: %d bytes: %w", len(b), ErrReport)
	}
	idx := binary.NativeEndian.Uint64(b)
	if idx == readyIndex {
		return Report{Ready: true}, nil
	}
	const size = 80
	if idx%size != 0 || idx/size >= uint64(n) {
		return Report{}, fmt.Errorf("read report: offset %d: %w", idx, ErrReport)
	}
	return Report{Index: int(idx / size), Result: int64(binary.NativeEndian.Uint64(b[8:]))}, nil
}

// OpError says which system call of a launch failed. It unwraps to the errno.
type OpError struct {
	Op     Op
	Result int64
}

// Error names the step and the call with its arguments.
func (e *OpError) Error() string {
	if e.Result < 0 && e.Result >= -4095 {
		return fmt.Sprintf("%s: %s: %v", e.Op.Step, e.Op, syscall.Errno(-e.Result))
	}
	return fmt.Sprintf("%s: %s: answered %d", e.Op.Step, e.Op, e.Result)
}

// Unwrap returns the errno, or nil where the call answered a wrong value.
func (e *OpError) Unwrap() error {
	if e.Result < 0 && e.Result >= -4095 {
		return syscall.Errno(-e.Result)
	}
	return nil
}
