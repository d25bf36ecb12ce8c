// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package event defines the record of what an enforcer refused and of the life
// of a sandbox, and its encoding: one JSON object per line (NDJSON).
//
// The same record goes over the wire, into files and to the terminal. Writing
// is done by hand in a fixed order, so that equal events are equal bytes;
// reading is strict: unknown, repeated and misplaced fields are errors that
// name the line. schema.json holds the same rules for other programs.
package event

import (
	_ "embed"
	"time"
)

// Schema is the JSON Schema (draft 2020-12) of one record.
//
//go:embed schema.json
var Schema string

// An Event is one record. A field that does not apply is left zero and is not
// written. Validate says which fields a type needs and which it excludes.
type Event struct {
	// Time is when it happened, not when it was read. It is written in UTC
	// with nine digits, so that records sort as text.
	Time time.Time `json:"time"`
	// Type says what kind of record this is.
	Type Type `json:"type"`
	// Seq counts the records of one stream. It has no holes but those that a
	// record of type Lost explains.
	Seq uint64 `json:"seq"`
	// Node names the host.
	Node string `json:"node,omitempty"`
	// Sandbox is the sandbox's id.
	Sandbox string `json:"sandbox,omitempty"`
	// Module is the id that the policy carries.
	Module string `json:"module,omitempty"`
	// Cgroup is the path of the process's cgroup below the cgroup mount.
	Cgroup string `json:"cgroup,omitempty"`
	// CgroupID is the kernel's 64-bit id of that cgroup.
	CgroupID uint64 `json:"cgroup_id,omitempty"`
	// PID is the process (the kernel's thread group), TID the thread and
	// PPID the parent process, as numbered in the host's pid namespace.
	PID  uint32 `json:"pid,omitempty"`
	TID  uint32 `json:"tid,omitempty"`
	PPID uint32 `json:"ppid,omitempty"`
	// Exe is the path of the program's file, Comm the thread's short name.
	Exe  string `json:"exe,omitempty"`
	Comm string `json:"comm,omitempty"`
	// UID is the real user id in the host's user namespace; nil is unknown,
	// since 0 is root.
	UID *uint32 `json:"uid,omitempty"`
	// Capability says what was refused.
	Capability Capability `json:"capability,omitempty"`
	// Target is what it was refused on: address:port/protocol, a path, a
	// system call's name, or host:port.
	Target string `json:"target,omitempty"`
	// Rule is the rule that decided, with its position where a person wrote it.
	Rule string `json:"rule,omitempty"`
	// Enforcer says who refused.
	Enforcer Enforcer `json:"enforcer,omitempty"`
	// Errno is the error's symbolic name (EPERM): numbers differ between
	// operating systems.
	Errno string `json:"errno,omitempty"`
	// Count is how many equal refusals this record stands for, or how many
	// records were lost. A refusal's zero means one; see N.
	Count uint64 `json:"count,omitempty"`
	// Where is the place at which records were lost.
	Where Where `json:"where,omitempty"`
	// Since and Until bound a gap; Since alone begins a loss.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Detail is one sentence for a person: which check failed, what was seen.
	Detail string `json:"detail,omitempty"`
	// Totals sums up a sandbox that ended.
	Totals *Totals `json:"totals,omitempty"`
}

// Totals is what an Ended record adds up, so that a reader who came late still
// gets the whole. All but Denied and WouldDeny are always written.
type Totals struct {
	// Denied and WouldDeny count refusals by capability, folded repeats
	// included, lost records too where the enforcer counted them.
	Denied    map[Capability]uint64 `json:"denied,omitempty"`
	WouldDeny map[Capability]uint64 `json:"would_deny,omitempty"`
	// Lost is the number of refusals for which no record could be made.
	Lost uint64 `json:"lost"`
	// Exit is the exit status as a shell shows it: 128+N after signal N.
	Exit uint32 `json:"exit"`
	// OOM says that the kernel killed a process at the memory limit.
	OOM bool `json:"oom"`
	// Wall and CPU are durations in nanoseconds, Peak is memory in bytes.
	Wall time.Duration `json:"wall_ns"`
	CPU  time.Duration `json:"cpu_ns"`
	Peak uint64        `json:"peak_bytes"`
}

// N is the number of refusals or lost records that e stands for.
func (e *Event) N() uint64 {
	if e.Count == 0 && e.Type.refusal() {
		return 1
	}
	return e.Count
}
