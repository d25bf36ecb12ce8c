// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// allowMulti is BPF_F_ALLOW_MULTI: other programs may be attached beside.
const allowMulti = 1 << 1

// AttachTo puts the programs on a cgroup that somebody else made, beside what
// is attached there. Put the cgroup's policy before: a process without one is
// not judged.
//
// The attachment needs no link and no pin: it goes with the cgroup. The
// programs are the same, told to look for the caller's deepest ancestor that
// has a policy, and are loaded once per host and build.
func (e *Enforcer) AttachTo(cgroup int) error {
	if err := unix.Flock(e.parentFD, unix.LOCK_EX); err != nil {
		return &Error{Step: "lock", Object: e.parentPath, Err: err}
	}
	defer unix.Flock(e.parentFD, unix.LOCK_UN)
	dir := e.foreignPins()
	if err := unix.Mkdir(dir, 0o700); err != nil && err != unix.EEXIST {
		return &Error{Step: "make directory", Object: dir, Err: err, Hint: hint(err)}
	}
	im, err := flat.Net()
	if err != nil {
		return &Error{Step: "decode programs", Err: err}
	}
	l := loader{e: e, image: im, knobs: flat.Knobs{Level: -1}, private: map[string]int{}}
	defer l.close()
	if e.features&featRetval != 0 {
		l.knobs.SetRetval = 1
	}
	if e.features&featUnix != 0 {
		l.types, _ = parseBTF(readFile("/sys/kernel/btf/vmlinux"))
		l.knobs.OffUaddr, l.knobs.OffUaddrlen = l.types.uaddr, l.types.uaddrlen
	}
	for hook := range hooks {
		p := l.program(hooks[hook].program)
		if p == nil || isUnix(hook) && e.features&featUnix == 0 {
			continue
		}
		if err := l.attachForeign(cgroup, hook, p, dir); err != nil {
			return err
		}
	}
	return nil
}

func (e *Enforcer) foreignPins() string {
	const digits = "0123456789abcdef"
	name := make([]byte, 0, 16)
	for _, c := range []byte(flat.Digest[:8]) {
		name = append(name, digits[c>>4], digits[c&15])
	}
	return e.pins + "/any_" + string(name)
}

func (l *loader) attachForeign(cgroup, hook int, p *flat.Program, dir string) error {
	path := dir + "/" + p.Name
	fd, err := objGet(path)
	if err == unix.ENOENT {
		if fd, err = l.load(p); err != nil {
			return err
		}
		if err := objPin(fd, path); err != nil {
			unix.Close(fd)
			return &Error{Step: "pin program", Object: path, Err: err, Hint: hint(err)}
		}
	} else if err != nil {
		return &Error{Step: "open pinned program", Object: path, Err: err, Hint: hint(err)}
	}
	defer unix.Close(fd)
	var info progInfo
	if err := objInfo(fd, &info); err != nil {
		return &Error{Step: "inspect program", Object: path, Err: err}
	}
	if attachedTo(cgroup, hooks[hook].attach, info.ID) {
		return nil
	}
	if err := progAttach(fd, cgroup, hooks[hook].attach, allowMulti); err != nil {
		return &Error{Step: "attach program", Object: p.Name, Err: err, Hint: hint(err)}
	}
	return nil
}

// VerifyAt is Verify for a cgroup that the programs were attached to by
// AttachTo.
func (e *Enforcer) VerifyAt(cgroup int, id uint64) error {
	if err := e.verifyPolicy(id); err != nil {
		return err
	}
	for hook := range hooks {
		if hooks[hook].program == "" || isUnix(hook) && e.features&featUnix == 0 {
			continue
		}
		path := e.foreignPins() + "/" + hooks[hook].program
		fd, err := objGet(path)
		if err != nil {
			return &Error{Step: "open pinned program", Object: path, Err: err, Hint: hint(err)}
		}
		var info progInfo
		err = objInfo(fd, &info)
		unix.Close(fd)
		if err != nil || !attachedTo(cgroup, hooks[hook].attach, info.ID) {
			return &Error{Step: "verify", Object: hooks[hook].program, Err: ErrNotAttached}
		}
	}
	return nil
}

func attachedTo(cgroup int, attach, prog uint32) bool {
	var ids [64]uint32
	n, err := progQuery(cgroup, attach, ids[:])
	if err != nil {
		return false
	}
	for _, id := range ids[:min(n, len(ids))] {
		if id == prog {
			return true
		}
	}
	return false
}
