// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package landlock describes Landlock rulesets as values and builds them.
//
// A [Ruleset] says which rights are handled and what each path keeps; it
// prints itself and is made in the parent ([Ruleset.Build]); the child only
// enforces the descriptor. Differences between kernels are one table, [ABI].
//
// The rights are those of Documentation/userspace-api/landlock.rst in the
// kernel's sources; the system calls are go-landlock's.
package landlock

import (
	"fmt"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Access is a set of file system rights.
type Access uint64

// The sets that grants are made of, before they are cut to the kernel's ABI.
const (
	// Read is reading files and listing directories.
	Read Access = ll.AccessFSReadFile | ll.AccessFSReadDir
	// Execute is executing files.
	Execute Access = ll.AccessFSExecute
	// Write is everything that changes files and directories, devices and
	// device nodes excepted.
	Write Access = ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo |
		ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate
	// Outbox is creating files and directories and writing them: no reading,
	// listing, removing, linking or renaming.
	Outbox Access = ll.AccessFSWriteFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSTruncate
	// Device is reading and writing a device node.
	Device Access = ll.AccessFSReadFile | ll.AccessFSWriteFile
	// Ioctl is device-specific control of device nodes (ABI 5).
	Ioctl Access = ll.AccessFSIoctlDev
	// Unix is connecting to a named unix socket (ABI 9).
	Unix Access = ll.AccessFSResolveUnix

	// ofFiles are the rights that mean something for a file that is not a
	// directory; the kernel refuses others on one.
	ofFiles = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile |
		ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
)

// Scopes of ABI 6.
const (
	ScopeAbstractUnix = ll.ScopeAbstractUnixSocket
	ScopeSignal       = ll.ScopeSignal
)

// Network rights of ABI 4.
const (
	BindTCP    = ll.AccessNetBindTCP
	ConnectTCP = ll.AccessNetConnectTCP
)

// ABI says what a kernel's Landlock can handle.
type ABI struct {
	Version    int
	FS         Access
	Net, Scope uint64
}

// Floor is the oldest ABI that a launch accepts. ABI 2 can refuse renames
// across directories; ABI 3 can refuse truncation, which on ABI 2 the
// read-only view must cover.
const (
	Floor         = 2
	FloorTruncate = 3
)

// abis is indexed by the version that landlock_create_ruleset reports.
var abis = [...]ABI{
	{0, 0, 0, 0},
	{1, 1<<13 - 1, 0, 0},
	{2, 1<<14 - 1, 0, 0},
	{3, 1<<15 - 1, 0, 0},
	{4, 1<<15 - 1, 3, 0},
	{5, 1<<16 - 1, 3, 0},
	{6, 1<<16 - 1, 3, 3},
	{7, 1<<16 - 1, 3, 3},
	{8, 1<<16 - 1, 3, 3},
	{9, 1<<17 - 1, 3, 3},
}

// Of returns the table's row for an ABI version. A version newer than the
// table handles what the newest known one does.
func Of(version int) ABI {
	if version < 0 {
		version = 0
	}
	row := abis[min(version, len(abis)-1)]
	row.Version = version
	return row
}

// Rule is what one path keeps of the handled rights.
type Rule struct {
	// Path is the canonical absolute path, for reading.
	Path string
	// Handle names the open descriptor of the path; empty: Path is opened.
	Handle string
	// File: not a directory.
	File bool
	// Access is what is allowed beneath the path.
	Access Access
	// Optional: a path that does not exist is passed over.
	Optional bool
	// Why names the grant or the part of the base system.
	Why string
}

// Ruleset is one Landlock layer.
type Ruleset struct {
	ABI   ABI
	FS    Access // handled file system rights
	Net   uint64 // handled network rights
	Scope uint64 // scopes
	Rules []Rule
	// ConnectPorts are the TCP ports that connect may use where ConnectTCP
	// is handled.
	ConnectPorts []uint16
}

// New returns a ruleset that handles every file system right of the ABI and
// its scopes, and allows nothing yet.
func New(abi ABI) Ruleset { return Ruleset{ABI: abi, FS: abi.FS, Scope: abi.Scope} }

// Allow adds a rule. Rights that the ABI does not know are left out, and so
// are those of directories for a file.
func (r *Ruleset) Allow(rule Rule) {
	rule.Access = Cut(r.FS, rule.Access, rule.File)
	if rule.Access != 0 {
		r.Rules = append(r.Rules, rule)
	}
}

// Cut returns what of access is handled, and means something for a file where
// file is set.
func Cut(handled, access Access, file bool) Access {
	access &= handled
	if file {
		access &= ofFiles
	}
	return access
}

// names is indexed by bit.
var names = [...]string{"execute", "write_file", "read_file", "read_dir", "remove_dir",
	"remove_file", "make_char", "make_dir", "make_reg", "make_sock", "make_fifo",
	"make_block", "make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix"}

// String lists the rights by the kernel's names.
func (a Access) String() string {
	if a == 0 {
		return "none"
	}
	var s []string
	for i, n := range names {
		if a&(1<<i) != 0 {
			s = append(s, n)
		}
	}
	return strings.Join(s, ",")
}

// String prints the ruleset, a rule a line.
func (r Ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "landlock abi %d handles fs=%s", r.ABI.Version, r.FS)
	if r.Net != 0 {
		fmt.Fprintf(&b, " net=%s", netString(r.Net))
	}
	if r.Scope&ScopeAbstractUnix != 0 {
		b.WriteString(" scope=abstract_unix_socket")
	}
	if r.Scope&ScopeSignal != 0 {
		b.WriteString(" scope=signal")
	}
	b.WriteByte('\n')
	for _, rule := range r.Rules {
		opt := ""
		if rule.Optional {
			opt = " (if it exists)"
		}
		fmt.Fprintf(&b, "  %s: %s%s  # %s\n", rule.Path, rule.Access, opt, rule.Why)
	}
	for _, p := range r.ConnectPorts {
		fmt.Fprintf(&b, "  tcp port %d: connect_tcp\n", p)
	}
	return b.String()
}

func netString(n uint64) string {
	var s []string
	if n&BindTCP != 0 {
		s = append(s, "bind_tcp")
	}
	if n&ConnectTCP != 0 {
		s = append(s, "connect_tcp")
	}
	return strings.Join(s, ",")
}
