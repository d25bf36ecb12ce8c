// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/seccomp"
)

// Names of the descriptors that a start opens for its child.
const (
	hStatus     = "status"      // child → parent: reports
	hStatusRead = "status.read" // the parent's end, closed in the child
	hGate       = "gate"        // parent → child: one byte opens it
	hGateWrite  = "gate.write"  // the parent's end, closed in the child
	hRules      = "rules"       // the Landlock ruleset
)

var hStd = [3]string{"stdin", "stdout", "stderr"}

// steps are the facts of one start that a plan does not hold.
type steps struct {
	uid  int  // the ephemeral uid and gid
	self bool // the launcher itself becomes the program
	// std: the standard descriptors to put in place.
	std [3]bool
	// nofile is the soft limit on descriptors to restore; 0: leave it.
	nofileSoft, nofileHard uint64
}

// Values of the kernel's headers.
const (
	cloneNewNS   = 0x00020000
	cloneNewIPC  = 0x08000000
	cloneNewUser = 0x10000000

	prSetNoNewPrivs = 38
	prCapbsetDrop   = 24
	prCapAmbient    = 47
	ambientClearAll = 4

	rlimitNofile = 7
	rlimitNproc  = 6
	rlimitCore   = 4

	setModeFilter    = 1
	closeRangeExec   = 4
	openDirectory    = 0o200000 // amd64; see openDir
	eacces           = 13
	fDupFD           = 0
	fGetFD           = 1
	fdCloexec        = 1
	capabilityHeader = 0x20080522 // _LINUX_CAPABILITY_VERSION_3
)

// namespaces returns the CLONE_NEW flags of the plan.
func (p *Plan) namespaces() (flags uint64, text string) {
	if p.View == nil {
		return 0, ""
	}
	flags, text = cloneNewNS|cloneNewIPC, "CLONE_NEWNS|CLONE_NEWIPC"
	if p.UserNS {
		flags, text = flags|cloneNewUser, "CLONE_NEWUSER|"+text
	}
	return flags, text
}

