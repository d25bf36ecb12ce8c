// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import "slices"

// Type is the kind of a record.
type Type string

// The types of records.
const (
	Denied    Type = "denied"     // an enforcer refused something
	WouldDeny Type = "would_deny" // audit mode let pass what it would refuse
	Started   Type = "started"    // a sandbox's first process was born
	Verified  Type = "verified"   // the kernel shows the confinement in force
	Ended     Type = "ended"      // the sandbox is gone; carries Totals
	Escape    Type = "escape"     // an unconfined process in the container, killed
	Lost      Type = "lost"       // records that did not reach this reader
	Gap       Type = "gap"        // nobody was reading; enforcement went on
)

// Types lists every type in the order of the constants.
func Types() []Type {
	return []Type{Denied, WouldDeny, Started, Verified, Ended, Escape, Lost, Gap}
}

// Valid says whether t is one of Types.
func (t Type) Valid() bool { return slices.Contains(Types(), t) }

func (t Type) refusal() bool { return t == Denied || t == WouldDeny }

// Capability names an act that a policy permits or refuses.
type Capability string

// The capabilities.
const (
	NetConnect  Capability = "net.connect"
	NetSendmsg  Capability = "net.sendmsg"
	NetBind     Capability = "net.bind"
	NetListen   Capability = "net.listen"
	NetSocket   Capability = "net.socket" // socket types and protocols
	NetRaw      Capability = "net.raw"
	NetDNS      Capability = "net.dns"
	UnixConnect Capability = "unix.connect"
	FSRead      Capability = "fs.read"
	FSWrite     Capability = "fs.write"
	FSExec      Capability = "fs.exec"
	FSCreate    Capability = "fs.create"
	FSRemove    Capability = "fs.remove"
	FSRename    Capability = "fs.rename"
	FSIoctl     Capability = "fs.ioctl"
	FSMetadata  Capability = "fs.metadata" // mode, owner, times, attributes
	Signal      Capability = "signal"
	Ptrace      Capability = "ptrace"
	Syscall     Capability = "syscall"
	Userns      Capability = "userns"
	BPF         Capability = "bpf"
	Proxy       Capability = "proxy"  // the egress proxy refused a host
	Broker      Capability = "broker" // the container broker refused a request
)

// Capabilities lists every capability in the order of the constants.
func Capabilities() []Capability {
	return []Capability{
		NetConnect, NetSendmsg, NetBind, NetListen, NetSocket, NetRaw, NetDNS, UnixConnect,
		FSRead, FSWrite, FSExec, FSCreate, FSRemove, FSRename, FSIoctl, FSMetadata,
		Signal, Ptrace, Syscall, Userns, BPF, Proxy, Broker,
	}
}

// Valid says whether c is one of Capabilities.
func (c Capability) Valid() bool { return slices.Contains(Capabilities(), c) }

// Enforcer names the mechanism that refused.
type Enforcer string

// The enforcers. The two that share a name with a capability carry By.
const (
	CgroupBPF    Enforcer = "cgroup-bpf"
	LSMBPF       Enforcer = "lsm-bpf"
	Landlock     Enforcer = "landlock"
	Seccomp      Enforcer = "seccomp"
	ByProxy      Enforcer = "proxy"
	ByBroker     Enforcer = "broker"
	Seatbelt     Enforcer = "seatbelt"
	AppContainer Enforcer = "appcontainer"
	WFP          Enforcer = "wfp" // Windows Filtering Platform
)

// Enforcers lists every enforcer in the order of the constants.
func Enforcers() []Enforcer {
	return []Enforcer{
		CgroupBPF, LSMBPF, Landlock, Seccomp, ByProxy, ByBroker, Seatbelt, AppContainer, WFP,
	}
}

// Valid says whether f is one of Enforcers.
func (f Enforcer) Valid() bool { return slices.Contains(Enforcers(), f) }

// Where is the stage at which records were lost.
type Where string

// The stages, from the source to the reader.
const (
	InKernel Where = "kernel" // the ring buffer was full
	InAgent  Where = "agent"  // the agent could not keep up
	InClient Where = "client" // this subscriber's queue was full
)

// Wheres lists every stage in the order of the constants.
func Wheres() []Where { return []Where{InKernel, InAgent, InClient} }

// Valid says whether w is one of Wheres.
func (w Where) Valid() bool { return slices.Contains(Wheres(), w) }
