// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/landlock"
	"github.com/tholehq/thole/linux/netbpf"
	"github.com/tholehq/thole/linux/seccomp"
	"github.com/tholehq/thole/linux/view"
)

// Options are what a start may do about gaps.
type Options struct {
	// Accept names capabilities whose gaps are acceptable.
	Accept []platform.Capability
	// NoIDMap: the roots cannot be id-mapped; the job keeps the caller's ids.
	NoIDMap bool
	// Self: the launcher itself becomes the program.
	Self bool
}

func (o Options) accepts(c platform.Capability) bool { return slices.Contains(o.Accept, c) }

// Compile makes the plan for a resolved policy on a host. It is pure.
func Compile(h Host, r Resolved, o Options) (*Plan, error) {
	c := compiler{h: h, r: r, o: o, p: &Plan{Module: r.Policy.Module, Spec: r, LastCap: h.LastCap, host: h}}
	if err := c.nesting(); err != nil {
		return nil, err
	}
	if r.Policy.Net.Default == policy.Allow {
		at, _ := r.Policy.PosOf(policy.KeyDefault)
		return nil, &platform.Error{Kind: platform.ErrConfine, Capability: platform.NetNone, Pos: at.String(),
			Err:    errors.New(`default = "allow" is for cgroups that run already; a sandbox is closed by default`),
			Remedy: `take it out and name what is needed: net.mode = "egress-any", or rules in allow`}
	}
	c.identity()
	c.view()
	c.landlock()
	if err := c.network(); err != nil {
		return nil, err
	}
	c.seccomp()
	c.limits()
	return c.p, nil
}

type compiler struct {
	h Host
	r Resolved
	o Options
	p *Plan
}

func (c *compiler) gap(g platform.Gap) {
	if g.Required && !c.o.accepts(g.Capability) {
		c.p.Missing = append([]platform.Gap{g}, c.p.Missing...)
		return
	}
	g.Required = false
	c.p.Missing = append(c.p.Missing, g)
}

// nesting refuses a grant inside a stronger one of another kind, where no
// view can hold the difference: Landlock's rights add up along a path. No view
// at all can hold that a path inside a readable one is not read.
func (c *compiler) nesting() error {
	for _, in := range c.r.Roots {
		if in.Grant != WO {
			continue
		}
		for _, out := range c.r.Roots {
			if out.Grant != WO && below(in.Path, out.Path) {
				return &platform.Error{Kind: platform.ErrConfine, Capability: platform.FoldersWrite, Pos: in.Pos.String(),
					Err:    fmt.Errorf("%s (wo) lies inside %s (%s, %s): grants add up, so it could be read", in.Path, out.Path, out.Grant, out.Pos),
					Remedy: "put the outbox beside it"}
			}
		}
		for _, dir := range []string{c.r.Tmp, c.r.Shm} {
			if c.hasView() && dir != "" && below(in.Path, dir) {
				return &platform.Error{Kind: platform.ErrConfine, Capability: platform.FoldersWrite, Pos: in.Pos.String(),
					Err:    fmt.Errorf("%s (wo) lies inside %s, which is the program's own to read and write: grants add up", in.Path, dir),
					Remedy: "put the outbox elsewhere"}
			}
		}
		for _, b := range baseSystem {
			if below(in.Path, b.path) {
				return &platform.Error{Kind: platform.ErrConfine, Capability: platform.FoldersWrite, Pos: in.Pos.String(),
					Err:    fmt.Errorf("%s (wo) lies inside %s, which every program reads", in.Path, b.path),
					Remedy: "put the outbox elsewhere"}
			}
		}
	}
	for _, in := range c.r.Roots {
		for _, out := range c.r.Roots {
			if in.Path == out.Path || !below(in.Path, out.Path) || out.Grant != RW || in.Grant == RW {
				continue
			}
			if c.hasView() && path.Dir(in.Path) != out.Path {
				// A mount point cannot be renamed, a directory above it can, and
				// takes it along: something else would stand at its path.
				return &platform.Error{Kind: platform.ErrConfine, Capability: platform.FS, Pos: in.Pos.String(),
					Err:    fmt.Errorf("%s (%s) lies more than one level inside %s (rw, %s), where a directory between them can be renamed", in.Path, in.Grant, out.Path, out.Pos),
					Remedy: "grant " + strings.TrimSuffix(out.Path, "/") + "/" + first(in.Path, out.Path) + " instead, or take it out"}
			}
			if !c.hasView() {
				return &platform.Error{Kind: platform.ErrConfine, Capability: platform.FS, Pos: in.Pos.String(),
					Err:    fmt.Errorf("%s (%s) lies inside %s (rw, %s): grants add up, so it would be writable", in.Path, in.Grant, out.Path, out.Pos),
					Remedy: "take it out, or run as root, where a private view holds it read-only"}
			}
		}
	}
	return nil
}

