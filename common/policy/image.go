// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// platforms are the values of a container's "platform".
var platforms = [...]string{"linux/amd64", "linux/arm64"}

// maxReference bounds an image's name without the digest (OCI distribution
// specification 1.1, "name").
const maxReference = 255

func (t *tomlPolicy) image(n *node, key string) (string, error) {
	s, err := t.str(n, key)
	if err != nil {
		return "", err
	}
	if ierr := checkImage(s); ierr != nil {
		return "", t.at(n.off, key, ierr)
	}
	return s, nil
}

// checkImage reads a reference [registry[:port]/]path[:tag]@sha256:<hex>, by
// the grammar of the OCI distribution specification.
func checkImage(s string) *Error {
	name, digest, ok := strings.Cut(s, "@")
	if !ok {
		return stringError(s, len(s), "pin the image: name:tag@sha256:<64 hex digits>", "image %q has no digest", s)
	}
	hex, ok := strings.CutPrefix(digest, "sha256:")
	if !ok {
		return stringError(s, len(name)+1, "pin the image: name:tag@sha256:<64 hex digits>", "digest of image %q is not sha256", s)
	}
	if len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return stringError(s, len(name)+8, "", "digest of image %q is not 64 lower-case hex digits", s)
	}
	bad := func() *Error {
		return stringError(s, 0, "write [registry/]path[:tag]@sha256:<64 hex digits> in lower case", "image %q has an invalid name", s)
	}
	if len(name) > maxReference {
		return bad()
	}
	// The first part is a registry where it looks like a host.
	if first, rest, ok := strings.Cut(name, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		host, port, hasPort := strings.Cut(first, ":")
		if _, ok := parsePort(port); hasPort && !ok {
			return bad()
		}
		if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || host == "" {
			return bad()
		}
		name = rest
	}
	path, tag, hasTag := strings.Cut(name, ":")
	if hasTag && !isTag(tag) {
		return bad()
	}
	for part := range strings.SplitSeq(path, "/") {
		if !isComponent(part) {
			return bad()
		}
	}
	return nil
}

// isComponent reports whether s is letters and digits with single separators
// ('.', '_', '__' or hyphens) between them.
func isComponent(s string) bool {
	sep := -1 // where the present run of separators began
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || isDigit(c):
			if sep >= 0 && !isSeparator(s[sep:i]) || sep == 0 {
				return false
			}
			sep = -1
		case c == '.' || c == '_' || c == '-':
			if sep < 0 {
				sep = i
			}
		default:
			return false
		}
	}
	return s != "" && sep < 0
}

func isSeparator(s string) bool {
	return s == "." || s == "_" || s == "__" || strings.Trim(s, "-") == ""
}

func isTag(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(isLetter(c) || isDigit(c) || c == '_' || i > 0 && (c == '.' || c == '-')) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// maxToolID bounds the id of a tool, in bytes.
const maxToolID = 128

// toolID reads an id of the tool registry: [a-z0-9][a-z0-9._-]*.
func (t *tomlPolicy) toolID(n *node, key string) (string, error) {
	s, err := t.str(n, key)
	if err != nil {
		return "", err
	}
	ok := s != "" && len(s) <= maxToolID
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || isDigit(c) || i > 0 && (c == '.' || c == '_' || c == '-')) {
			ok = false
		}
	}
	if !ok {
		return "", t.err(n.off, key, "an id is lower-case letters and digits, then also . _ -", "%q is not the id of a tool", s)
	}
	return s, nil
}
