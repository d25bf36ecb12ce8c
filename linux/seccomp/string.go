// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"strconv"
	"strings"
)

// String returns "allow", the name of the error number, or "errno N".
func (a Action) String() string {
	switch {
	case a == Allow:
		return "allow"
	case a == Errno(EPERM):
		return "EPERM"
	case a == Errno(ENOSYS):
		return "ENOSYS"
	case a == Errno(EPROTONOSUPPORT):
		return "EPROTONOSUPPORT"
	case a == Errno(EOPNOTSUPP):
		return "EOPNOTSUPP"
	case a&^retData == retErrno:
		return "errno " + strconv.Itoa(int(a.Errno()))
	}
	return "action 0x" + strconv.FormatUint(uint64(a), 16)
}

// String returns the condition as a comparison; a mask is left out where it is
// that of a whole int.
func (c Cond) String() string {
	var b strings.Builder
	b.WriteString("arg")
	b.WriteString(strconv.Itoa(int(c.Arg)))
	if c.Mask != low32 {
		b.WriteString("&0x" + strconv.FormatUint(c.Mask, 16))
	}
	switch {
	case len(c.Values) == 1 && c.Not:
		b.WriteString(" != ")
	case len(c.Values) == 1:
		b.WriteString(" == ")
	case c.Not:
		b.WriteString(" not in ")
	default:
		b.WriteString(" in ")
	}
	for i, v := range c.Values {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString("0x" + strconv.FormatUint(v, 16))
	}
	return b.String()
}

// String returns the rule as "call(conditions): action  # reason".
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Call)
	for i, c := range r.When {
		if i == 0 {
			b.WriteByte('(')
		} else {
			b.WriteString(", ")
		}
		b.WriteString(c.String())
	}
	if len(r.When) > 0 {
		b.WriteByte(')')
	}
	return b.String() + ": " + r.Action.String() + "  # " + r.Reason
}

// String returns the program's text, the same for equal programs: a header, then
// one rule a line in the order in which they are tried.
func (p Program) String() string {
	var b strings.Builder
	b.WriteString("seccomp " + p.Arch.String())
	if p.Log {
		b.WriteString(" log")
	}
	b.WriteString("\n*other architecture: " + p.Foreign.String() + "  # its numbers mean other calls\n")
	if p.Arch == AMD64 {
		b.WriteString("*x32: " + p.X32.String() + "  # its numbers mean other calls\n")
	}
	b.WriteString("*unknown number: " + p.Unknown.String() + "  # newer than the table, or none\n")
	for _, r := range p.Rules {
		b.WriteString(r.String())
		b.WriteByte('\n')
	}
	b.WriteString("*otherwise: " + p.Default.String() + "  # the layers below decide\n")
	return b.String()
}
