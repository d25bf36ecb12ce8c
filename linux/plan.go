// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/landlock"
	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/netbpf"
	"github.com/tholehq/thole/linux/seccomp"
	"github.com/tholehq/thole/linux/verify"
	"github.com/tholehq/thole/linux/view"
)

// Plan is one start, compiled: what every layer will hold, and what it cannot.
type Plan struct {
	Module string
	// Leaf: a cgroup leaf is made, with these limits.
	Leaf   bool
	Limits cgroup.Limits
	// Net is the kernel's rule set, nil where no cgroup program is in force.
	Net *netbpf.Image
	// Addresses: the rules look at addresses, so that the host's own ones and
	// its resolvers are kept up to date in the kernel's tables.
	Addresses bool
	// NProc bounds the processes of the ephemeral uid, where no controller
	// counts those of the leaf; 0: no bound.
	NProc uint64
	// Landlock is built in the parent and enforced in the child.
	Landlock landlock.Ruleset
	// Seccomp is installed last.
	Seccomp seccomp.Program
	// View is the private tree; nil: the host's own.
	View *view.View
	// Ephemeral: the job runs as the leaf's uid.
	Ephemeral bool
	// UserNS: the process is made in a user namespace of its own.
	UserNS bool
	// Owners are the id mappings that the view needs, by handle.
	Owners []Owner
	// Groups are the supplementary groups of an ephemeral uid.
	Groups []int
	// LastCap bounds the capabilities that are dropped.
	LastCap int
	// Spec is what was asked, resolved.
	Spec Resolved
	// Missing are the gaps, refusing ones first.
	Missing []platform.Gap

	host Host
	effects
}

// Owner is an id mapping: what the owner on disk owns, the job owns.
type Owner struct {
	Handle   string
	UID, GID int
}

// placeholder prints for the uid that a start draws.
const placeholder = -1

// Gaps returns what was asked and cannot be enforced here.
func (p *Plan) Gaps() []platform.Gap { return p.Missing }

// String prints the whole plan: what goldens compare and `policy show` shows.
// The uid and the descriptors of a start are names in it.
func (p *Plan) String() string {
	var b strings.Builder
	id := "the caller's uid"
	switch {
	case p.Ephemeral:
		id = "an ephemeral uid"
	case p.UserNS:
		id = "the caller's uid in a user namespace"
	}
	fmt.Fprintf(&b, "identity: %s, no capabilities\n", id)
	if p.Leaf {
		b.WriteString("cgroup: a leaf of its own\n")
		for _, s := range p.Limits.Settings() {
			fmt.Fprintf(&b, "  %s = %s\n", s.File, s.Value)
		}
	} else {
		b.WriteString("cgroup: none of its own\n")
	}
	if p.NProc != 0 {
		fmt.Fprintf(&b, "  RLIMIT_NPROC of the ephemeral uid = %d\n", p.NProc)
	}
	if p.Net != nil {
		b.WriteString(p.Net.String())
		if p.Addresses {
			b.WriteString("  the host's own addresses are followed\n")
		}
	} else {
		b.WriteString("cgroup-bpf: none\n")
	}
	b.WriteString(p.Landlock.String())
	b.WriteString("seccomp:\n")
	for line := range strings.Lines(p.Seccomp.String()) {
		b.WriteString("  " + line)
	}
	if l, err := p.calls(steps{uid: placeholder, self: false}); err != nil {
		fmt.Fprintf(&b, "launch: %v\n", err)
	} else {
		b.WriteString("launch:\n  fds        close_range(…)  # every descriptor that no call below names\n")
		for line := range strings.Lines(l.String()) {
			b.WriteString("  " + line)
		}
	}
	for _, g := range p.Missing {
		kind := "hardening missing"
		if g.Required {
			kind = "GAP"
		}
		fmt.Fprintf(&b, "%s: %s: %s", kind, g.Capability, g.Reason)
		if g.Pos != "" {
			fmt.Fprintf(&b, " (asked at %s)", g.Pos)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// expect returns what the kernel must show of the process.
func (p *Plan) expect(uid int, cgroupPath, ownMount, ownIPC string) verify.Expect {
	e := verify.Expect{Filters: len(p.filters()), UID: -1, GID: -1, NoCaps: true, Cgroup: cgroupPath, Groups: p.Groups}
	if p.Ephemeral {
		e.UID, e.GID = uid, uid
	} else if !p.host.Root && !p.UserNS {
		// An ordinary process without capabilities keeps its bounding set: it
		// may not drop it. no_new_privs keeps the set from meaning anything.
		e.NoCaps = false
	}
	if p.View != nil {
		e.NotMount, e.NotIPC = ownMount, ownIPC
		e.View = shown(p.View.Mounts())
	}
	return e
}

// shown says how the kernel prints the mounts of a view.
func shown(mounts []view.Mount) *verify.View {
	v := &verify.View{}
	for _, m := range mounts {
		o := verify.Mount{Path: m.Path, Type: m.Type, Options: []string{"nosuid", "ro"}}
		if m.Writable {
			o.Options[1] = "rw"
			v.Writable = append(v.Writable, m.Path)
		}
		if m.Path != "/" {
			o.Options = append(o.Options, "nodev")
		}
		if m.NoExec {
			o.Options = append(o.Options, "noexec")
		}
		if m.IDMapped {
			o.Options = append(o.Options, "idmapped")
		}
		if m.Type == "proc" {
			o.Super = "hidepid=invisible"
		}
		v.Mounts = append(v.Mounts, o)
	}
	return v
}

// calls compiles the launch; see launchlist.go.
func (p *Plan) calls(s steps) (launch.List, error) { return compileLaunch(p, s) }
