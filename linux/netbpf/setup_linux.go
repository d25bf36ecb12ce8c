// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// Attach types that x/sys does not name (include/uapi/linux/bpf.h, 6.7).
const (
	cgroupUnixConnect = 49
	cgroupUnixSendmsg = 50
)

// hooks are the programs by name, in the order of flat.Hook.
var hooks = [...]struct {
	program string
	attach  uint32
}{
	flat.HookConnect4:    {"thole_connect4", unix.BPF_CGROUP_INET4_CONNECT},
	flat.HookConnect6:    {"thole_connect6", unix.BPF_CGROUP_INET6_CONNECT},
	flat.HookSendmsg4:    {"thole_sendmsg4", unix.BPF_CGROUP_UDP4_SENDMSG},
	flat.HookSendmsg6:    {"thole_sendmsg6", unix.BPF_CGROUP_UDP6_SENDMSG},
	flat.HookBind4:       {"thole_bind4", unix.BPF_CGROUP_INET4_BIND},
	flat.HookBind6:       {"thole_bind6", unix.BPF_CGROUP_INET6_BIND},
	flat.HookSockCreate:  {"thole_sock_create", unix.BPF_CGROUP_INET_SOCK_CREATE},
	flat.HookConnectUnix: {"thole_connect_unix", cgroupUnixConnect},
	flat.HookSendmsgUnix: {"thole_sendmsg_unix", cgroupUnixSendmsg},
}

func attachType(hook int) uint32 { return hooks[hook].attach }

func isUnix(hook int) bool {
	return hook == int(flat.HookConnectUnix) || hook == int(flat.HookSendmsgUnix)
}

// setup makes or mends everything; the caller holds the lock. dir is the
// directory of all ABIs of this parent.
func (e *Enforcer) setup(dir string) error {
	for _, d := range []string{dir, e.pins} {
		if err := unix.Mkdir(d, 0o700); err != nil && err != unix.EEXIST {
			return &Error{Step: "make directory", Object: d, Err: err, Hint: hint(err)}
		}
	}
	im, err := flat.Net()
	if err != nil {
		return &Error{Step: "decode programs", Err: err}
	}
	if err := e.renew(im); err != nil {
		return err
	}
	l := loader{e: e, image: im, knobs: flat.Knobs{Parent: e.parentID, Level: e.level(), SetRetval: 1}, private: map[string]int{}}
	defer l.close()
	l.types, _ = parseBTF(readFile("/sys/kernel/btf/vmlinux"))
	l.knobs.OffUaddr, l.knobs.OffUaddrlen = l.types.uaddr, l.types.uaddrlen
	for i := range im.Maps {
		if m := &im.Maps[i]; m.Contents == nil {
			if err := e.pinMap(m); err != nil {
				return err
			}
		}
	}
	meta, err := e.fd("meta")
	if err != nil {
		return err
	}
	var zero uint32
	state := flat.Meta{Parent: e.parentID, Table: tableHash()}
	copy(state.Digest[:], flat.Digest)
	if err := mapUpdate(meta, &zero, &state, unix.BPF_ANY); err != nil {
		return &Error{Step: "write map", Object: "meta", Err: err}
	}
	if err := e.fillSpecial(); err != nil {
		return err
	}
	for hook := range hooks {
		p := l.program(hooks[hook].program)
		if p == nil {
			continue
		}
		id, err := l.install(hook, p)
		if err != nil && isUnix(hook) {
			// An older kernel, or one without BTF: reported by Features.
			continue
		}
		if err != nil {
			return err
		}
		state.Progs[hook] = id
	}
	if state.Progs[flat.HookConnectUnix] != 0 && state.Progs[flat.HookSendmsgUnix] != 0 {
		state.Features |= featUnix
	}
	if l.knobs.SetRetval != 0 {
		state.Features |= featRetval
	}
	state.Complete = 1
	if err := mapUpdate(meta, &zero, &state, unix.BPF_ANY); err != nil {
		return &Error{Step: "write map", Object: "meta", Err: err}
	}
	e.features = state.Features
	return nil
}

// searchLevel makes tests take the way of a process in a cgroup namespace.
var searchLevel bool

// level is the parent's depth, or -1 where a cgroup namespace hides it: the
// programs then search for the parent among the caller's ancestors.
func (e *Enforcer) level() int32 {
	if searchLevel {
		return -1
	}
	const initial = 0xEFFFFFFB // PROC_CGROUP_INIT_INO
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/cgroup", &st) != nil || st.Ino != initial {
		return -1
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink("/proc/self/fd/"+itoa(e.parentFD), buf)
	if err != nil {
		return -1
	}
	return int32(cgroupLevel(readFile("/proc/self/mountinfo"), string(buf[:n])))
}

// pinMap opens or creates a shared map. What is pinned has this build's
// layout: see renew.
func (e *Enforcer) pinMap(m *flat.Map) error {
	path := e.pins + "/" + m.Name
	fd, err := objGet(path)
	if err != nil {
		if err != unix.ENOENT {
			return &Error{Step: "open pinned map", Object: path, Err: err, Hint: hint(err)}
		}
		inner := -1
		if m.Inner != nil {
			if inner, err = mapCreate(m.Inner, -1); err != nil {
				return &Error{Step: "create map", Object: m.Inner.Name, Err: err, Hint: hint(err)}
			}
			defer unix.Close(inner)
		}
		if fd, err = mapCreate(m, inner); err != nil {
			return &Error{Step: "create map", Object: m.Name, Err: err, Hint: hint(err)}
		}
		if err := objPin(fd, path); err != nil {
			unix.Close(fd)
			return &Error{Step: "pin map", Object: path, Err: err, Hint: hint(err)}
		}
	}
	e.mu.Lock()
	if old, ok := e.fds[m.Name]; ok {
		unix.Close(old)
	}
	e.fds[m.Name] = fd
	e.mu.Unlock()
	return nil
}

