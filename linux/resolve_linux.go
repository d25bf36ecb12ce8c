// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/view"
	"golang.org/x/sys/unix"
)

// opened are the descriptors of resolved paths, by handle.
type opened struct {
	fds map[string]int
	// links are the symbolic links on the way to granted paths.
	links []view.Link
}

func (o *opened) close() {
	for _, fd := range o.fds {
		_ = unix.Close(fd)
	}
	o.fds = nil
}

// stateDirs hold what no job may reach: our own state and the file systems
// that control the confinement.
func stateDirs(cgroupMount string) []string {
	return []string{"/run/thole", "/etc/thole", "/var/lib/thole", "/sys/fs/bpf", "/sys/fs/cgroup", "/sys/kernel", "/proc", cgroupMount}
}

// resolve looks the policy's paths up and opens each once. The returned
// handles keep what was found from being exchanged for something else.
func resolve(p *policy.Policy, spec platform.Spec, cgroupMount string, root bool) (Resolved, *opened, error) {
	r := Resolved{Policy: p, Path: spec.Path, Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir}
	o := &opened{fds: map[string]int{}}
	fail := func(pos, remedy string, err error) (Resolved, *opened, error) {
		o.close()
		return Resolved{}, nil, &platform.Error{Kind: platform.ErrConfine, Capability: platform.FS, Pos: pos, Err: err, Remedy: remedy}
	}
	for _, list := range []struct {
		grant Grant
		paths []policy.Path
	}{{RO, p.FS.RO}, {RW, p.FS.RW}, {RD, p.FS.RD}, {WO, p.FS.WO}} {
		for _, path := range list.paths {
			root, err := o.open(path.Path, "root."+list.grant.String()+"."+path.Path)
			if err != nil {
				return fail(path.Pos.String(), "name a path that exists", err)
			}
			root.Grant, root.Pos = list.grant, path.Pos
			if root.Path == "/" {
				return fail(path.Pos.String(), "name the directories that are needed", fmt.Errorf("%s is the whole file system", path.Path))
			}
			for _, s := range stateDirs(cgroupMount) {
				if s != "" && (below(s, root.Path) || below(root.Path, s)) {
					return fail(path.Pos.String(), "grant a directory beside it", fmt.Errorf("%s would open %s, which a confined process never reaches", path.Path, s))
				}
			}
			r.Roots = append(r.Roots, root)
		}
	}
	// A job can leave a link in what it may write, for the next run to follow.
	for _, l := range o.links {
		for _, root := range r.Roots {
			if (root.Grant == RW || root.Grant == WO) && below(l.Path, root.Path) {
				return fail(root.Pos.String(), "name what the link leads to, if it is meant", fmt.Errorf("a granted path leads through the symbolic link %s, which lies in the writable %s", l.Path, root.Path))
			}
		}
	}
	r.Roots = dedupe(r.Roots)
	if p.Broker != "" {
		b, err := o.broker(p, r.Roots)
		if err != nil {
			return fail(brokerPos(p), "", err)
		}
		r.Broker = b
	}
	if p.GPU {
		r.Devices, r.DeviceGroups = o.devices()
	}
	o.terminals(&r, spec)
	r.Tmp, r.Shm = canonicalDir("/tmp"), canonicalDir("/dev/shm")
	if c, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && !below(c, "/etc") {
		r.ResolvConf = c
	}
	for _, name := range []string{spec.Path, p.Exe} {
		if name == "" {
			continue
		}
		links, canonical, err := hops(name)
		if name == spec.Path {
			r.Program = canonical
		}
		if err != nil {
			continue // execve will say so, as it would without us
		}
		r.Links = append(r.Links, links...)
	}
	return r, o, nil
}

func brokerPos(p *policy.Policy) string {
	pos, _ := p.PosOf(policy.KeyBroker)
	return pos.String()
}

