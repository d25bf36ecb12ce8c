// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/kernfile"
	"golang.org/x/sys/unix"
)

// Platform confines processes on this machine. Make one per process with
// [New] and close it when the last job has ended.
type Platform struct{ m *machine }

// New looks at the machine and adopts or loads the kernel's part.
func New() (*Platform, error) {
	m, err := look(ParentName)
	if err != nil {
		return nil, &platform.Error{Kind: platform.ErrUnsupported, Err: err}
	}
	return &Platform{m}, nil
}

// Close releases the handles; what is in force stays in force.
func (p *Platform) Close() { p.m.close() }

// Host returns what was found.
func (p *Platform) Host() Host { return p.m.Host }

// Sweep takes away what starters that were killed left behind: their
// processes, leaves and rules.
func (p *Platform) Sweep() (int, error) {
	if p.m.parent == nil {
		return 0, nil
	}
	return p.m.parent.Sweep(func(id uint64) {
		if p.m.enforcer != nil {
			_ = p.m.enforcer.Remove(id)
		}
	})
}

// SweepAll does what Sweep does, and takes away the directories of killed
// probes and the rules of cgroups that are gone.
func (p *Platform) SweepAll() (sandboxes, directories int, err error) {
	sandboxes, err = p.Sweep()
	_, rulesErr := p.m.sweepRules()
	return sandboxes, p.SweepProbes(), errors.Join(err, rulesErr)
}

// sweepRules takes away the rules of cgroups that no longer exist: those that
// somebody else made for a launcher, and removed when its program had ended.
func (m *machine) sweepRules() (int, error) {
	if m.enforcer == nil {
		return 0, nil
	}
	mount, err := kernfile.OpenDir(m.cgroupMount)
	if err != nil {
		return 0, err
	}
	defer mount.Close()
	return m.enforcer.Sweep(func(id uint64) bool {
		// A cgroup's id is its file handle (FILEID_KERNFS); ESTALE: it is gone.
		var h [8]byte
		binary.NativeEndian.PutUint64(h[:], id)
		const fileidKernfs = 0xfe
		fd, err := unix.OpenByHandleAt(int(mount.Fd()), unix.NewFileHandle(fileidKernfs, h[:]), unix.O_PATH|unix.O_CLOEXEC)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err != unix.ESTALE
	})
}

// Plan resolves and compiles spec. Close the plan when it is no longer needed.
func (p *Platform) Plan(spec platform.Spec) (*Plan, error) { return p.plan(spec, Options{}) }

// Private returns the temporary and home directories that a job of this caller
// finds empty and that vanish with it, or "" where it sees the host's.
func (p *Platform) Private() (tmp, home string) {
	if p.m.Root || p.m.UserNS {
		tmp = canonicalDir("/tmp")
	}
	if tmp != "" {
		home = filepath.Join(tmp, homeName)
	}
	return tmp, home
}

// Executable reports whether programs in dir can be executed under p. It looks
// at names alone.
func (p *Platform) Executable(dir string, pol *policy.Policy) bool { return mayExecute(dir, pol) }

func (p *Platform) plan(spec platform.Spec, o Options) (*Plan, error) {
	if !filepath.IsAbs(spec.Path) {
		return nil, &platform.Error{Kind: platform.ErrConfine, Err: fmt.Errorf("program %q is not an absolute path", spec.Path)}
	}
	for _, list := range [][]string{spec.Argv, spec.Env, {spec.Path, spec.Dir}} {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, &platform.Error{Kind: platform.ErrConfine, Err: fmt.Errorf("%q holds a NUL byte", s)}
			}
		}
	}
	r, opened, err := resolve(spec.Policy, spec, p.m.cgroupMount, p.m.Root)
	if err != nil {
		return nil, err
	}
	o.Accept = spec.Accept
	if p.m.Root && o.accepts(platform.Identity) {
		o.NoIDMap = !mappable(r, opened)
	}
	hasView := p.m.Root || p.m.UserNS && !o.Self
	if hasView && r.Tmp != "" {
		r.Home = filepath.Join(r.Tmp, homeName)
	}
	if r.Dir == "" {
		r.Dir = r.Home
		if r.Dir == "" {
			r.Dir = "/"
		}
	}
	plan, err := Compile(p.m.Host, r, o)
	if err != nil {
		opened.close()
		return nil, err
	}
	plan.start, plan.m, plan.opened = spec, p.m, opened
	return plan, nil
}

// homeName is the private home's name in the private /tmp.
const homeName = "home"

// Close releases the plan's handles on the granted paths.
func (p *Plan) Close() {
	if p.opened != nil {
		p.opened.close()
	}
}

// mappable reports whether every granted path can be id-mapped, by doing it
// on a detached copy that is dropped again.
func mappable(r Resolved, o *opened) bool {
	ns, err := userNamespace(swapMap(0, 1), swapMap(0, 1))
	if err != nil {
		return false
	}
	defer unix.Close(ns)
	for _, root := range r.Roots {
		tree, err := unix.OpenTree(o.fds[root.Handle], "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
		if err != nil {
			return false
		}
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns)})
		_ = unix.Close(tree)
		if err != nil {
			return false
		}
	}
	return true
}

// checkStdio refuses a standard descriptor that is a socket: it belongs to its
// maker's cgroup, and the job could use it past every rule. One end of an
// unnamed stream socketpair passes: that is how some programs (node, sshd)
// make what others make with pipe, it is connected for good, and its peer is
// the caller.
func checkStdio(name string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat %s: %w", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || pairEnd(fd) {
		return nil
	}
	return fmt.Errorf("%s is a socket, which would carry the job past the network rules: put a pipe between (… | cat)", name)
}

// pairEnd reports whether fd is a connected stream socket of AF_UNIX whose
// ends have no name.
func pairEnd(fd int) bool {
	if t, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || t != unix.SOCK_STREAM {
		return false
	}
	for _, call := range []uintptr{unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME} {
		// An address of an unnamed socket is the family alone (unix(7)): the
		// length tells, which the wrappers do not return.
		var a unix.RawSockaddrUnix
		n := uint32(unix.SizeofSockaddrUnix)
		_, _, e := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&n)))
		if e != 0 || a.Family != unix.AF_UNIX || n != uint32(unsafe.Sizeof(a.Family)) {
			return false
		}
	}
	return true
}

// execHint says what would let the program start.
func (p *Plan) execHint(err error) string {
	name := p.Spec.Program
	if name == "" {
		name = p.Spec.Path
	}
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOENT) && exists(name):
		for _, dir := range executable {
			if below(name, dir) {
				return "look at the file's own permissions and at its interpreter"
			}
		}
		for _, r := range p.Spec.Roots {
			if below(name, r.Path) && r.Grant == RW && !p.Spec.Policy.ExecRW {
				return fmt.Sprintf("%s lies in a writable path, where nothing is executed: --exec-writable allows it", name)
			}
			if below(name, r.Path) && r.Grant == RO {
				return "look at the file's own permissions and at its interpreter"
			}
		}
		return fmt.Sprintf("%s lies outside of what the policy lets it execute: --ro %s", name, filepath.Dir(name))
	case errors.Is(err, unix.ENOEXEC):
		return "the file is no program of this machine; a script needs a first line like #!/bin/sh"
	}
	return ""
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

// Probe reports what this host enforces; see probe_linux.go.
func (p *Platform) Probe(ctx context.Context) (platform.Report, error) { return p.probe(ctx) }
