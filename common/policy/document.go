// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// kind is the type of a value in a document.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindArray
	kindTable
	kindOther // dates and times
)

var kindNames = [...]string{"null", "a boolean", "an integer", "a decimal number", "a string", "a list", "a table", "a date or time"}

func (k kind) String() string { return kindNames[k] }

// kindName words a kind as the document's syntax does.
func (d *document) kindName(k kind) string {
	if d.json && k == kindTable {
		return "an object"
	}
	return k.String()
}

// node is a value of a JSON or TOML document, with its byte offset. Both
// syntaxes are read into it, so that one decoder serves both.
type node struct {
	kind    kind
	off     int
	text    string // a string's value, a number's or a date's spelling
	truth   bool
	list    []*node
	members []member

	// How a TOML table came to be, which decides what may still add to it.
	header bool // opened by [table]
	dotted bool // made by a dotted key
	closed bool // an inline table, or an array's own brackets
}

// member is one key of a table, in document order.
type member struct {
	key   string
	off   int
	value *node
}

func (n *node) get(key string) *member {
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

// document is the text that is being read, for positions and errors.
type document struct {
	name string
	data []byte
	// The last position asked for. Reading goes forward, so that the next one
	// is found from here and a document costs one pass.
	off, line, column int
	json              bool
}

// openDocument checks what needs no syntax: the size, the encoding.
func openDocument(name string, data []byte) (*document, error) {
	d := &document{name: name, data: data, line: 1, column: 1}
	if len(data) > MaxDocument {
		return nil, d.err(0, "", "split the policy, or grant a common parent directory",
			"the document is %d bytes long, the limit is %d", len(data), MaxDocument)
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, d.err(0, "", "save the file as UTF-8 without a byte order mark", "the document starts with a byte order mark")
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, d.err(i, "", "save the file as UTF-8", "byte 0x%02x is not valid UTF-8", data[i])
	}
	return d, nil
}

// invalidUTF8 returns the offset of the first byte that is none, or -1.
func invalidUTF8[T string | []byte](data T) int {
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(data[i:min(len(data), i+utf8.UTFMax)]))
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// position returns the line and the column, in runes, of a byte offset.
func (d *document) position(off int) (line, column int) {
	if off > len(d.data) {
		off = len(d.data)
	}
	if off < d.off {
		d.off, d.line, d.column = 0, 1, 1
	}
	for d.off < off {
		r, n := utf8.DecodeRune(d.data[d.off:])
		d.off += n
		if r == '\n' {
			d.line++
			d.column = 1
		} else {
			d.column++
		}
	}
	return d.line, d.column
}

func (d *document) pos(off int) Pos {
	line, column := d.position(off)
	return Pos{File: d.name, Line: line, Column: column}
}

func (d *document) err(off int, key, hint, format string, args ...any) *Error {
	line, column := d.position(off)
	return &Error{File: d.name, Line: line, Column: column, Key: key, Msg: message(format, args), Hint: clip(hint, maxQuoted)}
}

// message is Sprintf with long strings cut.
func message(format string, args []any) string {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = clip(s, maxQuoted)
		}
	}
	return fmt.Sprintf(format, args...)
}

// What a message repeats of a document, in bytes: of a value (every legal one
// but a path is shorter) and of a key.
const (
	maxQuoted = 1024
	maxKey    = 64
)

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	i := limit
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i] + "..."
}

// at gives an error of a string's own parser the place of that string.
func (d *document) at(off int, key string, err error) *Error {
	e, ok := err.(*Error)
	if !ok {
		return d.err(off, key, "", "%v", err)
	}
	return d.err(off, key, e.Hint, "%s", e.Msg)
}
