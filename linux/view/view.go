// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package view plans the private mount namespace of a confined process: the
// whole tree read-only but for the writable roots, an empty /tmp and /dev/shm,
// a /proc without other users' processes, and each granted root mounted so
// that the job owns what the root's owner owns.
//
// It is pure: a [View] is a value and [View.Ops] are the system calls that
// make it, in the order in which the child issues them.
package view

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"github.com/tholehq/thole/linux/landlock"
	"github.com/tholehq/thole/linux/launch"
)

// Root is one granted path.
type Root struct {
	// Path is canonical and absolute: no segment is a symbolic link.
	Path string
	// File: not a directory.
	File bool
	// Write: mounted writable.
	Write bool
	// NoExec: nothing in it is executed, nor mapped to be.
	NoExec bool
	// IDMap names the handle of a user namespace whose mapping the mount
	// takes; empty: ids are shown as they are.
	IDMap string
	// Blocked is the topmost ancestor that the job's uid cannot search;
	// empty: none.
	Blocked string
}

// Link is a symbolic link that leads to a granted path from outside of every
// granted root. It is made again where its directory is covered.
type Link struct {
	Path, Target string
	// Blocked is the topmost ancestor that the job's uid cannot search;
	// empty: none.
	Blocked string
}

// View is the private tree of one process.
type View struct {
	Roots []Root
	Links []Link
	// Private are directories that are replaced by empty writable ones
	// (/tmp, /dev/shm).
	Private []string
	// Home, where set, is made inside one of Private, owned by UID and GID.
	Home     string
	UID, GID int
	// Size bounds each private directory, as tmpfs takes it ("50%", "64m").
	Size string
	// Proc: /proc is mounted anew, other users' processes hidden.
	Proc bool
	// Rules is the handle of the Landlock ruleset that gets a rule for each
	// private directory and for the new /proc.
	Rules string
	// Handled are the rights that the ruleset handles.
	Handled landlock.Access
	// ExecPrivate lets files in private directories be executed.
	ExecPrivate bool
}

// The kernel's values (include/uapi/linux/{fcntl,mount,openat2}.h).
const (
	atFDCWD    = ^uint64(99) // -100
	atEmpty    = 0x1000
	atRecurse  = 0x8000
	cloexec    = 0o2000000
	openPath   = 0o10000000 | cloexec
	noSymlinks = 0x04

	treeClone = 1 | cloexec | atRecurse | atEmpty

	attrRdonly = 0x1
	attrNosuid = 0x2
	attrNodev  = 0x4
	attrNoexec = 0x8
	attrIDMap  = 0x100000

	msPrivate = 1 << 18

	setString, cmdCreate = 1, 6
	fsCloexec            = 1

	moveFEmpty, moveTEmpty = 0x4, 0x40

	ruleBeneath = 1
)

var cwd = launch.Named(atFDCWD, "AT_FDCWD")

// Step is the name under which the calls print.
const Step = "view"

// Ops returns the calls. They need a mount namespace of the process's own
// and CAP_SYS_ADMIN over it, and come before the change of ids.
func (v View) Ops() launch.List {
	var l launch.List
	add := func(note string, o launch.Op) {
		o.Note = note
		l.Add(Step, o)
	}
	roots := slices.Clone(v.Roots)
	// Outer roots first: an inner one is mounted on top of them.
	slices.SortStableFunc(roots, func(a, b Root) int {
		if d := strings.Count(a.Path, "/") - strings.Count(b.Path, "/"); d != 0 {
			return d
		}
		return strings.Compare(a.Path, b.Path)
	})
	trees := make([]*launch.Slot, len(roots))
	for i, r := range roots {
		src := launch.NewSlot("src" + itoa(i))
		trees[i] = launch.NewSlot("tree" + itoa(i))
		add("granted root", openBelow(r.Path, src))
		add("", launch.Op{Call: launch.OpenTree, Save: trees[i], Args: []launch.Arg{launch.From(src), launch.Str(""),
			launch.Named(treeClone, "OPEN_TREE_CLONE|OPEN_TREE_CLOEXEC|AT_RECURSIVE|AT_EMPTY_PATH")}})
		attr, why := attrNosuid|attrNodev, "read-only"
		if r.Write {
			why = "writable"
		} else {
			attr |= attrRdonly
		}
		if r.NoExec {
			attr |= attrNoexec
			why += ", nothing in it executed"
		}
		if r.IDMap != "" {
			attr |= attrIDMap
			why += ", the root's owner shown as the job"
		}
		add(why, setattr(launch.From(trees[i]), "", uint64(attr), r.IDMap))
	}
	add("everything else read-only", setattr(cwd, "/", attrRdonly|attrNosuid, ""))
	n := 0
	for _, c := range v.covers(roots) {
		l = append(l, v.coverOps(c, n)...)
		n++
	}
	if v.Proc {
		fs, mnt := launch.NewSlot("procfs"), launch.NewSlot("proc")
		rule, slot := beneath(v.Handled, landlock.Read, mnt)
		add("other users' processes hidden", launch.Op{Call: launch.Fsopen, Save: fs, Args: []launch.Arg{launch.Str("proc"), launch.Named(fsCloexec, "FSOPEN_CLOEXEC")}})
		add("", configString(fs, "hidepid", "2"))
		add("", create(fs))
		add("", launch.Op{Call: launch.Fsmount, Save: slot, Args: []launch.Arg{launch.From(fs), launch.Named(fsCloexec, "FSMOUNT_CLOEXEC"), attrs(attrNosuid | attrNodev | attrNoexec)}})
		if v.Rules != "" {
			add("", addRule(v.Rules, rule))
		}
		l = append(l, mountAt(slot, "/proc", "proc")...)
	}
	for i, r := range roots {
		l = append(l, mountAt(trees[i], r.Path, "root"+itoa(i))...)
	}
	return l
}

