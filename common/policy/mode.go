// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"path/filepath"
	"strings"
)

// The modes of tool runners, for [FromMode].
const (
	ReadOnly       = "read_only"          // the workspace can be read and executed, nothing written
	WorkspaceWrite = "workspace_write"    // the workspace and the temporary roots can be written
	FullAccess     = "danger_full_access" // no confinement at all
)

// ErrNoConfinement is what FromMode answers to danger_full_access: there is
// no policy for it. Whoever accepts it must do so by name.
var ErrNoConfinement = errors.New("danger_full_access asks for no confinement")

// FromMode returns the policy of a tool runner's mode. The workspace and the
// temporary roots are absolute paths, made canonical by the caller. Neither
// mode has a network. In workspace_write what was written may be executed,
// since builds and tests are what a workspace is for; in read_only the
// temporary roots are not granted. A workspace that is a home directory, or
// that holds one, is refused, as is the root directory.
func FromMode(mode, workspace string, temps []string, homes ...string) (*Policy, error) {
	switch mode {
	case ReadOnly, WorkspaceWrite:
	case FullAccess:
		return nil, ErrNoConfinement
	default:
		return nil, modeError("mode", mode, "the modes are: read_only, workspace_write, danger_full_access", "unknown mode "+quote(mode))
	}
	p := &Policy{Kind: defaultKind}
	root, err := cleanPath(hostStyle(), workspace)
	if err != nil {
		return nil, modeError("workspace", mode, err.Hint, err.Msg)
	}
	for _, home := range homes {
		if home != "" && within(filepath.Clean(home), root) {
			return nil, modeError("workspace", mode, "choose a directory below it", "workspace "+quote(root)+" holds the home directory "+quote(home))
		}
	}
	pos := Pos{Flag: mode}
	if mode == ReadOnly {
		p.FS.RO = []Path{{root, pos}}
		return p, nil
	}
	roots := []Path{{root, pos}}
	for _, t := range temps {
		c, err := cleanPath(hostStyle(), t)
		if err != nil {
			return nil, modeError("temporary root", mode, err.Hint, err.Msg)
		}
		roots = append(roots, Path{c, pos})
	}
	p.FS.RW = union(roots, nil, pathKey)
	p.ExecRW = true
	return p, nil
}

// within reports whether path is dir or below it. Both are clean. Windows'
// file names have no case.
func within(path, dir string) bool {
	if hostStyle() == windows {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

func modeError(key, mode, hint, msg string) *Error {
	return (Pos{Flag: mode}).err(key, hint, "%s", msg)
}
