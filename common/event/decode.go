// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Parse reads one record from one line, with or without its newline. It
// refuses unknown and repeated fields, null, values of another type or out of
// range, text that is not UTF-8, and everything that Validate refuses. Errors
// about content match ErrInvalid.
func Parse(line []byte) (Event, error) {
	var e Event
	if len(line) > MaxLine {
		return e, ErrTooLong
	}
	if !utf8.Valid(line) {
		return e, invalid("", "not UTF-8")
	}
	d := parser{scanner{s: string(line)}}
	seq := false
	d.object("", func(name string) {
		seq = seq || name == "seq"
		d.event(&e, name)
	})
	if d.peek(); d.i < len(d.s) {
		d.fail("", "more text after the record")
	}
	if d.err == nil {
		d.err = e.Validate()
	}
	if !seq {
		d.fail("seq", "missing")
	}
	if d.err != nil {
		return Event{}, d.err
	}
	return e, nil
}

// A parser reads the fields of a record. The first error stays.
type parser struct{ scanner }

func (d *parser) event(e *Event, name string) {
	switch name {
	case "time":
		e.Time = d.time(name)
	case "type":
		e.Type = Type(d.some(name))
	case "seq":
		e.Seq = d.uint(name, 0, math.MaxUint64)
	case "node":
		e.Node = d.some(name)
	case "sandbox":
		e.Sandbox = d.some(name)
	case "module":
		e.Module = d.some(name)
	case "cgroup":
		e.Cgroup = d.some(name)
	case "cgroup_id":
		e.CgroupID = d.uint(name, 1, math.MaxUint64)
	case "pid":
		e.PID = uint32(d.uint(name, 1, math.MaxUint32))
	case "tid":
		e.TID = uint32(d.uint(name, 1, math.MaxUint32))
	case "ppid":
		e.PPID = uint32(d.uint(name, 1, math.MaxUint32))
	case "exe":
		e.Exe = d.some(name)
	case "comm":
		e.Comm = d.some(name)
	case "uid":
		e.UID = new(uint32(d.uint(name, 0, math.MaxUint32)))
	case "capability":
		e.Capability = Capability(d.some(name))
	case "target":
		e.Target = d.some(name)
	case "rule":
		e.Rule = d.some(name)
	case "enforcer":
		e.Enforcer = Enforcer(d.some(name))
	case "errno":
		e.Errno = d.some(name)
	case "count":
		e.Count = d.uint(name, 1, math.MaxUint64)
	case "where":
		e.Where = Where(d.some(name))
	case "since":
		e.Since = d.time(name)
	case "until":
		e.Until = d.time(name)
	case "detail":
		e.Detail = d.some(name)
	case "totals":
		e.Totals = d.totals(name)
	default:
		d.fail(name, "unknown field")
	}
}

// totalsFields are the members that are always written.
const totalsFields = 6

func (d *parser) totals(field string) *Totals {
	t := new(Totals)
	fixed := 0
	d.object(field, func(name string) {
		full := join(field, name)
		fixed++
		switch name {
		case "denied":
			t.Denied, fixed = d.counts(full), fixed-1
		case "would_deny":
			t.WouldDeny, fixed = d.counts(full), fixed-1
		case "lost":
			t.Lost = d.uint(full, 0, math.MaxUint64)
		case "exit":
			t.Exit = uint32(d.uint(full, 0, math.MaxUint32))
		case "oom":
			t.OOM = d.bool(full)
		case "wall_ns":
			t.Wall = time.Duration(d.uint(full, 0, math.MaxInt64))
		case "cpu_ns":
			t.CPU = time.Duration(d.uint(full, 0, math.MaxInt64))
		case "peak_bytes":
			t.Peak = d.uint(full, 0, math.MaxUint64)
		default:
			d.fail(full, "unknown field")
		}
	})
	if fixed != totalsFields {
		d.fail(field, "needs lost, exit, oom, wall_ns, cpu_ns and peak_bytes")
	}
	return t
}

func (d *parser) counts(field string) map[Capability]uint64 {
	m := make(map[Capability]uint64)
	d.object(field, func(name string) {
		m[Capability(name)] = d.uint(join(field, name), 0, math.MaxUint64)
	})
	return m
}

// some reads a string, which is never empty: an empty field is left out.
func (d *parser) some(field string) string {
	s := d.text(field, "not a string")
	if s == "" {
		d.fail(field, "empty")
	}
	return s
}

// time reads an RFC 3339 time. The zero time stands for none inside an Event
// and is therefore refused here.
func (d *parser) time(field string) time.Time {
	s := d.some(field)
	if d.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	switch {
	case err != nil:
		d.fail(field, strconv.Quote(s)+" is not an RFC 3339 time")
	case t.IsZero() || !yearFits(t):
		d.fail(field, strconv.Quote(s)+" is out of range")
	}
	return t.UTC()
}
