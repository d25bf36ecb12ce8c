// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"strconv"
	"time"
)

// ErrInvalid is what every error about a record's content matches.
var ErrInvalid = errors.New("invalid event")

// A FieldError is a field that is missing, misplaced or malformed.
type FieldError struct {
	Field string // the JSON name, "" for the record as a whole
	Msg   string
}

// Error returns "field: message".
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return e.Field + ": " + e.Msg
}

// Is reports that every FieldError is an ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, msg string) error { return &FieldError{Field: field, Msg: msg} }

func unknown(field, what, name string) error {
	return invalid(field, "unknown "+what+" "+strconv.Quote(name))
}

// foreign is the error for a field of another type's records.
func foreign(field string, t Type) error {
	return invalid(field, "not part of a record of type "+strconv.Quote(string(t)))
}

// Validate says what makes e not a record: a type, capability, enforcer or
// stage that does not exist, a field that its type needs, or one that belongs
// to another type. Errors are *FieldError.
func (e *Event) Validate() error {
	switch {
	case e.Time.IsZero():
		return invalid("time", "missing")
	case !e.Type.Valid():
		return unknown("type", "type", string(e.Type))
	case !yearFits(e.Time):
		return invalid("time", "year outside 0-9999")
	case !yearFits(e.Since):
		return invalid("since", "year outside 0-9999")
	case !yearFits(e.Until):
		return invalid("until", "year outside 0-9999")
	}
	if err := e.validateRefusal(); err != nil {
		return err
	}
	return e.validateLife()
}

// validateRefusal checks the fields that only refusals carry.
func (e *Event) validateRefusal() error {
	if e.Type.refusal() {
		switch {
		case !e.Capability.Valid():
			return unknown("capability", "capability", string(e.Capability))
		case !e.Enforcer.Valid():
			return unknown("enforcer", "enforcer", string(e.Enforcer))
		}
		return nil
	}
	for _, f := range [...]struct{ name, value string }{
		{"capability", string(e.Capability)},
		{"target", e.Target},
		{"rule", e.Rule},
		{"enforcer", string(e.Enforcer)},
		{"errno", e.Errno},
	} {
		if f.value != "" {
			return foreign(f.name, e.Type)
		}
	}
	return nil
}

// validateLife checks the fields of lost, gap and ended, and that no other
// type carries them.
func (e *Event) validateLife() error {
	lost, gap := e.Type == Lost, e.Type == Gap
	switch {
	case lost && !e.Where.Valid():
		return unknown("where", "stage", string(e.Where))
	case !lost && e.Where != "":
		return foreign("where", e.Type)
	case lost && e.Count == 0:
		return invalid("count", "missing")
	case !lost && !e.Type.refusal() && e.Count != 0:
		return foreign("count", e.Type)
	case (lost || gap) && e.Since.IsZero():
		return invalid("since", "missing")
	case !lost && !gap && !e.Since.IsZero():
		return foreign("since", e.Type)
	case gap && e.Until.IsZero():
		return invalid("until", "missing")
	case !gap && !e.Until.IsZero():
		return foreign("until", e.Type)
	case gap && e.Until.Before(e.Since):
		return invalid("until", "before since")
	case e.Type == Ended && e.Totals == nil:
		return invalid("totals", "missing")
	case e.Type != Ended && e.Totals != nil:
		return foreign("totals", e.Type)
	}
	if e.Totals != nil {
		return e.Totals.validate()
	}
	return nil
}

func (t *Totals) validate() error {
	for _, m := range [...]struct {
		name  string
		count map[Capability]uint64
	}{{"totals.denied", t.Denied}, {"totals.would_deny", t.WouldDeny}} {
		for c := range m.count {
			if !c.Valid() {
				return unknown(m.name, "capability", string(c))
			}
		}
	}
	if t.Wall < 0 {
		return invalid("totals.wall_ns", "negative")
	}
	if t.CPU < 0 {
		return invalid("totals.cpu_ns", "negative")
	}
	return nil
}

// yearFits says whether RFC 3339 (four digits of year) can write t in UTC.
func yearFits(t time.Time) bool {
	y := t.UTC().Year()
	return 0 <= y && y <= 9999
}
