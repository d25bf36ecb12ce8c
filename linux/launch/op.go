// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Op is one system call of a launch: what is called, with what, and which
// answer lets the launch go on.
type Op struct {
	// Call names the system call.
	Call Call
	// Args are the arguments; those beyond what the call takes are absent.
	Args []Arg
	// Save receives the result, for later calls of the list. Nil: dropped.
	Save *Slot
	// Want says which results let the list go on.
	Want Want
	// Step names the mechanism that the call belongs to ("view", "identity",
	// "landlock", ...). It appears in errors and in the printed list.
	Step string
	// Note says why, for a reader of the printed list.
	Note string
}

// Want is the condition on an op's result.
type Want struct {
	kind wantKind
	// value is the exact raw result (a negative errno for a refusal).
	value int64
}

type wantKind uint8

const (
	wantSuccess wantKind = iota // any result that is not an error
	wantAny                     // whatever it answers
	wantExact                   // exactly value
)

// Succeed accepts every result that is not an error. It is the zero Want.
func Succeed() Want { return Want{} }

// Any accepts every result, errors too: the call is made for its effect where
// it has one.
func Any() Want { return Want{kind: wantAny} }

// Exactly accepts the one raw result v. A negative v is an errno: a probe that
// must be refused, with that errno.
func Exactly(v int64) Want { return Want{kind: wantExact, value: v} }

// Slot holds the result of one op for later ones, a new descriptor most often.
type Slot struct {
	name string
	blob *Blob
	off  int
}

// NewSlot returns a slot that prints as $name.
func NewSlot(name string) *Slot {
	return &Slot{name: name, blob: &Blob{Bytes: make([]byte, 8)}}
}

// NewSlotIn returns a slot whose eight bytes lie inside b at byte offset off:
// the result is written straight into a structure that a later call reads.
func NewSlotIn(name string, b *Blob, off int) *Slot {
	return &Slot{name: name, blob: b, off: off}
}

// Name returns the slot's name.
func (s *Slot) Name() string { return s.name }

// Blob is a block of memory that calls read or write, with its printed form.
type Blob struct {
	Bytes []byte
	Text  string

	// vector holds, for a NULL-terminated array of strings (argv, envp), the
	// offset in Bytes of each string; the array of addresses stands at 0.
	vector []int
	// handles are descriptors of the parent's inside the structure.
	handles []blobHandle
	// addresses are those of other blocks.
	addresses []blobAddress
}

type blobAddress struct {
	off int
	to  *Blob
}

// PutAddress has the address of another block stored in b at off when the
// list is assembled.
func (b *Blob) PutAddress(off int, to *Blob) {
	b.addresses = append(b.addresses, blobAddress{off, to})
}

type blobHandle struct {
	off  int
	name string
}

// PutHandle has the named handle's descriptor stored in b as 64 bits at off
// when the list is assembled.
func (b *Blob) PutHandle(off int, name string) {
	b.handles = append(b.handles, blobHandle{off, name})
}

// Vector returns the memory of a NULL-terminated array of strings, as execve
// takes for arguments and environment. text is its printed form.
func Vector(text string, list []string) *Blob {
	head := 8 * (len(list) + 1)
	b := &Blob{Bytes: make([]byte, head), Text: text, vector: make([]int, len(list))}
	for i, s := range list {
		b.vector[i] = len(b.Bytes)
		b.Bytes = append(append(b.Bytes, s...), 0)
	}
	return b
}

// Arg is one argument of an op.
type Arg struct {
	kind   argKind
	num    uint64
	blob   *Blob
	slot   *Slot
	handle string
	text   string
}

type argKind uint8

const (
	argNumber argKind = iota
	argBlob
	argSlot
	argHandle
)

// Num is a plain number that prints in decimal.
func Num(n int64) Arg { return Arg{num: uint64(n), text: strconv.FormatInt(n, 10)} }

// Named is a number that prints as text, for constants and flags.
func Named(n uint64, text string) Arg { return Arg{num: n, text: text} }

// Ptr is the address of b.
func Ptr(b *Blob) Arg { return Arg{kind: argBlob, blob: b, text: b.Text} }

// Str is the address of s with a terminating NUL.
func Str(s string) Arg {
	return Arg{kind: argBlob, blob: &Blob{Bytes: append([]byte(s), 0)}, text: strconv.Quote(s)}
}

// From is the result that an earlier op saved in s.
func From(s *Slot) Arg { return Arg{kind: argSlot, slot: s, text: "$" + s.name} }

// Handle is a descriptor of the parent's, given by name when the list is
// assembled, so that the list itself holds no numbers that differ from run to
// run.
func Handle(name string) Arg { return Arg{kind: argHandle, handle: name, text: "@" + name} }

// List is a launch: the calls in their order.
type List []Op

// Add appends ops that belong to one step.
func (l *List) Add(step string, ops ...Op) {
	for _, o := range ops {
		o.Step = step
		*l = append(*l, o)
	}
}

// Index returns the position of the first op of a step, or -1.
func (l List) Index(step string) int {
	for i, o := range l {
		if o.Step == step {
			return i
		}
	}
	return -1
}

// String prints the list, one call per line: the step, the call as strace
// would show it, what answer it needs if that is not plain success, and why.
func (l List) String() string {
	var b strings.Builder
	for _, o := range l {
		fmt.Fprintf(&b, "%-10s %s", o.Step, o)
		if o.Note != "" {
			b.WriteString("  # " + o.Note)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String prints the call without its step and note.
func (o Op) String() string {
	var b strings.Builder
	b.WriteString(o.Call.String())
	b.WriteByte('(')
	for i, a := range o.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.text)
	}
	b.WriteByte(')')
	if o.Save != nil {
		b.WriteString(" = $" + o.Save.name)
	}
	switch o.Want.kind {
	case wantAny:
		b.WriteString(" (any answer)")
	case wantExact:
		b.WriteString(" must be " + strconv.FormatInt(o.Want.value, 10))
	}
	return b.String()
}
