// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"
)

// field is a key of a table and what reads its value. The tables of fields
// below are what the documents may hold; nothing else is looked at.
type field struct {
	name string
	read func(n *node, key string) error
}

// table reads n by its fields, in the document's order. The keys get prefix
// and a dot before them in messages.
func (d *document) table(n *node, key string, fields []field) error {
	if n.kind != kindTable {
		return d.wrong(n, key, kindTable)
	}
	for i := range n.members {
		m := &n.members[i]
		k := join(key, m.key)
		f := find(fields, m.key)
		if f == nil {
			return d.err(m.off, k, "the keys here are: "+names(fields), "unknown key")
		}
		if first := n.get(m.key); first != m {
			at := d.pos(first.off)
			return d.err(m.off, k, "keep one of the two", "the key is there already, at line %d", at.Line)
		}
		if err := f.read(m.value, k); err != nil {
			return err
		}
	}
	return nil
}

// join adds a key to a dotted one. Whatever a document holds is printable then.
func join(prefix, key string) string {
	key = quote(clip(key, maxKey))
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func index(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func names(fields []field) string {
	s := make([]string, len(fields))
	for i, f := range fields {
		s[i] = f.name
	}
	return strings.Join(s, ", ")
}

// wrong reports a value of another type than want.
func (d *document) wrong(n *node, key string, want kind) *Error {
	return d.err(n.off, key, "", "%s is expected, not %s", d.kindName(want), d.kindName(n.kind))
}

// list calls read for each element.
func (d *document) list(n *node, key string, read func(n *node, key string) error) error {
	if n.kind != kindArray {
		return d.wrong(n, key, kindArray)
	}
	for i, e := range n.list {
		if err := read(e, index(key, i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) str(n *node, key string) (string, error) {
	if n.kind != kindString {
		return "", d.wrong(n, key, kindString)
	}
	return n.text, nil
}

// choice reads a string that must be one of the values.
func (d *document) choice(n *node, key string, values ...string) (int, error) {
	s, err := d.str(n, key)
	if err != nil {
		return 0, err
	}
	for i, v := range values {
		if s == v {
			return i, nil
		}
	}
	return 0, d.err(n.off, key, "the values are: "+strings.Join(values, ", "), "unknown value %q", s)
}

func (d *document) boolean(n *node, key string) (bool, error) {
	if n.kind != kindBool {
		return false, d.wrong(n, key, kindBool)
	}
	return n.truth, nil
}

// integer reads a whole number in a closed range.
func (d *document) integer(n *node, key string, lo, hi uint64) (uint64, error) {
	if n.kind != kindInt {
		return 0, d.wrong(n, key, kindInt)
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(n.text, "+"), 0, 64)
	if err != nil || v < lo || v > hi {
		return 0, d.err(n.off, key, "", "%s is out of range, %d to %d are possible", n.text, lo, hi)
	}
	return v, nil
}

// decimal reads a positive number, whole or not, from lo to hi, and returns it
// times scale, rounded to the nearest whole number.
func (d *document) decimal(n *node, key string, scale, lo, hi float64) (uint64, error) {
	if n.kind != kindInt && n.kind != kindFloat {
		return 0, d.err(n.off, key, "", "a positive number is expected, not %s", n.kind)
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind == kindInt && err != nil { // 0b1 and its like
		var u uint64
		u, err = strconv.ParseUint(n.text, 0, 64)
		v = float64(u)
	}
	// Written so that NaN fails.
	if err != nil || !(v >= lo && v <= hi) {
		return 0, d.err(n.off, key, "", "%s is out of range, %s to %s are possible", n.text, number(lo), number(hi))
	}
	return uint64(v*scale + 0.5), nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// rootPath reads the path of a granted root.
func (d *document) rootPath(n *node, key string) (Path, error) {
	s, err := d.str(n, key)
	if err != nil {
		return Path{}, err
	}
	p, perr := cleanPath(hostStyle(), s)
	if perr != nil {
		return Path{}, d.at(n.off, key, perr)
	}
	return Path{p, d.pos(n.off)}, nil
}

// rootPaths reads a list of roots; a repeated one is kept once.
func (d *document) rootPaths(n *node, key string, to *[]Path) error {
	seen := make(map[string]bool, len(n.list))
	return d.list(n, key, func(n *node, key string) error {
		p, err := d.rootPath(n, key)
		if err == nil && !seen[p.Path] {
			seen[p.Path] = true
			*to = append(*to, p)
		}
		return err
	})
}