// compileLaunch makes the list of system calls between clone and the
// program's first instruction.
func compileLaunch(p *Plan, s steps) (launch.List, error) {
	var l launch.List
	if s.self {
		if f, text := p.namespaces(); f != 0 {
			l.Add("view", launch.Op{Call: launch.Unshare, Args: []launch.Arg{launch.Named(f, text)}})
		}
	} else {
		// Its own copies of the parent's ends would keep the pipes open when
		// the parent is gone.
		for _, h := range []string{hStatusRead, hGateWrite} {
			l.Add("gate", launch.Op{Call: launch.Close, Args: []launch.Arg{launch.Handle(h)}})
		}
	}
	if p.UserNS {
		l.Add("userns", launch.Op{Call: launch.Read, Args: gateArgs(), Want: launch.Exactly(1), Note: "until the parent has written the id maps"})
	}
	l.Add("limits", setLimit(rlimitCore, "RLIMIT_CORE", 0, 0, "no core dumps"))
	if p.NProc != 0 {
		l.Add("limits", setLimit(rlimitNproc, "RLIMIT_NPROC", p.NProc, p.NProc, "no controller counts processes here"))
	}
	if s.nofileSoft != 0 {
		l.Add("limits", setLimit(rlimitNofile, "RLIMIT_NOFILE", s.nofileSoft, s.nofileHard, "as the caller had it"))
	}
	if p.View != nil {
		v := *p.View
		if p.Ephemeral {
			v.UID, v.GID = s.uid, s.uid
		}
		l = append(l, v.Ops()...)
	}
	for i, std := range s.std {
		if std {
			l.Add("stdio", launch.Op{Call: launch.Dup3, Args: []launch.Arg{launch.Handle(hStd[i]), launch.Num(int64(i)), launch.Num(0)}})
		}
	}
	p.addIdentity(&l, s)
	l.Add("workdir", launch.Op{Call: launch.Chdir, Args: []launch.Arg{launch.Str(p.Spec.Dir)}, Note: "with the job's rights"})
	l.Add("privs", launch.Op{Call: launch.Prctl, Args: []launch.Arg{launch.Named(prSetNoNewPrivs, "PR_SET_NO_NEW_PRIVS"), launch.Num(1), launch.Num(0), launch.Num(0), launch.Num(0)}})
	l.Add("landlock",
		launch.Op{Call: launch.LandlockRestrictSelf, Args: []launch.Arg{launch.Handle(hRules), launch.Num(0)}},
		launch.Op{Call: launch.OpenAt, Args: []launch.Arg{launch.Named(^uint64(99), "AT_FDCWD"), launch.Str("/"), launch.Named(openDir(p.host.Arch), "O_RDONLY|O_DIRECTORY"), launch.Num(0)},
			Want: launch.Exactly(-eacces), Note: "a forbidden act, to see that the domain is in force"})
	witness := launch.NewSlot("witness")
	l.Add("fds",
		launch.Op{Call: launch.Fcntl, Args: []launch.Arg{launch.Handle(hStatus), launch.Named(fDupFD, "F_DUPFD"), launch.Num(3)}, Save: witness, Note: "one that would be inherited"},
		launch.Op{Call: launch.CloseRange, Args: []launch.Arg{launch.Num(3), launch.Named(0xffffffff, "~0"), launch.Named(closeRangeExec, "CLOSE_RANGE_CLOEXEC")}, Note: "nothing but the standard descriptors is inherited"},
		launch.Op{Call: launch.Fcntl, Args: []launch.Arg{launch.From(witness), launch.Named(fGetFD, "F_GETFD")}, Want: launch.Exactly(fdCloexec), Note: "and so that one is not"})
	for _, prog := range p.filters() {
		if err := addSeccomp(&l, prog); err != nil {
			return nil, err
		}
	}
	ready := launch.ReadyReport()
	l.Add("gate",
		launch.Op{Call: launch.Write, Args: []launch.Arg{launch.Handle(hStatus), launch.Ptr(ready), launch.Num(launch.ReportSize)}, Want: launch.Exactly(launch.ReportSize), Note: "confined"},
		launch.Op{Call: launch.Read, Args: gateArgs(), Want: launch.Exactly(1), Note: "until the parent has verified"})
	argv := launch.Vector(fmt.Sprintf("%q", p.Spec.Argv), p.Spec.Argv)
	envp := launch.Vector(fmt.Sprintf("[%d variables]", len(p.Spec.Env)), p.Spec.Env)
	l.Add("exec", launch.Op{Call: launch.Execve, Args: []launch.Arg{launch.Str(p.Spec.Path), launch.Ptr(argv), launch.Ptr(envp)}})
	return l, nil
}

// closeOthers closes every descriptor above the standard ones that no handle
// names.
func closeOthers(handles map[string]int) launch.List {
	keep := slices.Sorted(maps.Values(handles))
	var l launch.List
	next := 3
	gap := func(last uint64, text string) {
		if uint64(next) <= last {
			l.Add("fds", launch.Op{Call: launch.CloseRange, Args: []launch.Arg{launch.Num(int64(next)), launch.Named(last, text), launch.Num(0)}})
		}
	}
	for _, fd := range keep {
		if fd >= next {
			gap(uint64(fd)-1, strconv.Itoa(fd-1))
			next = fd + 1
		}
	}
	gap(0xffffffff, "~0")
	return l
}

