// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlReader builds nodes from the TOML parser's expressions and keeps the
// rules of TOML 1.0 about which table may be added to by what. A table's key
// is not written twice, whatever the spelling.
type tomlReader struct {
	*document
	p    unstable.Parser
	root *node
	cur  *node  // the table that key-value lines go to
	path string // its keys, for messages
	end  int    // offset behind the last value placed
}

// readTOML returns the document's root table.
func readTOML(d *document) (*node, error) {
	r := &tomlReader{document: d, root: &node{kind: kindTable}}
	r.cur = r.root
	r.p.Reset(d.data)
	for r.p.NextExpression() {
		e := r.p.Expression()
		var err error
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			err = r.header(e)
		case unstable.KeyValue:
			err = r.keyValue(r.cur, e, r.path, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := r.p.Error(); err != nil {
		return nil, r.syntax(err)
	}
	return r.root, nil
}

// syntax gives the parser's error its place.
func (r *tomlReader) syntax(err error) error {
	off, msg := r.end, err.Error()
	var pe *unstable.ParserError
	if errors.As(err, &pe) && pe.Highlight != nil {
		if o := cap(r.data) - cap(pe.Highlight); o >= 0 && o <= len(r.data) {
			off = o
		}
	}
	// The parser names the first byte of a character outside ASCII.
	if i := strings.Index(msg, " U+"); i >= 0 && off < len(r.data) && r.data[off] >= utf8.RuneSelf {
		c, _ := utf8.DecodeRune(r.data[off:])
		msg = fmt.Sprintf("%s %q%s", msg[:i], c, strings.TrimPrefix(msg[i:], fmt.Sprintf(" %#U", r.data[off])))
	}
	return r.err(off, "", "", "%s", msg)
}

// header opens [a.b] or [[a.b]].
func (r *tomlReader) header(e *unstable.Node) error {
	keys, err := r.keys(e)
	if err != nil {
		return err
	}
	r.end = keys[len(keys)-1].end
	at := r.root
	for i, k := range keys {
		m, last := at.get(k.text), i == len(keys)-1
		switch {
		case m == nil:
			n := &node{kind: kindTable, off: k.off, header: last}
			child := n
			if last && e.Kind == unstable.ArrayTable {
				child = &node{kind: kindArray, off: k.off, list: []*node{n}}
			}
			if err := r.add(at, member{k.text, k.off, child}); err != nil {
				return err
			}
			at = n
		case last && e.Kind == unstable.ArrayTable && m.value.kind == kindArray && !m.value.closed:
			n := &node{kind: kindTable, off: k.off, header: true}
			m.value.list = append(m.value.list, n)
			at = n
		case m.value.kind == kindArray && !m.value.closed && !last:
			at = m.value.list[len(m.value.list)-1]
		case m.value.kind != kindTable || m.value.closed || last && (m.value.header || m.value.dotted || e.Kind == unstable.ArrayTable):
			return r.twice("", keys[:i+1], m)
		default:
			at = m.value
			at.header = at.header || last
		}
	}
	r.cur, r.path = at, dotted("", keys)
	return nil
}

// keyValue adds "a.b = value" to the table at path.
func (r *tomlReader) keyValue(at *node, e *unstable.Node, path string, depth int) error {
	keys, err := r.keys(e)
	if err != nil {
		return err
	}
	last := len(keys) - 1
	for i, k := range keys[:last] {
		m := at.get(k.text)
		if m == nil {
			n := &node{kind: kindTable, off: k.off, dotted: true}
			if err := r.add(at, member{k.text, k.off, n}); err != nil {
				return err
			}
			at = n
			continue
		}
		if m.value.kind != kindTable || m.value.closed || !m.value.dotted {
			return r.twice(path, keys[:i+1], m)
		}
		at = m.value
	}
	k := keys[last]
	if m := at.get(k.text); m != nil {
		return r.twice(path, keys, m)
	}
	v, err := r.value(e.Value(), r.valueOffset(k.end), dotted(path, keys), depth)
	if err != nil {
		return err
	}
	return r.add(at, member{k.text, k.off, v})
}

// maxKeys bounds the keys of one table, far above what any table takes:
// finding a repeated key is a walk over them.
const maxKeys = 64

func (r *tomlReader) add(at *node, m member) error {
	if len(at.members) == maxKeys {
		return r.err(m.off, "", "", "more than %d keys in one table", maxKeys)
	}
	at.members = append(at.members, m)
	return nil
}

// value converts the value of the key at path, which starts at off, and leaves
// r.end behind it.
func (r *tomlReader) value(v *unstable.Node, off int, path string, depth int) (*node, error) {
	if depth == maxDepth {
		return nil, r.err(off, path, "", "nested deeper than %d levels", maxDepth)
	}
	n := &node{off: off}
	switch v.Kind {
	case unstable.Array:
		n.kind, n.closed = kindArray, true
		r.end = off + 1
		for it := v.Children(); it.Next(); {
			c, err := r.value(it.Node(), r.skip(r.end), index(path, len(n.list)), depth+1)
			if err != nil {
				return nil, err
			}
			n.list = append(n.list, c)
		}
		r.end = r.skip(r.end) + 1
		return n, nil
	case unstable.InlineTable:
		n.kind = kindTable
		r.end = off + 1
		for it := v.Children(); it.Next(); {
			if err := r.keyValue(n, it.Node(), path, depth+1); err != nil {
				return nil, err
			}
		}
		seal(n)
		r.end = r.skip(r.end) + 1
		return n, nil
	case unstable.String:
		n.kind, n.text = kindString, string(v.Data)
	case unstable.Bool:
		n.kind, n.truth = kindBool, string(v.Data) == "true"
	case unstable.Integer:
		n.kind, n.text = kindInt, strings.ReplaceAll(string(v.Data), "_", "")
	case unstable.Float:
		n.kind, n.text = kindFloat, strings.ReplaceAll(string(v.Data), "_", "")
	default:
		n.kind, n.text = kindOther, string(v.Data)
	}
	r.end = int(v.Raw.Offset + v.Raw.Length)
	return n, nil
}

// seal marks an inline table and the tables that dotted keys made in it.
func seal(n *node) {
	n.closed = true
	for _, m := range n.members {
		if m.value.kind == kindTable && !m.value.closed {
			seal(m.value)
		}
	}
}

// tomlKey is one part of a dotted key.
type tomlKey struct {
	text     string
	off, end int
}

func (r *tomlReader) keys(e *unstable.Node) ([]tomlKey, error) {
	var keys []tomlKey
	for it := e.Key(); it.Next(); {
		k := it.Node()
		off := int(k.Raw.Offset)
		if len(keys) == maxDepth {
			return nil, r.err(off, "", "", "nested deeper than %d levels", maxDepth)
		}
		keys = append(keys, tomlKey{string(k.Data), off, off + int(k.Raw.Length)})
	}
	return keys, nil
}

// valueOffset finds the value behind a key: the parser records no place for
// arrays.
func (r *tomlReader) valueOffset(off int) int {
	for off < len(r.data) && strings.IndexByte(" \t=", r.data[off]) >= 0 {
		off++
	}
	return off
}

// skip finds the next element or closing bracket behind an element.
func (r *tomlReader) skip(off int) int {
	for off < len(r.data) {
		switch r.data[off] {
		case ' ', '\t', '\r', '\n', ',':
			off++
		case '#':
			for off < len(r.data) && r.data[off] != '\n' {
				off++
			}
		default:
			return off
		}
	}
	return off
}

// dotted joins keys as a message names them.
func dotted(path string, keys []tomlKey) string {
	for _, k := range keys {
		path = join(path, k.text)
	}
	return path
}

func (r *tomlReader) twice(path string, keys []tomlKey, first *member) error {
	at := r.pos(first.off)
	return r.err(keys[len(keys)-1].off, dotted(path, keys), "keep one of the two",
		"the key is there already, at line %d", at.Line)
}