// dedupe drops a path that is granted twice by one list, and merges lists for
// one path where one of them holds the others' rights.
func dedupe(roots []Root) []Root {
	var out []Root
	for _, r := range roots {
		if !slices.ContainsFunc(out, func(o Root) bool { return o.Path == r.Path && o.Grant == r.Grant }) {
			out = append(out, r)
		}
	}
	return out
}

// open resolves p to its canonical path, opens that without following any
// symbolic link, and says who owns it and who can reach it.
func (o *opened) open(p, handle string) (Root, error) {
	links, canonical, err := hops(p)
	if err != nil {
		return Root{}, fmt.Errorf("resolve %s: %w", p, cause(err))
	}
	for _, l := range links {
		if err := trusted(l.Path); err != nil {
			return Root{}, fmt.Errorf("resolve %s: %w: name %s itself if it is meant", p, err, canonical)
		}
	}
	o.links = append(o.links, links...)
	r := Root{Path: canonical, Handle: handle}
	fd, err := walk(canonical, func(dir string, st *unix.Stat_t) {
		if r.Blocked == "" && st.Mode&unix.S_IXOTH == 0 {
			r.Blocked = dir
		}
	})
	if err != nil {
		return Root{}, fmt.Errorf("open %s: %w", canonical, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return Root{}, fmt.Errorf("stat %s: %w", canonical, err)
	}
	r.File = st.Mode&unix.S_IFMT != unix.S_IFDIR
	r.UID, r.GID = int(st.Uid), int(st.Gid)
	if old, ok := o.fds[handle]; ok {
		_ = unix.Close(old)
	}
	o.fds[handle] = fd
	return r, nil
}

// trusted refuses to follow a symbolic link that somebody else could have put
// there: one that is neither root's nor the caller's, or that lies in a
// directory that others own or may write to. In a sticky directory others
// cannot exchange it (as fs.protected_symlinks has it, sysctl/fs.rst).
func trusted(link string) error {
	mine := func(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
	var l, dir unix.Stat_t
	if err := unix.Lstat(link, &l); err != nil {
		return err
	}
	if err := unix.Stat(filepath.Dir(link), &dir); err != nil {
		return err
	}
	if !mine(l.Uid) || !mine(dir.Uid) || dir.Mode&0o022 != 0 && dir.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("%s is a symbolic link that others could have made", link)
	}
	return nil
}

// walk opens a canonical path a segment at a time from the root, never through
// a symbolic link, and shows each directory on the way.
func walk(canonical string, ancestor func(dir string, st *unix.Stat_t)) (int, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	at := ""
	for seg := range strings.SplitSeq(strings.Trim(canonical, "/"), "/") {
		if seg == "" {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		if at == "" {
			ancestor("/", &st)
		} else {
			ancestor(at, &st)
		}
		next, err := unix.Openat2(fd, seg, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
		_ = unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd, at = next, at+"/"+seg
	}
	return fd, nil
}

// broker opens the one socket that may be reached. It must not lie where the
// job could put another in its place.
func (o *opened) broker(p *policy.Policy, roots []Root) (Root, error) {
	b, err := o.open(p.Broker, "broker")
	if err != nil {
		return Root{}, err
	}
	if b.Path != p.Broker {
		return Root{}, fmt.Errorf("broker socket %s is reached through a symbolic link: name %s", p.Broker, b.Path)
	}
	var st unix.Stat_t
	if err := unix.Fstat(o.fds["broker"], &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return Root{}, fmt.Errorf("broker %s is not a socket", p.Broker)
	}
	for _, r := range roots {
		if (r.Grant == RW || r.Grant == WO) && below(b.Path, r.Path) {
			return Root{}, fmt.Errorf("broker socket %s lies in the writable %s (%s), where the job could exchange it", p.Broker, r.Path, r.Pos)
		}
	}
	b.Pos, _ = p.PosOf(policy.KeyBroker)
	return b, nil
}

// devices finds the GPU's device nodes, their groups, and what drivers read.
func (o *opened) devices() ([]Root, []int) {
	var roots []Root
	var groups []int
	for _, pattern := range []string{"/dev/dri", "/dev/kfd", "/dev/nvidia*", "/sys/class/drm", "/sys/dev/char", "/sys/bus/pci/devices", "/sys/devices"} {
		names, _ := filepath.Glob(pattern) // the pattern is ours: no error but ErrBadPattern
		for _, n := range names {
			r, err := o.open(n, "gpu."+n)
			if err != nil {
				continue
			}
			roots = append(roots, r)
			nodes := []string{n}
			if !r.File && strings.HasPrefix(n, "/dev/") {
				nodes, _ = filepath.Glob(n + "/*")
			}
			for _, node := range nodes {
				var st unix.Stat_t
				if unix.Stat(node, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Gid != 0 && !slices.Contains(groups, int(st.Gid)) {
					groups = append(groups, int(st.Gid))
				}
			}
		}
	}
	return roots, groups
}

// terminals finds the terminals among the standard streams. Their group may
// write to them where the node says so (tty(4)); the Landlock rule is for that
// one node.
func (o *opened) terminals(r *Resolved, spec platform.Spec) {
	for i, f := range []*os.File{spec.Stdin, spec.Stdout, spec.Stderr} {
		fd := i // of a launcher that becomes the program
		if f != nil {
			fd = int(f.Fd())
		}
		var st, at unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			continue
		}
		name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || unix.Stat(name, &at) != nil || at.Rdev != st.Rdev || at.Ino != st.Ino {
			continue
		}
		t, err := o.open(name, "tty."+name)
		if err != nil || slices.ContainsFunc(r.Terminals, func(o Root) bool { return o.Path == t.Path }) {
			continue
		}
		r.Terminals = append(r.Terminals, t)
		if st.Mode&unix.S_IWGRP != 0 && st.Gid != 0 && !slices.Contains(r.DeviceGroups, int(st.Gid)) {
			r.DeviceGroups = append(r.DeviceGroups, int(st.Gid))
		}
	}
}

func canonicalDir(p string) string {
	c, err := filepath.EvalSymlinks(p)
	if err != nil {
		return ""
	}
	if st, err := os.Stat(c); err != nil || !st.IsDir() {
		return ""
	}
	return c
}

// hops follows the symbolic links of a path, at most 40 as the kernel does,
// and returns each with the canonical path of its place.
func hops(p string) ([]view.Link, string, error) {
	var links []view.Link
	rest, at := strings.Trim(p, "/"), ""
	for n := 0; rest != ""; {
		var seg string
		seg, rest, _ = strings.Cut(rest, "/")
		switch seg {
		case "", ".":
			continue
		case "..":
			at = strings.TrimSuffix(filepath.Dir("/"+strings.TrimPrefix(at, "/")), "/")
			continue
		}
		here := at + "/" + seg
		st, err := os.Lstat(here)
		if err != nil {
			return links, "", err
		}
		if st.Mode()&os.ModeSymlink == 0 {
			at = here
			continue
		}
		if n++; n > 40 {
			return links, "", unix.ELOOP
		}
		target, err := os.Readlink(here)
		if err != nil {
			return links, "", err
		}
		links = append(links, view.Link{Path: here, Target: target, Blocked: blockedAbove(here)})
		rest = strings.Trim(target+"/"+rest, "/")
		if filepath.IsAbs(target) {
			at = ""
		}
	}
	if at == "" {
		at = "/"
	}
	return links, at, nil
}

// blockedAbove returns the topmost directory above a path that an unrelated
// uid cannot search, or "".
func blockedAbove(p string) string {
	for i := 1; i < len(p); i++ {
		if p[i] != '/' {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(p[:i], &st) == nil && st.Mode&unix.S_IXOTH == 0 {
			return p[:i]
		}
	}
	return ""
}

// cause strips the path that package os repeats in its errors.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
