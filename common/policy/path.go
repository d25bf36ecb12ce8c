// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"
	"runtime"
	"strings"
	"unicode/utf8"
)

// maxPath is the longest path in bytes: Linux's PATH_MAX without the NUL.
const maxPath = 4095

// style is the syntax of paths. Documents use that of the host which reads
// them; both are tried on every host by the tests.
type style uint8

const (
	posix style = iota
	windows
)

func hostStyle() style {
	if runtime.GOOS == "windows" {
		return windows
	}
	return posix
}

// stringError is the error of a parser that sees one string alone: the
// column is that of the byte at offset off.
func stringError(s string, off int, hint, format string, args ...any) *Error {
	off = min(max(off, 0), len(s))
	return &Error{Line: 1, Column: utf8.RuneCountInString(s[:off]) + 1, Msg: message(format, args), Hint: clip(hint, maxQuoted)}
}

// CleanPath checks the path of a root as a document must give it and returns
// its clean form: absolute, not the root directory itself, no "..", no NUL or
// line break; repeated and trailing slashes and "." are dropped. The error is
// an *Error.
func CleanPath(s string) (string, error) {
	p, err := cleanPath(hostStyle(), s)
	if err != nil {
		return "", err
	}
	return p, nil
}

// checkPath holds what is refused in every path, of whatever use.
func checkPath(st style, s string) *Error {
	switch i := strings.IndexAny(s, "\x00\n"); {
	case s == "":
		return stringError(s, 0, "name a path, or leave the entry out", "empty path")
	case i >= 0 && s[i] == 0:
		return stringError(s, i, "", "path %q holds a NUL", s)
	case i >= 0:
		return stringError(s, i, "", "path %q holds a line break", s)
	case !utf8.ValidString(s):
		return stringError(s, 0, "", "path %q is not valid UTF-8", s)
	case len(s) > maxPath:
		return stringError(s, maxPath, "", "path is %d bytes long, the limit is %d", len(s), maxPath)
	case !isAbs(st, s):
		hint := "write the whole path from /"
		if st == windows {
			hint = `write the whole path from the drive, as C:\data`
		} else if s[0] == '~' {
			hint = "~ is not expanded here; " + hint
		}
		return stringError(s, 0, hint, "path %q is not absolute", s)
	}
	return nil
}

func isAbs(st style, s string) bool {
	if st == posix {
		return s[0] == '/'
	}
	return len(s) >= 3 && isLetter(s[0]) && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

func cleanPath(st style, s string) (string, *Error) {
	if err := checkPath(st, s); err != nil {
		return "", err
	}
	if st == windows {
		return cleanWindows(s)
	}
	if i := dotDot(s); i >= 0 {
		return "", stringError(s, i, "write the path that it stands for", "path %q holds \"..\"", s)
	}
	c := path.Clean(s)
	if c == "/" {
		return "", stringError(s, 0, "grant the directories that are needed", "path %q is the root directory", s)
	}
	return c, nil
}

// dotDot returns the offset of the first ".." segment, or -1.
func dotDot(s string) int {
	for i, rest := 0, s; ; {
		seg, tail, more := strings.Cut(rest, "/")
		if seg == ".." {
			return i
		}
		if !more {
			return -1
		}
		i += len(seg) + 1
		rest = tail
	}
}

// cleanWindows cleans a path that starts with a drive. Names that Win32 would
// read as others (a stream, a trailing dot or space) are refused.
func cleanWindows(s string) (string, *Error) {
	t := strings.ReplaceAll(s, "/", `\`)
	c := strings.ToUpper(t[:1]) + ":"
	off := 3
	for _, seg := range strings.Split(t[3:], `\`) {
		at := off
		off += len(seg) + 1
		if seg == "" || seg == "." {
			continue
		}
		if seg == ".." {
			return "", stringError(s, at, "write the path that it stands for", "path %q holds \"..\"", s)
		}
		if i := strings.IndexFunc(seg, func(r rune) bool { return r < 0x20 || strings.ContainsRune(`<>:"|?*`, r) }); i >= 0 {
			return "", stringError(s, at+i, "", "path %q holds %q", s, seg[i])
		}
		if l := seg[len(seg)-1]; l == '.' || l == ' ' {
			return "", stringError(s, at+len(seg)-1, "", "a name in path %q ends with %q", s, l)
		}
		c += `\` + seg
	}
	if len(c) == 2 {
		return "", stringError(s, 0, "grant the directories that are needed", "path %q is the root of a drive", s)
	}
	return c, nil
}

const pipePrefix = `\\.\pipe\`

// cleanBroker checks the path of the broker's socket or, on Windows, the name
// of its pipe.
func cleanBroker(st style, s string) (string, *Error) {
	if st == windows && len(s) > len(pipePrefix) && strings.EqualFold(s[:len(pipePrefix)], pipePrefix) {
		name := s[len(pipePrefix):]
		if i := strings.IndexAny(name, "\\/\x00\n"); i >= 0 {
			return "", stringError(s, len(pipePrefix)+i, "", "pipe name %q holds %q", name, name[i])
		}
		return pipePrefix + name, nil
	}
	return cleanPath(st, s)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