// addIdentity gives up every capability, and the ids where the plan says so.
func (p *Plan) addIdentity(l *launch.List, s steps) {
	if p.host.Root || p.UserNS {
		for c := 0; c <= p.LastCap; c++ {
			note := ""
			if c == 0 {
				note = "the bounding set, one capability a call"
			}
			l.Add("identity", launch.Op{Call: launch.Prctl, Args: []launch.Arg{launch.Named(prCapbsetDrop, "PR_CAPBSET_DROP"), launch.Num(int64(c)), launch.Num(0), launch.Num(0), launch.Num(0)}, Note: note})
		}
	}
	l.Add("identity", launch.Op{Call: launch.Prctl, Args: []launch.Arg{launch.Named(prCapAmbient, "PR_CAP_AMBIENT"), launch.Named(ambientClearAll, "PR_CAP_AMBIENT_CLEAR_ALL"), launch.Num(0), launch.Num(0), launch.Num(0)}})
	if p.Ephemeral {
		groups := &launch.Blob{Bytes: make([]byte, 4*len(p.Groups)), Text: fmt.Sprint(p.Groups)}
		for i, g := range p.Groups {
			binary.NativeEndian.PutUint32(groups.Bytes[4*i:], uint32(g))
		}
		uid := launch.Num(int64(s.uid))
		if s.uid == placeholder {
			uid = launch.Named(0, "UID")
		}
		l.Add("identity",
			launch.Op{Call: launch.Setgroups, Args: []launch.Arg{launch.Num(int64(len(p.Groups))), launch.Ptr(groups)}},
			launch.Op{Call: launch.Setresgid, Args: []launch.Arg{uid, uid, uid}},
			launch.Op{Call: launch.Setresuid, Args: []launch.Arg{uid, uid, uid}})
	}
	head := &launch.Blob{Bytes: make([]byte, 8), Text: "{v3, self}"}
	binary.NativeEndian.PutUint32(head.Bytes, capabilityHeader)
	l.Add("identity", launch.Op{Call: launch.Capset, Args: []launch.Arg{launch.Ptr(head), launch.Ptr(&launch.Blob{Bytes: make([]byte, 24), Text: "{none}"})}})
}

func setLimit(resource uint64, name string, soft, hard uint64, note string) launch.Op {
	b := &launch.Blob{Bytes: make([]byte, 16), Text: fmt.Sprintf("{%d, %d}", soft, hard)}
	binary.NativeEndian.PutUint64(b.Bytes, soft)
	binary.NativeEndian.PutUint64(b.Bytes[8:], hard)
	return launch.Op{Call: launch.Prlimit, Args: []launch.Arg{launch.Num(0), launch.Named(resource, name), launch.Ptr(b), launch.Num(0)}, Note: note}
}

func gateArgs() []launch.Arg {
	return []launch.Arg{launch.Handle(hGate), launch.Ptr(&launch.Blob{Bytes: make([]byte, 1), Text: "byte"}), launch.Num(1)}
}

// filters returns the seccomp program in the two parts that are installed: the
// kernel logs what the first refuses, and not the answers of the second, with
// which a C library is only told to use an older call.
func (p *Plan) filters() []seccomp.Program {
	loud, quiet := p.Seccomp.Split()
	return []seccomp.Program{loud, quiet}
}

// addSeccomp installs one filter: last, so that it need not allow what the
// launch does.
func addSeccomp(l *launch.List, prog seccomp.Program) error {
	filter, err := seccomp.Compile(prog)
	if err != nil {
		return fmt.Errorf("compile seccomp filter: %w", err)
	}
	insns := &launch.Blob{Bytes: make([]byte, 8*len(filter))}
	for i, f := range filter {
		binary.NativeEndian.PutUint16(insns.Bytes[8*i:], f.Code)
		insns.Bytes[8*i+2], insns.Bytes[8*i+3] = f.Jt, f.Jf
		binary.NativeEndian.PutUint32(insns.Bytes[8*i+4:], f.K)
	}
	// struct sock_fprog: a length and, eight bytes on, the address.
	fprog := &launch.Blob{Bytes: make([]byte, 16), Text: fmt.Sprintf("{%d instructions}", len(filter))}
	binary.NativeEndian.PutUint16(fprog.Bytes, uint16(len(filter)))
	fprog.PutAddress(8, insns)
	l.Add("seccomp", launch.Op{Call: launch.Seccomp, Args: []launch.Arg{launch.Named(setModeFilter, "SECCOMP_SET_MODE_FILTER"), launch.Named(uint64(prog.Flags()), flagText(prog.Flags())), launch.Ptr(fprog)}})
	return nil
}

func flagText(f uint32) string {
	if f == 0 {
		return "0"
	}
	return "SECCOMP_FILTER_FLAG_LOG"
}

// openDir is O_DIRECTORY, which differs between architectures.
func openDir(a seccomp.Arch) uint64 {
	if a == seccomp.ARM64 {
		return 0o40000
	}
	return openDirectory
}
