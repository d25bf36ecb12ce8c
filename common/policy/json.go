// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting in a document. No key needs more than four levels.
const maxDepth = 32

// jsonReader reads JSON (RFC 8259) into nodes. The standard library's decoder
// is not used: it is silent about repeated keys, replaces broken surrogates,
// compares keys without case, knows no positions of values, and costs the
// launcher start-up time.
type jsonReader struct {
	*document
	i     int
	depth int
}

// readJSON returns the document's one value.
func readJSON(d *document) (*node, error) {
	d.json = true
	r := &jsonReader{document: d}
	r.space()
	if r.i == len(r.data) {
		return nil, r.fail("the document is empty")
	}
	n, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.space(); r.i < len(r.data) {
		return nil, r.fail("text after the end of the document")
	}
	return n, nil
}

func (r *jsonReader) fail(format string, args ...any) error {
	return r.err(r.i, "", "", format, args...)
}

func (r *jsonReader) space() {
	for r.i < len(r.data) {
		switch r.data[r.i] {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end: no value starts with NUL.
func (r *jsonReader) peek() byte {
	if r.i < len(r.data) {
		return r.data[r.i]
	}
	return 0
}

func (r *jsonReader) unexpected(want string) error {
	if r.i >= len(r.data) {
		return r.fail("the document ends where %s is expected", want)
	}
	c, _ := utf8.DecodeRune(r.data[r.i:])
	return r.fail("unexpected %q, %s is expected", c, want)
}

func (r *jsonReader) value() (*node, error) {
	start := r.i
	switch c := r.peek(); {
	case c == '{':
		return r.nested(r.object)
	case c == '[':
		return r.nested(r.array)
	case c == '"':
		s, err := r.text()
		return &node{kind: kindString, off: start, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	case r.word("true"):
		return &node{kind: kindBool, off: start, truth: true}, nil
	case r.word("false"):
		return &node{kind: kindBool, off: start}, nil
	case r.word("null"):
		return &node{kind: kindNull, off: start}, nil
	}
	return nil, r.unexpected("a value")
}

func (r *jsonReader) word(w string) bool {
	if !strings.HasPrefix(string(r.data[r.i:min(len(r.data), r.i+len(w))]), w) {
		return false
	}
	r.i += len(w)
	return true
}

func (r *jsonReader) nested(read func(*node) error) (*node, error) {
	if r.depth == maxDepth {
		return nil, r.fail("nested deeper than %d levels", maxDepth)
	}
	n := &node{off: r.i}
	r.depth++
	r.i++
	err := read(n)
	r.depth--
	return n, err
}

func (r *jsonReader) object(n *node) error {
	n.kind = kindTable
	for first := true; ; first = false {
		r.space()
		if first && r.peek() == '}' {
			r.i++
			return nil
		}
		m := member{off: r.i}
		if r.peek() != '"' {
			return r.unexpected("a key in double quotes")
		}
		var err error
		if m.key, err = r.text(); err != nil {
			return err
		}
		if r.space(); r.peek() != ':' {
			return r.unexpected("':'")
		}
		r.i++
		r.space()
		if m.value, err = r.value(); err != nil {
			return err
		}
		n.members = append(n.members, m)
		r.space()
		switch r.peek() {
		case ',':
			r.i++
		case '}':
			r.i++
			return nil
		default:
			return r.unexpected("',' or '}'")
		}
	}
}

func (r *jsonReader) array(n *node) error {
	n.kind = kindArray
	for first := true; ; first = false {
		r.space()
		if first && r.peek() == ']' {
			r.i++
			return nil
		}
		v, err := r.value()
		if err != nil {
			return err
		}
		n.list = append(n.list, v)
		r.space()
		switch r.peek() {
		case ',':
			r.i++
		case ']':
			r.i++
			return nil
		default:
			return r.unexpected("',' or ']'")
		}
	}
}

func (r *jsonReader) number() (*node, error) {
	n := &node{kind: kindInt, off: r.i}
	if r.peek() == '-' {
		r.i++
	}
	leadingZero := r.peek() == '0'
	if digits := r.digits(); digits == 0 {
		return nil, r.unexpected("a digit")
	} else if leadingZero && digits > 1 {
		r.i = n.off
		return nil, r.fail("a number has no leading zero")
	}
	if r.peek() == '.' {
		n.kind = kindFloat
		r.i++
		if r.digits() == 0 {
			return nil, r.unexpected("a digit")
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		n.kind = kindFloat
		r.i++
		if c := r.peek(); c == '+' || c == '-' {
			r.i++
		}
		if r.digits() == 0 {
			return nil, r.unexpected("a digit")
		}
	}
	n.text = string(r.data[n.off:r.i])
	return n, nil
}

func (r *jsonReader) digits() int {
	start := r.i
	for c := r.peek(); c >= '0' && c <= '9'; c = r.peek() {
		r.i++
	}
	return r.i - start
}

// text reads a string. The document is known to be valid UTF-8.
func (r *jsonReader) text() (string, error) {
	r.i++
	start := r.i
	var b []byte // what precedes start, where there were escapes
	for {
		switch c := r.peek(); {
		case r.i >= len(r.data):
			return "", r.fail("the document ends inside a string")
		case c == '"':
			b = append(b, r.data[start:r.i]...)
			r.i++
			return string(b), nil
		case c < 0x20:
			return "", r.fail("control character 0x%02x in a string", c)
		case c != '\\':
			r.i++
		default:
			b = append(b, r.data[start:r.i]...)
			c, err := r.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, c)
			start = r.i
		}
	}
}

// escape reads one escaped character, a surrogate pair as one.
func (r *jsonReader) escape() (rune, error) {
	start := r.i
	r.i++
	c := r.peek()
	r.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		c, ok := r.hex4()
		if ok && utf16.IsSurrogate(c) {
			if r.peek() == '\\' && r.i+1 < len(r.data) && r.data[r.i+1] == 'u' {
				r.i += 2
				var low rune
				low, ok = r.hex4()
				c = utf16.DecodeRune(c, low)
			}
			if utf16.IsSurrogate(c) || c == utf8.RuneError {
				ok = false
			}
		}
		if ok {
			return c, nil
		}
	}
	r.i = start
	return 0, r.fail("invalid escape in a string")
}

func (r *jsonReader) hex4() (rune, bool) {
	if r.i+4 > len(r.data) {
		return 0, false
	}
	var v rune
	for _, c := range r.data[r.i : r.i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	r.i += 4
	return v, true
}
