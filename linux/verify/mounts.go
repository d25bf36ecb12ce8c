// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
)

// Mount is what must be mounted somewhere.
type Mount struct {
	Path string
	// Type is the file system's; empty: any.
	Type string
	// Options must all be set; those that begin with "!" must not be.
	Options []string
	// Super is an option of the file system itself; empty: not checked.
	Super string
}

// View is what must hold of a mount namespace.
type View struct {
	// Mounts must all be there, in sight.
	Mounts []Mount
	// Writable are the only places at and below which a mount may be
	// writable.
	Writable []string
}

// line is one mount of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type line struct {
	id, parent, path, fstype, super string
	options                         []string
}

// check compares the view with the text of mountinfo.
func (v *View) check(mountinfo string) error {
	var lines []line
	under := map[string]string{} // id of a covered mount → path of its cover
	for text := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(text, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 2 {
			return &Failure{"view", "lines of mountinfo", strings.TrimSpace(text)}
		}
		l := line{id: h[0], parent: h[1], path: h[4], options: strings.Split(h[5], ","), fstype: t[0]}
		if len(t) > 2 {
			l.super = t[2]
		}
		lines = append(lines, l)
		under[l.parent+" "+l.path] = l.id
	}
	if len(lines) == 0 {
		return &Failure{"view", "a list of mounts", "nothing"}
	}
	for _, l := range lines {
		if !slices.Contains(l.options, "ro") && !slices.ContainsFunc(v.Writable, func(w string) bool { return below(l.path, escape(w)) }) {
			return &Failure{"view", "read-only " + l.path, strings.Join(l.options, ",")}
		}
	}
	for _, m := range v.Mounts {
		got := "nothing mounted there"
		if !slices.ContainsFunc(lines, func(l line) bool {
			if l.path != escape(m.Path) {
				return false
			}
			if _, covered := under[l.id+" "+l.path]; covered {
				return false
			}
			got = l.fstype + " " + strings.Join(l.options, ",") + " " + l.super
			return m.is(l)
		}) {
			return &Failure{"view", m.text(), got}
		}
	}
	return nil
}

func (m Mount) is(l line) bool {
	if m.Type != "" && m.Type != l.fstype {
		return false
	}
	if m.Super != "" && !slices.Contains(strings.Split(l.super, ","), m.Super) {
		return false
	}
	for _, o := range m.Options {
		if name, no := strings.CutPrefix(o, "!"); slices.Contains(l.options, name) == no {
			return false
		}
	}
	return true
}

func (m Mount) text() string {
	return strings.TrimSpace(m.Path + " " + m.Type + " " + strings.Join(m.Options, ",") + " " + m.Super)
}

func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// escape writes a path as mountinfo does.
func escape(p string) string {
	if !strings.ContainsAny(p, " \t\n\\") {
		return p
	}
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(p)
}
