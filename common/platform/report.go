// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package platform

// Capability names one thing that a host may be able to enforce.
type Capability string

// The capabilities, in the order in which reports list them.
const (
	FS           Capability = "fs"
	FSMetadata   Capability = "fs.metadata"
	Identity     Capability = "identity"
	IPC          Capability = "ipc"
	NetNone      Capability = "net.none"
	NetAllowlist Capability = "net.egress-allowlist"
	NetAny       Capability = "net.egress-any"
	NetLoopback  Capability = "net.no-loopback"
	NetLinkLocal Capability = "net.no-link-local"
	NetListen    Capability = "net.no-listen"
	ExecWritable Capability = "exec_writable.deny"
	GPU          Capability = "devices.gpu"
	Children     Capability = "children"
	Signals      Capability = "signals"
	Memory       Capability = "limits.memory"
	CPU          Capability = "limits.cpu"
	Pids         Capability = "limits.pids"
	Freeze       Capability = "freeze"
	Containers   Capability = "containers"
	EventsNet    Capability = "events.net"
	EventsFS     Capability = "events.fs"
	EventsCall   Capability = "events.syscall"
	VerifyKernel Capability = "verify.kernel"
	FoldersRead  Capability = "folders.read"
	FoldersWrite Capability = "folders.write"
)

// Capabilities returns all of them in order.
func Capabilities() []Capability {
	return []Capability{FS, FSMetadata, Identity, IPC, NetNone, NetAllowlist, NetAny, NetLoopback,
		NetLinkLocal, NetListen, ExecWritable, GPU, Children, Signals, Memory, CPU, Pids, Freeze,
		Containers, EventsNet, EventsFS, EventsCall, VerifyKernel, FoldersRead, FoldersWrite}
}

// Status is how far a host enforces a capability.
type Status string

// The three answers of a report.
const (
	// Enforced: the kernel refuses, and was seen to refuse.
	Enforced Status = "enforced"
	// Cooperative: it holds as long as the program does not work against it.
	Cooperative Status = "cooperative"
	// Unavailable: nothing holds it here.
	Unavailable Status = "unavailable"
)

// Finding is the report's line for one capability.
type Finding struct {
	Capability Capability `json:"capability"`
	Status     Status     `json:"status"`
	// By names the mechanism that enforces.
	By string `json:"by,omitempty"`
	// Reason says what was tried and what came of it.
	Reason string `json:"reason"`
	// Remedy is one line that would change a status that is not enforced.
	Remedy string `json:"remedy,omitempty"`
}

// Report is what a host can enforce.
type Report struct {
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	Kernel   string    `json:"kernel"`
	User     string    `json:"user"`
	Findings []Finding `json:"findings"`
}

// Gap is the difference between what was asked and what the host enforces.
type Gap struct {
	Capability Capability `json:"capability"`
	// Pos is where the policy asks for it; empty for what always holds.
	Pos    string `json:"pos,omitempty"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
	// Required: the policy needs it, so the start is refused unless the
	// capability was accepted. Otherwise it is hardening that is missing,
	// which is told and refuses only a strict start.
	Required bool `json:"required"`
}
