// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy reads what a confinement shall be. Three documents and the
// command line's flags become one normalised value, [Policy]:
//
//   - POLICY.json, the launcher's wire format ([ParseJSON]);
//   - the [sandbox] table that a module ships ([ParseSandbox]);
//   - an operator's file, the same table and what a host's owner decides
//     ([ParseOperator]).
//
// Parsing is strict: an unknown or repeated key, a wrong type or a value out
// of range is an [*Error] with its position, because a typo must never widen
// a sandbox. The package is pure: it reads no file and asks no host, so that
// whether a path exists is not known here.
package policy

import "net/netip"

// MaxDocument is the size in bytes above which a document is refused unread.
const MaxDocument = 1 << 20

// Policy is one confinement, normalised. The zero value is the closed one: no
// paths of its own, no network, no devices. Values are not changed after they
// were made; [Combine] makes a new one.
type Policy struct {
	// Module labels events and, on Windows, names the AppContainer.
	Module string
	// Kind is "coordinator", "runner", "service", "probe" or "doctor".
	Kind string

	FS  FS
	Net Net

	// Broker is the path of the one socket or pipe the process may reach, or "".
	Broker string
	// GPU grants compute devices.
	GPU bool
	// ExecRW lets files in FS.RW be executed.
	ExecRW bool
	// Exe is argv[0] as the caller gave it, or ""; its symbolic links must
	// stay resolvable. It is not cleaned.
	Exe string

	Limits     Limits
	Tools      []Tool
	Containers []Container

	set []setting
}

// FS holds the granted roots. Paths are absolute and clean, each once per list.
type FS struct {
	RO []Path // read, map and execute
	RW []Path // read and write
	RD []Path // read, never execute
	WO []Path // outbox: create and write, no reading, listing or removing
}

// Path is a granted root and where it was written.
type Path struct {
	Path string
	Pos  Pos
}

// NetMode says which way out of the sandbox there is.
type NetMode uint8

// The modes. None is the zero value.
const (
	None      NetMode = iota // no network
	Allowlist                // the local proxy alone, which lets Net.Allow through
	Any                      // every public address, and name resolution
)

// String returns the mode as documents spell it.
func (m NetMode) String() string {
	switch m {
	case None:
		return "none"
	case Allowlist:
		return "egress-allowlist"
	case Any:
		return "egress-any"
	}
	return "unknown"
}

// Default is the verdict on an address that no rule covers.
type Default uint8

// The verdicts. Unset leaves it to Net.Mode.
const (
	Unset Default = iota
	Deny
	Allow
)

// String returns "unset", "deny" or "allow".
func (d Default) String() string {
	switch d {
	case Unset:
		return "unset"
	case Deny:
		return "deny"
	case Allow:
		return "allow"
	}
	return "unknown"
}

// Net is the network part of a policy.
type Net struct {
	Mode NetMode
	// Allow lists the hosts that the proxy lets through in mode Allowlist.
	Allow []HostPort
	// ProxyPort is the local proxy's TCP port, 0 where it is yet to be chosen.
	ProxyPort uint16
	// Rules are the operator's; a rule's id is its index.
	Rules []Rule
	// Default is the verdict where no rule matches.
	Default Default
	// Audit lets pass what would be refused, and reports it.
	Audit bool
}

// HostPort is an entry of the proxy's allow list. Host is lower-case ASCII
// without a trailing dot; of a wildcard it is the part after "*.".
type HostPort struct {
	Host     string
	Port     uint16
	Wildcard bool
	Pos      Pos
}

// Proto is the transport protocol of a rule.
type Proto uint8

// The protocols.
const (
	AnyProto Proto = iota
	TCP
	UDP
)

// String returns "any", "tcp" or "udp".
func (p Proto) String() string {
	switch p {
	case AnyProto:
		return "any"
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return "unknown"
}

// Rule allows or denies a range of addresses. The longest prefix decides, and
// deny decides between equals; the order of rules means nothing.
type Rule struct {
	// Prefix has no host bits set; IPv4-mapped prefixes are IPv4.
	Prefix netip.Prefix
	// PortLo and PortHi are inclusive; 0 and 65535 mean every port.
	PortLo, PortHi uint16
	Proto          Proto
	Deny           bool
	Pos            Pos
	// Text is the rule as it was written.
	Text string
}

// Limits are upper bounds; 0 means none.
type Limits struct {
	MemoryBytes uint64
	MilliCPU    uint64 // thousandths of a CPU
	Pids        uint64
}

// Tool is a host tool that a module asks for by its id in the registry.
type Tool struct {
	ID string
	// CodeExec says that the tool runs arbitrary code (trust = "code-exec").
	CodeExec bool
	Pos      Pos
}

// Container is an image that the broker may run, pinned by its digest.
type Container struct {
	Image    string
	Platform string // "linux/amd64" or "linux/arm64"
	Pos      Pos
}
