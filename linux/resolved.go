// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/view"
)

// Grant is what a policy's list gives a path.
type Grant uint8

// The lists of a policy.
const (
	RO Grant = iota // read and execute
	RW              // read and write
	RD              // read, never execute
	WO              // create and write
)

// String returns the list's name.
func (g Grant) String() string { return [...]string{"ro", "rw", "rd", "wo"}[g] }

// Root is a granted path, looked up.
type Root struct {
	Grant Grant
	// Path is canonical: absolute, no symbolic link in it.
	Path string
	Pos  policy.Pos
	File bool
	// UID and GID own it on disk.
	UID, GID int
	// Blocked is the topmost ancestor that an unrelated uid cannot search.
	Blocked string
	// Handle names the open descriptor.
	Handle string
}

// Resolved is a policy whose paths were looked up, as a value: [Resolve] does
// it on a host, a test writes its own.
type Resolved struct {
	Policy *policy.Policy
	Roots  []Root
	// Links are the symbolic links on the way to the program.
	Links []view.Link
	// Broker is the socket's canonical path and owner; Path empty: none.
	Broker Root
	// Devices are GPU device nodes and what drivers read beside them.
	Devices []Root
	// Terminals are the terminals that are standard streams: programs open
	// them again by names such as /dev/stderr.
	Terminals []Root
	// DeviceGroups own the device nodes and may write to the terminals.
	DeviceGroups []int
	// Tmp and Shm are the canonical paths of /tmp and /dev/shm; empty where
	// the host has none.
	Tmp, Shm string
	// ResolvConf is where /etc/resolv.conf leads, when it leads out of /etc.
	ResolvConf string
	// Program is the file to execute, canonical; Argv, Env and Dir as given.
	Program string
	Path    string
	Argv    []string
	Env     []string
	Dir     string
	// Home is the private home directory.
	Home string
}