// first is the first segment of p below dir.
func first(p, dir string) string {
	seg, _, _ := strings.Cut(strings.TrimPrefix(p, strings.TrimSuffix(dir, "/")+"/"), "/")
	return seg
}

// below reports whether p is dir or lies below it.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func (c *compiler) hasView() bool { return c.h.Root || c.h.UserNS && !c.o.Self }

func (c *compiler) identity() {
	p := c.p
	p.Leaf = c.h.Root
	switch {
	case c.h.Root && !c.o.NoIDMap:
		p.Ephemeral = true
		p.Groups = c.r.DeviceGroups
	case c.h.Root:
		c.gap(platform.Gap{Capability: platform.Identity, Required: true,
			Reason: "the job runs with the caller's own ids, without capabilities, and may read what the base system shows to them (as root: /etc/shadow): a granted path is on a file system without id-mapped mounts",
			Remedy: "move it to ext4, xfs, btrfs or tmpfs, or pass --accept identity"})
	default:
		c.gap(platform.Gap{Capability: platform.Identity,
			Reason: "the job runs as the caller: without root there is no other uid to give it",
			Remedy: "run as root"})
	}
}

func (c *compiler) view() {
	p := c.p
	if !c.hasView() {
		c.gap(platform.Gap{Capability: platform.FSMetadata,
			Reason: "chmod, chown and times of files outside the writable paths are refused only by the files' own permissions: " + c.h.why("userns", "no private mount view without root"),
			Remedy: remedy(c.h, "userns", "run as root")})
		if !c.r.Policy.ExecRW {
			c.gap(platform.Gap{Capability: platform.ExecWritable,
				Reason: "files in writable paths cannot be executed, but the dynamic loader can map them: " + c.h.why("userns", "no private mount view without root"),
				Remedy: remedy(c.h, "userns", "run as root")})
		}
		return
	}
	p.UserNS = !c.h.Root
	v := &view.View{Links: c.links(), Home: c.r.Home, UID: placeholder, GID: placeholder, Proc: c.h.Root && c.h.Proc,
		Rules: hRules, Handled: landlock.Of(c.h.Landlock).FS, ExecPrivate: c.r.Policy.ExecRW}
	if !p.Ephemeral {
		v.UID, v.GID = c.h.UID, c.h.GID
	}
	for _, dir := range []string{c.r.Tmp, c.r.Shm} {
		if dir != "" {
			v.Private = append(v.Private, dir)
		}
	}
	for _, r := range c.r.Roots {
		v.Roots = append(v.Roots, c.viewRoot(r, r.Grant == RW || r.Grant == WO))
	}
	if c.r.Broker.Path != "" {
		v.Roots = append(v.Roots, c.viewRoot(c.r.Broker, true))
	}
	p.View = v
	if c.h.Root && !c.h.Proc {
		c.gap(platform.Gap{Capability: platform.Identity, Reason: "other users' processes are visible in /proc: " + c.h.why("proc", "it cannot be mounted anew here"),
			Remedy: remedy(c.h, "proc", "run where /proc is not masked")})
	}
}

