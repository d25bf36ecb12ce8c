// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/linux/netbpf"
	"golang.org/x/sys/unix"
)

// readEvents delivers the ring's records until the ring is stopped and empty.
func (p *process) readEvents() {
	if p.ring == nil {
		return
	}
	boot := bootTime()
	var buf [flat.EventUnixSize]byte
	for {
		n, err := p.ring.Read(buf[:])
		if err != nil {
			break
		}
		p.deliver(buf[:n], boot)
	}
	p.ring.Drain(func(rec []byte) { p.deliver(rec, boot) })
}

func (p *process) deliver(rec []byte, boot time.Time) {
	k, err := netbpf.DecodeEvent(rec)
	// A ring is handed on from run to run: what a job of its last holder still
	// sends is not ours.
	if err != nil || k.Cgroup != p.leaf.ID {
		return
	}
	p.seq++
	e := event.Event{
		Time: boot.Add(time.Duration(k.Time)), Type: event.Denied, Seq: p.seq,
		Sandbox: p.leaf.Name, Module: p.plan.Module, Cgroup: p.leaf.Path[len(p.m.cgroupMount):], CgroupID: k.Cgroup,
		PID: k.PID, TID: k.TID, Comm: k.Comm(), UID: &k.UID,
		Capability: event.Capability(k.Capability()), Target: target(&k), Rule: p.plan.rule(k.Rule),
		Enforcer: event.CgroupBPF, Errno: event.LinuxErrno(int(k.Errno)),
	}
	if k.Verdict == flat.WouldDeny {
		e.Type = event.WouldDeny
	}
	p.events <- e
}

// target prints what the act was on.
func target(k *netbpf.Event) string {
	switch k.Hook {
	case flat.HookConnectUnix, flat.HookSendmsgUnix:
		return event.UnixTarget([]byte(k.Path()))
	case flat.HookSockCreate:
		families := map[uint8]string{unix.AF_INET: "inet", unix.AF_INET6: "inet6"}
		types := map[uint8]string{unix.SOCK_STREAM: "stream", unix.SOCK_DGRAM: "dgram", unix.SOCK_RAW: "raw", unix.SOCK_SEQPACKET: "seqpacket"}
		return named(families, k.Family) + "/" + named(types, k.Type) + "/" + event.ProtocolName(int(k.Proto))
	}
	return event.Target(netip.AddrPortFrom(k.Addr, k.Port), int(k.Proto))
}

func named(names map[uint8]string, n uint8) string {
	if s, ok := names[n]; ok {
		return s
	}
	return strconv.Itoa(int(n))
}

// rule says which rule decided, with its place where a person wrote it.
func (p *Plan) rule(id uint32) string {
	if id == uint32(flat.RuleUnix) && p.Spec.Broker.Path == "" {
		return "no unix socket may be reached"
	}
	i, ok := netbpf.RuleIndex(id)
	if !ok || i >= len(p.Spec.Policy.Net.Rules) {
		return netbpf.Reason(id)
	}
	r := p.Spec.Policy.Net.Rules[i]
	if pos := r.Pos.String(); pos != "" {
		return r.Pos.String()
	}
	return r.String()
}

// bootTime is the wall-clock time of CLOCK_BOOTTIME's zero.
func bootTime() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(ts.Nano()))
}