// cover is a directory that an empty file system is mounted on.
type cover struct {
	path    string
	private bool // writable by the job; else a read-only skeleton
	inside  []Root
	links   []Link
}

// covers returns what is covered, outermost first, and which roots have to
// be given a place in each.
func (v View) covers(roots []Root) []cover {
	var cs []cover
	under := func(p, dir string) bool { return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
	granted := func(p string) bool { return slices.ContainsFunc(roots, func(r Root) bool { return under(p, r.Path) }) }
	for _, p := range v.Private {
		if !granted(p) {
			cs = append(cs, cover{path: p, private: true})
		}
	}
	var blocked []string
	for _, r := range roots {
		blocked = append(blocked, r.Blocked)
	}
	for _, k := range v.Links {
		blocked = append(blocked, k.Blocked)
	}
	for _, b := range blocked {
		// A blocked ancestor inside another granted root is reached through
		// that root's own mount, whose ids are mapped.
		if b == "" || granted(b) {
			continue
		}
		if !slices.ContainsFunc(cs, func(c cover) bool { return under(b, c.path) }) {
			cs = append(cs, cover{path: b})
		}
	}
	for i := range cs {
		for _, r := range roots {
			if under(r.Path, cs[i].path) && r.Path != cs[i].path {
				cs[i].inside = append(cs[i].inside, r)
			}
		}
		for _, k := range v.Links {
			if under(k.Path, cs[i].path) && !granted(k.Path) {
				cs[i].links = append(cs[i].links, k)
			}
		}
	}
	return cs
}

func (v View) coverOps(c cover, n int) launch.List {
	var l launch.List
	fs := launch.NewSlot("fs" + itoa(n))
	access := landlock.Read | landlock.Write
	if v.ExecPrivate {
		access |= landlock.Execute
	}
	rule, mnt := beneath(v.Handled, access, launch.NewSlot("cover"+itoa(n)))
	note, mode, attr := "skeleton: nothing but the granted paths", "0755", uint64(attrNosuid|attrNodev)
	if c.private {
		note, mode = "private and empty", "1777"
		if !v.ExecPrivate {
			attr |= attrNoexec
		}
	}
	l.Add(Step,
		launch.Op{Call: launch.Fsopen, Save: fs, Note: note, Args: []launch.Arg{launch.Str("tmpfs"), launch.Named(fsCloexec, "FSOPEN_CLOEXEC")}},
		configString(fs, "mode", mode))
	size := v.Size
	if !c.private {
		size = "1m"
	}
	if size != "" {
		l.Add(Step, configString(fs, "size", size))
	}
	l.Add(Step, create(fs), launch.Op{Call: launch.Fsmount, Save: mnt, Args: []launch.Arg{launch.From(fs), launch.Named(fsCloexec, "FSMOUNT_CLOEXEC"), attrs(attr)}})
	made := map[string]bool{}
	place := func(p string) (rel string) {
		rel = strings.TrimPrefix(p, strings.TrimSuffix(c.path, "/")+"/")
		for i := 0; i < len(rel); i++ {
			if rel[i] == '/' && !made[rel[:i]] {
				made[rel[:i]] = true
				l.Add(Step, mkdir(mnt, rel[:i], 0o755))
			}
		}
		return rel
	}
	for _, r := range c.inside {
		rel := place(r.Path)
		switch {
		case made[rel]:
		case r.File:
			l.Add(Step, launch.Op{Call: launch.MknodAt, Args: []launch.Arg{launch.From(mnt), launch.Str(rel), launch.Named(0o100444, "S_IFREG|0444"), launch.Num(0)}})
		default:
			l.Add(Step, mkdir(mnt, rel, 0o755))
		}
		made[rel] = true
	}
	for _, k := range c.links {
		if rel := place(k.Path); !made[rel] {
			made[rel] = true
			l.Add(Step, launch.Op{Call: launch.SymlinkAt, Args: []launch.Arg{launch.Str(k.Target), launch.From(mnt), launch.Str(rel)}, Note: "on the way to the program"})
		}
	}
	if c.private && v.Home != "" && path.Dir(v.Home) == c.path && !made[path.Base(v.Home)] {
		l.Add(Step, mkdir(mnt, path.Base(v.Home), 0o700))
		if v.UID >= 0 {
			l.Add(Step, launch.Op{Call: launch.FchownAt, Args: []launch.Arg{launch.From(mnt), launch.Str(path.Base(v.Home)), id(v.UID), id(v.GID), launch.Num(0)}})
		}
	}
	if c.private {
		if v.Rules != "" {
			l.Add(Step, addRule(v.Rules, rule))
		}
	} else {
		l.Add(Step, setattr(launch.From(mnt), "", attrRdonly|attrNosuid|attrNodev, ""))
	}
	return append(l, mountAt(mnt, c.path, "at"+itoa(n))...)
}

// openBelow opens p in the child's own mount namespace; a symbolic link that
// someone put there since the path was resolved is an error.
func openBelow(p string, save *launch.Slot) launch.Op {
	how := make([]byte, 24)
	binary.NativeEndian.PutUint64(how, openPath)
	binary.NativeEndian.PutUint64(how[16:], noSymlinks)
	return launch.Op{Call: launch.OpenAt2, Save: save, Args: []launch.Arg{cwd, launch.Str(p),
		launch.Ptr(&launch.Blob{Bytes: how, Text: "{O_PATH|O_CLOEXEC, RESOLVE_NO_SYMLINKS}"}), launch.Num(24)}}
}

// mountAt moves the tree onto p.
func mountAt(tree *launch.Slot, p, name string) launch.List {
	var l launch.List
	to := launch.NewSlot("on_" + name)
	l.Add(Step, openBelow(p, to), launch.Op{Call: launch.MoveMount, Args: []launch.Arg{launch.From(tree), launch.Str(""), launch.From(to), launch.Str(""),
		launch.Named(moveFEmpty|moveTEmpty, "MOVE_MOUNT_F_EMPTY_PATH|MOVE_MOUNT_T_EMPTY_PATH")}})
	return l
}

// setattr changes a whole tree of mounts and cuts it off from the host's
// propagation (struct mount_attr).
func setattr(dir launch.Arg, p string, set uint64, idmap string) launch.Op {
	b := &launch.Blob{Bytes: make([]byte, 32), Text: "{set=" + attrText(set)}
	binary.NativeEndian.PutUint64(b.Bytes, set)
	binary.NativeEndian.PutUint64(b.Bytes[16:], msPrivate)
	b.Text += ", propagation=private"
	if idmap != "" {
		b.PutHandle(24, idmap)
		b.Text += ", userns=@" + idmap
	}
	b.Text += "}"
	flags := launch.Named(atRecurse, "AT_RECURSIVE")
	if p == "" {
		flags = launch.Named(atRecurse|atEmpty, "AT_RECURSIVE|AT_EMPTY_PATH")
	}
	return launch.Op{Call: launch.MountSetattr, Args: []launch.Arg{dir, launch.Str(p), flags, launch.Ptr(b), launch.Num(32)}}
}

// beneath returns struct landlock_path_beneath_attr (packed: rights, then a
// 32-bit descriptor) and a slot whose descriptor lands in it.
func beneath(handled, access landlock.Access, s *launch.Slot) (*launch.Blob, *launch.Slot) {
	access = landlock.Cut(handled, access, false)
	b := &launch.Blob{Bytes: make([]byte, 16)}
	binary.NativeEndian.PutUint64(b.Bytes, uint64(access))
	b.Text = "{" + access.String() + ", $" + s.Name() + "}"
	return b, launch.NewSlotIn(s.Name(), b, 8)
}

func addRule(rules string, rule *launch.Blob) launch.Op {
	return launch.Op{Call: launch.LandlockAddRule, Args: []launch.Arg{launch.Handle(rules), launch.Named(ruleBeneath, "LANDLOCK_RULE_PATH_BENEATH"), launch.Ptr(rule), launch.Num(0)}}
}

func configString(fs *launch.Slot, key, value string) launch.Op {
	return launch.Op{Call: launch.Fsconfig, Args: []launch.Arg{launch.From(fs), launch.Named(setString, "FSCONFIG_SET_STRING"), launch.Str(key), launch.Str(value), launch.Num(0)}}
}

func create(fs *launch.Slot) launch.Op {
	return launch.Op{Call: launch.Fsconfig, Args: []launch.Arg{launch.From(fs), launch.Named(cmdCreate, "FSCONFIG_CMD_CREATE"), launch.Num(0), launch.Num(0), launch.Num(0)}}
}

func mkdir(dir *launch.Slot, name string, mode uint64) launch.Op {
	return launch.Op{Call: launch.MkdirAt, Args: []launch.Arg{launch.From(dir), launch.Str(name), launch.Named(mode, octal(mode))}}
}