// links returns the links of the view. A job with the caller's own uid reaches
// what the caller does, and nothing has to be covered for it.
func (c *compiler) links() []view.Link {
	links := slices.Clone(c.r.Links)
	for i := range links {
		if !c.p.Ephemeral {
			links[i].Blocked = ""
		}
	}
	return links
}

func remedy(h Host, mechanism, otherwise string) string {
	if r := h.Remedy[mechanism]; r != "" {
		return r
	}
	return otherwise
}

func (c *compiler) viewRoot(r Root, write bool) view.Root {
	// Landlock refuses to execute a file but not to map it, which is how the
	// dynamic loader runs a program that it is given by name.
	noExec := r.Grant == RD || r.Grant == WO || r.Grant == RW && !c.r.Policy.ExecRW
	vr := view.Root{Path: r.Path, File: r.File, Write: write, NoExec: noExec}
	if c.p.Ephemeral {
		vr.Blocked = r.Blocked
		vr.IDMap = fmt.Sprintf("userns.%d.%d", r.UID, r.GID)
		owner := Owner{vr.IDMap, r.UID, r.GID}
		for _, o := range c.p.Owners {
			if o == owner {
				return vr
			}
		}
		c.p.Owners = append(c.p.Owners, owner)
	}
	return vr
}

// rootAccess is what each list gives.
func rootAccess(g Grant, execRW bool) landlock.Access {
	switch g {
	case RO:
		return landlock.Read | landlock.Execute
	case RW:
		if execRW {
			return landlock.Read | landlock.Write | landlock.Execute
		}
		return landlock.Read | landlock.Write
	case RD:
		return landlock.Read
	}
	return landlock.Outbox
}

func (c *compiler) landlock() {
	abi := landlock.Of(c.h.Landlock)
	r := landlock.New(abi)
	for _, b := range baseSystem {
		if b.proc && c.p.View != nil && c.p.View.Proc {
			continue // the new /proc gets its rule in the child
		}
		r.Allow(landlock.Rule{Path: b.path, Access: b.access, Optional: true, Why: "base system"})
	}
	if c.r.ResolvConf != "" {
		r.Allow(landlock.Rule{Path: c.r.ResolvConf, Access: landlock.Read, File: true, Optional: true, Why: "base system, where /etc/resolv.conf leads"})
	}
	for _, root := range c.r.Roots {
		r.Allow(landlock.Rule{Path: root.Path, Handle: root.Handle, File: root.File, Access: rootAccess(root.Grant, c.r.Policy.ExecRW), Why: root.Grant.String() + ", " + root.Pos.String()})
	}
	for _, t := range c.r.Terminals {
		r.Allow(landlock.Rule{Path: t.Path, Handle: t.Handle, File: true, Access: landlock.Device | landlock.Ioctl, Why: "terminal, a standard stream"})
	}
	for _, d := range c.r.Devices {
		r.Allow(landlock.Rule{Path: d.Path, Handle: d.Handle, File: d.File, Access: landlock.Read | landlock.Device | landlock.Ioctl, Why: "gpu"})
	}
	if c.r.Broker.Path != "" {
		r.Allow(landlock.Rule{Path: c.r.Broker.Path, Handle: c.r.Broker.Handle, File: true, Access: landlock.Unix, Why: "broker"})
	}
	if !c.h.BPF && abi.Net != 0 {
		// Without the cgroup programs Landlock carries what it can of the
		// network rules; beside them it would only hide what they report.
		r.Net = landlock.BindTCP
		switch c.r.Policy.Net.Mode {
		case policy.Any:
		case policy.Allowlist:
			r.Net |= landlock.ConnectTCP
			r.ConnectPorts = []uint16{c.r.Policy.Net.ProxyPort}
		default:
			r.Net |= landlock.ConnectTCP
		}
	}
	c.p.Landlock = r
	switch {
	case c.h.Landlock < landlock.Floor:
		c.gap(platform.Gap{Capability: platform.FS, Required: true, Reason: c.h.why("landlock", fmt.Sprintf("Landlock ABI %d is below %d", c.h.Landlock, landlock.Floor)),
			Remedy: "boot a kernel with Landlock enabled (Linux 5.19 or later, landlock in lsm=)"})
	case c.h.Landlock < landlock.FloorTruncate && c.p.View == nil:
		c.gap(platform.Gap{Capability: platform.FS, Required: true, Reason: "this kernel's Landlock (ABI 2) cannot refuse truncation, and there is no read-only view to do it",
			Remedy: "run as root, or on Linux 6.2 or later"})
	}
	if abi.Scope&landlock.ScopeSignal == 0 && !c.p.Ephemeral {
		c.gap(platform.Gap{Capability: platform.Signals, Reason: "signals to the caller's other processes are not refused: Landlock ABI 6 is needed, or another uid",
			Remedy: "run as root, or on Linux 6.12 or later"})
	}
}

