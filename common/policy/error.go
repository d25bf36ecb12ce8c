// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strconv"
	"strings"
)

// ErrInvalid is what every error of this package is, by errors.Is.
var ErrInvalid = errors.New("invalid policy")

// Error is a fault in a policy: where it is, what it is, and what would mend
// it. Every parser of this package returns this type.
type Error struct {
	// File is the document's name as given to the parser; empty for a string
	// that came from a flag.
	File string
	// Line and Column say where, in lines and runes from 1. For a string from
	// a flag the line is 1.
	Line, Column int
	// Key is the dotted key at fault, as "sandbox.net.mode" or "rw[3]"; empty
	// where the document as a whole is at fault.
	Key string
	// Msg says what is wrong.
	Msg string
	// Hint says what to write instead; it may be empty.
	Hint string
}

// Error returns "file:line:column: key: message", without the parts that are
// empty. The hint is not part of it.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(position(e.File, e.Line, e.Column))
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Is reports whether target is ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Pos says where a part of a policy was written: in a file, or in a flag.
type Pos struct {
	// File is the document's name; Line and Column count from 1, columns in
	// runes. A zero Line means that the position is not known.
	File         string
	Line, Column int
	// Flag is the flag with its value, as typed: "--rw ./x". Where it is set
	// the other fields are not.
	Flag string
}

// String returns "policy.toml:12:3", the flag, or "" where nothing is known.
func (p Pos) String() string {
	switch {
	case p.Flag != "":
		return p.Flag
	case p.Line == 0:
		return p.File
	}
	return position(p.File, p.Line, p.Column)
}

func position(file string, line, column int) string {
	return file + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(column)
}