// loader holds what one load needs beyond the pinned maps.
type loader struct {
	e       *Enforcer
	image   *flat.Image
	knobs   flat.Knobs
	types   kernelTypes
	private map[string]int
}

func (l *loader) close() {
	for _, fd := range l.private {
		unix.Close(fd)
	}
	clear(l.private)
}

func (l *loader) program(name string) *flat.Program {
	for i := range l.image.Programs {
		if l.image.Programs[i].Name == name {
			return &l.image.Programs[i]
		}
	}
	return nil
}

// mapFD returns a pinned map, or makes the frozen map of read-only data.
func (l *loader) mapFD(name string) (int, error) {
	for i := range l.image.Maps {
		m := &l.image.Maps[i]
		if m.Name != name || m.Contents == nil {
			continue
		}
		if fd, ok := l.private[name]; ok {
			return fd, nil
		}
		if len(m.Contents) < flat.KnobsSize {
			return -1, unix.EINVAL
		}
		value := append([]byte(nil), m.Contents...)
		*(*flat.Knobs)(unsafe.Pointer(&value[0])) = l.knobs
		var zero uint32
		named := *m
		named.Name = "thole_rodata"
		fd, err := mapCreate(&named, -1)
		if err != nil {
			return -1, err
		}
		l.private[name] = fd
		if err := mapUpdate(fd, &zero, &value[0], unix.BPF_ANY); err != nil {
			return -1, err
		}
		return fd, mapFreeze(fd)
	}
	return l.e.fd(name)
}

// relocate returns p's instructions with every reference filled in.
func (l *loader) relocate(p *flat.Program) ([]byte, error) {
	out := append([]byte(nil), p.Insns...)
	for _, r := range p.Relocs {
		imm := out[r.Insn*8+4:]
		if r.Kind == flat.RelocKfunc {
			if r.Name != "bpf_cast_to_kern_ctx" || !l.types.complete() {
				return nil, unix.EOPNOTSUPP
			}
			binary.LittleEndian.PutUint32(imm, l.types.cast)
			continue
		}
		fd, err := l.mapFD(r.Name)
		if err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint32(imm, uint32(fd))
	}
	return out, nil
}

func (l *loader) load(p *flat.Program) (int, error) {
	insns, err := l.relocate(p)
	if err != nil {
		return -1, &Error{Step: "prepare program", Object: p.Name, Err: err, Hint: hint(err)}
	}
	fd, log, err := progLoad(p, insns)
	if err != nil {
		return -1, &Error{Step: "load program", Object: p.Name, Err: err, Hint: hint(err), Log: log}
	}
	return fd, nil
}

// install loads a program and puts it behind the hook's link: in place where
// the link lives, by a new link otherwise. It returns the program's id.
func (l *loader) install(hook int, p *flat.Program) (uint32, error) {
	fd, err := l.load(p)
	if err != nil && hook == int(flat.HookSockCreate) && l.knobs.SetRetval != 0 {
		// The knob is part of the frozen data: make another for the rest.
		first := err
		l.knobs.SetRetval = 0
		l.close()
		if fd, err = l.load(p); err != nil {
			return 0, first
		}
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var info progInfo
	if err := objInfo(fd, &info); err != nil {
		return 0, &Error{Step: "inspect program", Object: p.Name, Err: err}
	}
	return info.ID, l.e.attach(hook, fd)
}

func (e *Enforcer) attach(hook, prog int) error {
	name := hooks[hook].program
	path := e.pins + "/link_" + name
	link, err := objGet(path)
	if err == nil {
		var info linkInfo
		err = objInfo(link, &info)
		if err == nil && info.Cgroup == e.parentID && info.Attach == hooks[hook].attach {
			err = linkUpdate(link, prog)
			unix.Close(link)
			if err != nil {
				return &Error{Step: "update link", Object: path, Err: err, Hint: hint(err)}
			}
			return nil
		}
		// Its cgroup was removed, or somebody detached it.
		unix.Close(link)
		if err := unix.Unlink(path); err != nil {
			return &Error{Step: "remove dead link", Object: path, Err: err, Hint: hint(err)}
		}
	} else if err != unix.ENOENT {
		return &Error{Step: "open pinned link", Object: path, Err: err, Hint: hint(err)}
	}
	if err := e.alone(hook); err != nil {
		return err
	}
	link, err = linkCreate(prog, e.parentFD, hooks[hook].attach)
	if err != nil {
		return &Error{Step: "attach program", Object: name, Err: err, Hint: hint(err)}
	}
	defer unix.Close(link)
	if err := objPin(link, path); err != nil {
		return &Error{Step: "pin link", Object: path, Err: err, Hint: hint(err)}
	}
	return nil
}

// alone refuses to attach beside a program of ours that has other maps: each
// would deny the other's sandboxes for want of a policy.
func (e *Enforcer) alone(hook int) error {
	var ids [64]uint32
	n, err := progQuery(e.parentFD, hooks[hook].attach, ids[:])
	if err != nil {
		// A kernel without the hook; attaching says so as well.
		return nil
	}
	want := object(hooks[hook].program)
	for _, id := range ids[:min(n, len(ids))] {
		if name, err := progName(id); err == nil && name == want {
			return &Error{Step: "attach program", Object: hooks[hook].program, Err: unix.EBUSY,
				Hint: "programs pinned elsewhere already enforce in " + e.parentPath + "; use their bpf file system or another parent"}
		}
	}
	return nil
}