func (c *compiler) seccomp() {
	broker := c.r.Broker.Path != ""
	unixDecided := c.h.BPF && c.h.UnixHooks
	o := seccomp.Options{Arch: c.h.Arch, Unix: unixDecided || broker, NoSysV: c.p.View == nil, NoSetID: true, NoExecMemfd: !c.r.Policy.ExecRW, Log: true}
	for _, root := range c.r.Roots {
		o.NoLink = o.NoLink || root.Grant == WO
	}
	switch {
	case c.h.BPF:
		o.Inet = true
	case c.r.Policy.Net.Mode == policy.Allowlist:
		o.Inet, o.InetStreamOnly = true, true
	case c.r.Policy.Net.Mode == policy.Any:
		o.Inet, o.StrictTypes = true, true
	}
	if broker && !unixDecided && c.h.Landlock < 9 {
		c.gap(platform.Gap{Capability: platform.IPC, Required: true, Pos: c.r.Broker.Pos.String(),
			Reason: "unix sockets other than the broker's cannot be refused here: " + c.h.why("unix", "no cgroup program sees connects to unix sockets"),
			Remedy: "run as root on Linux 6.7 or later"})
	}
	c.p.Seccomp = seccomp.Rules(o)
}

func (c *compiler) network() error {
	n := c.r.Policy.Net
	if c.h.BPF {
		img, err := netbpf.Compile(netPolicy(c.r.Policy, c.r.Broker.Path))
		var pe *netbpf.PolicyError
		if errors.As(err, &pe) && len(pe.Rules) > 0 && pe.Rules[0] < len(n.Rules) {
			return &platform.Error{Kind: platform.ErrConfine, Capability: platform.NetAny, Pos: n.Rules[pe.Rules[0]].Pos.String(), Err: err, Remedy: "merge the port ranges of that network"}
		}
		if err != nil {
			return &platform.Error{Kind: platform.ErrConfine, Err: err}
		}
		c.p.Net = img
		c.p.Addresses = n.Mode == policy.Any || len(n.Rules) > 0
		return nil
	}
	why, fix := c.h.why("bpf", "no cgroup programs here"), remedy(c.h, "bpf", "run as root")
	c.gap(platform.Gap{Capability: platform.EventsNet, Reason: "refused network and IPC acts are not reported: " + why, Remedy: fix})
	pos := func(key string) string {
		p, _ := c.r.Policy.PosOf(key)
		return p.String()
	}
	switch {
	case n.Mode == policy.Any:
		c.gap(platform.Gap{Capability: platform.NetAny, Required: true, Pos: pos(policy.KeyNetMode),
			Reason: "loopback and private addresses cannot be refused: " + why, Remedy: fix})
		c.gap(platform.Gap{Capability: platform.NetListen, Pos: pos(policy.KeyNetMode),
			Reason: "a UDP socket can be bound to a port of the host: " + why, Remedy: fix})
	case n.Mode == policy.Allowlist && c.h.Landlock < 4:
		c.gap(platform.Gap{Capability: platform.NetAllowlist, Required: true, Pos: pos(policy.KeyNetMode),
			Reason: "connects cannot be held to the proxy: " + why, Remedy: fix})
	case n.Mode == policy.Allowlist:
		c.gap(platform.Gap{Capability: platform.NetAllowlist, Required: true, Pos: pos(policy.KeyNetMode),
			Reason: "the proxy's port is open on every host, Landlock's rules know no addresses: " + why, Remedy: fix})
	}
	if len(n.Rules) > 0 {
		c.gap(platform.Gap{Capability: platform.NetAny, Required: true, Pos: n.Rules[0].Pos.String(),
			Reason: "address rules cannot be enforced: " + why, Remedy: fix})
	}
	if n.Audit {
		c.gap(platform.Gap{Capability: platform.EventsNet, Required: true, Reason: "audit mode needs the cgroup programs: " + why, Remedy: fix})
	}
	return nil
}

