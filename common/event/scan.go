// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner reads JSON (RFC 8259) piece by piece. encoding/json is not used:
// it takes repeated fields, it mends broken text without a word, and it adds
// to the start-up time of every program that links it. Once err is set, every
// method returns its zero value and stays where it is.
type scanner struct {
	s   string
	i   int
	err error
}

func (d *scanner) fail(field, msg string) {
	if d.err == nil {
		d.err = &FieldError{Field: field, Msg: msg}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *scanner) peek() byte {
	for d.i < len(d.s) {
		switch c := d.s[d.i]; c {
		case ' ', '\t', '\r', '\n':
			d.i++
		default:
			return c
		}
	}
	return 0
}

// next consumes c if it comes next.
func (d *scanner) next(c byte) bool {
	if d.err != nil || d.peek() != c || d.i == len(d.s) {
		return false
	}
	d.i++
	return true
}

// unexpected fails with what is there instead of what was wanted.
func (d *scanner) unexpected(field, msg string) {
	if d.peek(); d.i == len(d.s) {
		msg = "the record ends early"
	}
	d.fail(field, msg)
}

// object reads an object and calls member for each name, to read its value.
func (d *scanner) object(field string, member func(name string)) {
	if !d.next('{') {
		d.unexpected(field, "not an object")
		return
	}
	if d.next('}') {
		return
	}
	var seen []string // few: a list beats a map
	for {
		name := d.text(field, "not a field name")
		if name == "" {
			d.fail(field, "a field without a name")
		}
		for _, s := range seen {
			if s == name {
				d.fail(join(field, name), "field given twice")
			}
		}
		seen = append(seen, name)
		if !d.next(':') {
			d.unexpected(join(field, name), "no colon after the name")
		}
		if d.err == nil {
			member(name)
		}
		switch {
		case d.err != nil || d.next('}'):
			return
		case !d.next(','):
			d.unexpected(join(field, name), "neither comma nor brace after the value")
			return
		}
	}
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// text reads a string. other is the message when something else is there.
func (d *scanner) text(field, other string) string {
	if !d.next('"') {
		d.unexpected(field, other)
		return ""
	}
	var b []byte
	from := d.i // what is not yet in b
	for d.i < len(d.s) {
		switch c := d.s[d.i]; {
		case c == '"':
			d.i++
			if b == nil {
				return d.s[from : d.i-1]
			}
			return string(append(b, d.s[from:d.i-1]...))
		case c < 0x20:
			d.fail(field, "a control character in a string")
			return ""
		case c == '\\':
			b = append(b, d.s[from:d.i]...)
			r, ok := d.escape()
			if !ok {
				d.fail(field, "a bad escape in a string")
				return ""
			}
			b = utf8.AppendRune(b, r)
			from = d.i
		default:
			d.i++
		}
	}
	d.fail(field, "the record ends early")
	return ""
}

// escape reads one escape sequence; half a surrogate pair is none.
func (d *scanner) escape() (rune, bool) {
	if d.i+1 >= len(d.s) {
		return 0, false
	}
	c := d.s[d.i+1]
	if c == 'u' {
		r, ok := d.hex()
		if !ok || !utf16.IsSurrogate(r) {
			return r, ok
		}
		low, ok := d.hex()
		r = utf16.DecodeRune(r, low)
		return r, ok && r != utf8.RuneError
	}
	k := strings.IndexByte(`"\/bfnrt`, c)
	if k < 0 {
		return 0, false
	}
	d.i += 2
	return rune("\"\\/\b\f\n\r\t"[k]), true
}

// hex reads a \u and its four digits.
func (d *scanner) hex() (rune, bool) {
	if len(d.s)-d.i < 6 || d.s[d.i] != '\\' || d.s[d.i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(d.s[d.i+2 : d.i+6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	d.i += 6
	return r, true
}

// word reads a number or a literal: everything up to white space or
// punctuation. "" is something else, or the end.
func (d *scanner) word() string {
	if d.err != nil {
		return ""
	}
	d.peek()
	from := d.i
	for d.i < len(d.s) && !strings.ContainsRune(" \t\r\n,:{}[]\"", rune(d.s[d.i])) {
		d.i++
	}
	return d.s[from:d.i]
}

func (d *scanner) bool(field string) bool {
	w := d.word()
	if w != "true" && w != "false" {
		d.unexpectedWord(field, w, "not true or false")
	}
	return w == "true"
}

// uint reads a whole number from lo to hi, written in digits alone.
func (d *scanner) uint(field string, lo, hi uint64) uint64 {
	w := d.word()
	if w == "" || !strings.ContainsRune("-0123456789", rune(w[0])) {
		d.unexpectedWord(field, w, "not a number")
		return 0
	}
	v, err := strconv.ParseUint(w, 10, 64)
	if err != nil || v < lo || v > hi || len(w) > 1 && w[0] == '0' {
		d.fail(field, w+" is not a whole number from "+strconv.FormatUint(lo, 10)+" to "+strconv.FormatUint(hi, 10))
		return 0
	}
	return v
}

func (d *scanner) unexpectedWord(field, word, msg string) {
	if word == "" {
		d.unexpected(field, msg)
	} else {
		d.fail(field, msg)
	}
}
