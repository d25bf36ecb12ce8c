// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxLine is the longest line, newline included, that is written or read. A
// record whose every path has the kernel's longest (4,096 bytes) and worst
// bytes still fits.
const MaxLine = 256 << 10

// ErrTooLong is the error for a line over MaxLine.
var ErrTooLong = errors.New("line over 262144 bytes")

// timeFormat is RFC 3339 with all nine digits, which time.RFC3339Nano drops.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// An Encoder writes records, one line and one Write each: lines of several
// writers that share a pipe or an appended file do not mix below PIPE_BUF.
// It may not be used by two goroutines at once.
type Encoder struct {
	w   io.Writer
	buf []byte
}

// NewEncoder returns an Encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// Encode writes e. It refuses what Reader would not read: an error that
// matches ErrInvalid or ErrTooLong means that nothing was written.
func (enc *Encoder) Encode(e *Event) error {
	if err := e.Validate(); err != nil {
		return err
	}
	enc.buf = append(e.AppendJSON(enc.buf[:0]), '\n')
	if len(enc.buf) > MaxLine {
		return ErrTooLong
	}
	_, err := enc.w.Write(enc.buf)
	return err
}

// AppendJSON appends e as one JSON object without a newline. Fields keep the
// order of the struct. It does not validate.
//
// Bytes that are not UTF-8 become U+FFFD, and control and text-direction
// characters are escaped: printing a record can neither drive a terminal nor
// reorder the line.
func (e *Event) AppendJSON(b []byte) []byte {
	w := writer{append(b, '{')}
	w.time("time", e.Time)
	w.text("type", string(e.Type))
	w.uint("seq", e.Seq)
	w.some("node", e.Node)
	w.some("sandbox", e.Sandbox)
	w.some("module", e.Module)
	w.some("cgroup", e.Cgroup)
	w.positive("cgroup_id", e.CgroupID)
	w.positive("pid", uint64(e.PID))
	w.positive("tid", uint64(e.TID))
	w.positive("ppid", uint64(e.PPID))
	w.some("exe", e.Exe)
	w.some("comm", e.Comm)
	if e.UID != nil {
		w.uint("uid", uint64(*e.UID))
	}
	w.some("capability", string(e.Capability))
	w.some("target", e.Target)
	w.some("rule", e.Rule)
	w.some("enforcer", string(e.Enforcer))
	w.some("errno", e.Errno)
	w.positive("count", e.N())
	w.some("where", string(e.Where))
	w.someTime("since", e.Since)
	w.someTime("until", e.Until)
	w.some("detail", e.Detail)
	if e.Totals != nil {
		w.key("totals")
		w.totals(e.Totals)
	}
	return append(w.b, '}')
}

// A writer appends the members of an object.
type writer struct{ b []byte }

func (w *writer) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) text(name, v string) {
	w.key(name)
	w.b = appendString(w.b, v)
}

func (w *writer) some(name, v string) {
	if v != "" {
		w.text(name, v)
	}
}

func (w *writer) uint(name string, v uint64) {
	w.key(name)
	w.b = strconv.AppendUint(w.b, v, 10)
}

func (w *writer) positive(name string, v uint64) {
	if v != 0 {
		w.uint(name, v)
	}
}

func (w *writer) time(name string, t time.Time) {
	w.key(name)
	w.b = append(w.b, '"')
	w.b = t.UTC().AppendFormat(w.b, timeFormat)
	w.b = append(w.b, '"')
}

func (w *writer) someTime(name string, t time.Time) {
	if !t.IsZero() {
		w.time(name, t)
	}
}

func (w *writer) totals(t *Totals) {
	w.b = append(w.b, '{')
	w.counts("denied", t.Denied)
	w.counts("would_deny", t.WouldDeny)
	w.uint("lost", t.Lost)
	w.uint("exit", uint64(t.Exit))
	w.key("oom")
	w.b = strconv.AppendBool(w.b, t.OOM)
	w.key("wall_ns")
	w.b = strconv.AppendInt(w.b, int64(t.Wall), 10)
	w.key("cpu_ns")
	w.b = strconv.AppendInt(w.b, int64(t.CPU), 10)
	w.uint("peak_bytes", t.Peak)
	w.b = append(w.b, '}')
}

func (w *writer) counts(name string, m map[Capability]uint64) {
	if len(m) == 0 {
		return
	}
	caps := make([]Capability, 0, len(m))
	for c := range m {
		caps = append(caps, c)
	}
	slices.Sort(caps)
	w.key(name)
	w.b = append(w.b, '{')
	for _, c := range caps {
		w.uint(string(c), m[c])
	}
	w.b = append(w.b, '}')
}

const hex = "0123456789abcdef"

// appendString appends s as a JSON string (RFC 8259 section 7).
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(b, `\ufffd`...)
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case unsafeRune(r): // all lie in the basic plane: one escape is enough
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return append(b, '"')
}

// unsafeRune says whether printing r can do more than show a character: the
// C0 and C1 controls, line and paragraph separators, and the marks that change
// the direction of text (Unicode Standard Annex 9).
func unsafeRune(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f:
		return true
	case r == 0x061c, 0x200e <= r && r <= 0x200f:
		return true
	case 0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return true
	}
	return false
}