// netPolicy translates the policy's network part for the kernel programs.
func netPolicy(p *policy.Policy, broker string) *netbpf.Policy {
	n := &netbpf.Policy{Audit: p.Net.Audit, ProxyPort: p.Net.ProxyPort, Broker: broker}
	switch p.Net.Mode {
	case policy.Allowlist:
		n.Mode = netbpf.Allowlist
	case policy.Any:
		n.Mode = netbpf.Any
	default:
		n.Mode = netbpf.None
	}
	proto := [...]uint8{policy.AnyProto: netbpf.AnyProto, policy.TCP: netbpf.TCP, policy.UDP: netbpf.UDP}
	for _, r := range p.Net.Rules {
		rule := netbpf.Rule{Prefix: r.Prefix, PortLo: r.PortLo, PortHi: r.PortHi, Proto: proto[r.Proto], Deny: r.Deny}
		if r.PortLo == 0 && r.PortHi == 65535 {
			rule.PortHi = 0 // every port, and protocols that have none
		}
		n.Rules = append(n.Rules, rule)
	}
	return n
}

func (c *compiler) limits() {
	l := c.r.Policy.Limits
	c.p.Limits = cgroup.Limits{MemoryBytes: l.MemoryBytes, MilliCPU: l.MilliCPU, Pids: l.Pids}
	told := map[platform.Capability]bool{}
	for _, s := range c.p.Limits.Settings() {
		if c.p.Leaf && slices.Contains(c.h.Controllers, s.Controller) {
			continue
		}
		if s.Controller == "pids" && c.p.Ephemeral {
			// A uid of its own has a count of its own.
			c.p.NProc = c.p.Limits.Pids
			continue
		}
		cp, key := limitOf(s.Controller)
		if told[cp] {
			continue // one gap for the three settings of memory
		}
		told[cp] = true
		at, _ := c.r.Policy.PosOf(key)
		pos := at.String()
		c.gap(platform.Gap{Capability: cp, Required: true, Pos: pos,
			Reason: "the " + s.Controller + " controller is not in this host's cgroup v2 hierarchy, or cgroups cannot be made: " + c.h.why("cgroup", "it may belong to a version 1 hierarchy"),
			Remedy: "boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1) and run as root, or pass --accept " + string(cp)})
	}
}

// limitOf returns the capability that a controller is, and the policy's key
// that asks for it.
func limitOf(controller string) (platform.Capability, string) {
	switch controller {
	case "cpu":
		return platform.CPU, policy.KeyCPU
	case "pids":
		return platform.Pids, policy.KeyPids
	}
	return platform.Memory, policy.KeyMemory
}
