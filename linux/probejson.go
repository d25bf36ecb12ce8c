// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The probe and its children talk in JSON objects whose values are strings.
// The reader and writer here are those of RFC 8259 for that much of it;
// encoding/json would cost every start of the command.

// appendRecord appends an object; empty values are left out.
func appendRecord(b []byte, fields [][2]string) []byte {
	b = append(b, '{')
	first := true
	for _, f := range fields {
		if f[1] == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(append(appendString(b, f[0]), ':'), f[1])
	}
	return append(b, '}')
}

// appendString appends s quoted. Bytes that are no UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// scanner reads it again.
type scanner struct {
	text string
	at   int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %w", s.at, fmt.Errorf(format, args...))
}

// take reports whether the next byte is c, and passes it.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// end returns an error where text is left.
func (s *scanner) end() error {
	if s.at != len(s.text) {
		return s.errorf("text after the value")
	}
	return nil
}

// array calls element at the start of each element.
func (s *scanner) array(element func() error) error {
	if !s.take('[') {
		return s.errorf("want [")
	}
	if s.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.errorf("want , or ]")
		}
	}
}

// object calls member for each key and value; a key may come once.
func (s *scanner) object(member func(key, value string) error) error {
	if !s.take('{') {
		return s.errorf("want {")
	}
	if s.take('}') {
		return nil
	}
	var seen []string
	for {
		key, err := s.string()
		if err != nil {
			return err
		}
		if slices.Contains(seen, key) {
			return s.errorf("key %q twice", key)
		}
		seen = append(seen, key)
		if !s.take(':') {
			return s.errorf("want :")
		}
		value, err := s.string()
		if err != nil {
			return err
		}
		if err := member(key, value); err != nil {
			return s.errorf("%w", err)
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.errorf("want , or }")
		}
	}
}

// string reads a string of the escapes that appendString writes.
func (s *scanner) string() (string, error) {
	if !s.take('"') {
		return "", s.errorf(`want "`)
	}
	var b strings.Builder
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			if !utf8.ValidString(b.String()) {
				return "", s.errorf("no UTF-8")
			}
			return b.String(), nil
		case c < ' ':
			return "", s.errorf("a control character")
		case c != '\\':
			b.WriteByte(c)
		case s.take('"'):
			b.WriteByte('"')
		case s.take('\\'):
			b.WriteByte('\\')
		case s.take('u') && len(s.text)-s.at >= 4:
			n, err := strconv.ParseUint(s.text[s.at:s.at+4], 16, 16)
			if err != nil || n >= ' ' {
				return "", s.errorf("no escape of a control character")
			}
			s.at += 4
			b.WriteByte(byte(n))
		default:
			return "", s.errorf("no such escape")
		}
	}
	return "", s.errorf("a string without end")
}
