// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package view

import "slices"

// Mount is one place of the private tree as the kernel must show it.
type Mount struct {
	Path string
	// Type is the file system's; empty: the root's own.
	Type string
	// Writable and NoExec are the mount's attributes; nosuid is on all, nodev
	// on all but "/".
	Writable, NoExec bool
	// IDMapped: the mount has an id mapping.
	IDMapped bool
}

// Mounts returns what [View.Ops] leaves mounted: "/", what covers directories,
// /proc and the granted roots. What is not listed is read-only.
func (v View) Mounts() []Mount {
	ms := []Mount{{Path: "/"}}
	for _, c := range v.covers(v.Roots) {
		ms = append(ms, Mount{Path: c.path, Type: "tmpfs", Writable: c.private, NoExec: c.private && !v.ExecPrivate})
	}
	if v.Proc {
		ms = append(ms, Mount{Path: "/proc", Type: "proc", Writable: true, NoExec: true})
	}
	for _, r := range v.Roots {
		if slices.ContainsFunc(v.Roots, func(o Root) bool { return o.Path == r.Path && o != r }) {
			continue // granted twice: the later mount is on top
		}
		ms = append(ms, Mount{Path: r.Path, Writable: r.Write, NoExec: r.NoExec, IDMapped: r.IDMap != ""})
	}
	return ms
}
