// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"os"
	"slices"
	"strings"

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
	return e.locked(func() error { return e.attachTo(cgroup) })
}

func (e *Enforcer) attachTo(cgroup int) error {
	dir := e.foreignPins()
	if err := unix.Mkdir(dir, 0o700); err != nil && err != unix.EEXIST {
		return &Error{Step: "make directory", Object: dir, Err: err, Hint: hint(err)}
	}
	im, err := flat.Net()
	if err != nil {
		return &Error{Step: "decode programs", Err: err}
	}
	l := loader{e: e, image: im, private: map[string]int{}}
	defer l.close()
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

// foreignPrefix starts the names of the directories that hold the programs of
// AttachTo, one for each build.
const foreignPrefix = "any_"

func (e *Enforcer) foreignPins() string {
	const digits = "0123456789abcdef"
	name := make([]byte, 0, 16)
	for _, c := range []byte(flat.Digest[:8]) {
		name = append(name, digits[c>>4], digits[c&15])
	}
	return e.pins + "/" + foreignPrefix + string(name)
}

// dropForeign removes the pinned programs of the builds that drop names, by
// their directory. Where they are attached they stay.
func (e *Enforcer) dropForeign(drop func(dir string) bool) error {
	dirs, err := e.foreignDirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !drop(dir) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return &Error{Step: "remove pins", Object: dir, Err: err, Hint: hint(err)}
		}
	}
	return nil
}

func (e *Enforcer) foreignDirs() ([]string, error) {
	pins, err := os.ReadDir(e.pins)
	if err != nil {
		return nil, &Error{Step: "list pins", Object: e.pins, Err: err}
	}
	var dirs []string
	for _, pin := range pins {
		if strings.HasPrefix(pin.Name(), foreignPrefix) {
			dirs = append(dirs, e.pins+"/"+pin.Name())
		}
	}
	return dirs, nil
}

// cleanForeign removes the programs of other builds that no cgroup with a
// policy runs.
func (e *Enforcer) cleanForeign() error {
	dirs, err := e.foreignDirs()
	if err != nil || len(dirs) == 0 || len(dirs) == 1 && dirs[0] == e.foreignPins() {
		return err
	}
	// AttachTo pins and attaches under the lock, and its policy came before.
	return e.locked(func() error {
		running, known, err := e.running()
		if err != nil || !known {
			return err
		}
		return e.dropForeign(func(dir string) bool {
			if dir == e.foreignPins() {
				return false
			}
			for hook := range hooks {
				if id, err := pinnedProgram(dir + "/" + hooks[hook].program); err == nil && running[id] {
					return false
				}
			}
			return true
		})
	})
}

// running returns the ids of the programs that are attached to cgroups with a
// policy. known is false where this process may not look.
func (e *Enforcer) running() (ids map[uint32]bool, known bool, err error) {
	fd, err := e.fd("policies")
	if err != nil {
		return nil, false, err
	}
	cgroups, err := mapKeys[uint64](fd)
	if err != nil {
		return nil, false, &Error{Step: "list map", Object: "policies", Err: err}
	}
	ids = map[uint32]bool{}
	for _, id := range cgroups {
		cg, err := e.openCgroup(id)
		if err == unix.ESTALE {
			continue
		}
		if err != nil {
			return nil, false, nil
		}
		for hook := range hooks {
			for _, prog := range attached(cg, hooks[hook].attach) {
				ids[prog] = true
			}
		}
		unix.Close(cg)
	}
	return ids, true, nil
}

// pinnedProgram returns the id of a pinned program.
func pinnedProgram(path string) (uint32, error) {
	fd, err := objGet(path)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var info progInfo
	err = objInfo(fd, &info)
	return info.ID, err
}

// forForeign sets what the programs are told, once. The types are long to
// read: only who loads a program waits for them.
func (l *loader) forForeign() {
	if l.knobs.Level < 0 {
		return
	}
	l.knobs.Level = -1
	if l.e.features&featRetval != 0 {
		l.knobs.SetRetval = 1
	}
	if l.e.features&featUnix != 0 {
		l.types, _ = parseBTF(readFile("/sys/kernel/btf/vmlinux"))
		l.knobs.OffUaddr, l.knobs.OffUaddrlen = l.types.uaddr, l.types.uaddrlen
	}
}

func (l *loader) attachForeign(cgroup, hook int, p *flat.Program, dir string) error {
	path := dir + "/" + p.Name
	fd, err := objGet(path)
	if err == unix.ENOENT {
		l.forForeign()
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
		prog, err := pinnedProgram(path)
		if err != nil {
			return &Error{Step: "open pinned program", Object: path, Err: err, Hint: hint(err)}
		}
		if !attachedTo(cgroup, hooks[hook].attach, prog) {
			return &Error{Step: "verify", Object: hooks[hook].program, Err: ErrNotAttached}
		}
	}
	return nil
}

func attachedTo(cgroup int, attach, prog uint32) bool {
	return slices.Contains(attached(cgroup, attach), prog)
}

// attached returns the ids of the programs at a cgroup itself; none where the
// kernel does not say.
func attached(cgroup int, attach uint32) []uint32 {
	var ids [64]uint32 // BPF_CGROUP_MAX_PROGS
	n, err := progQuery(cgroup, attach, ids[:])
	if err != nil {
		return nil
	}
	return ids[:min(n, len(ids))]
}
