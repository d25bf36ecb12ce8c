// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import "github.com/tholehq/thole/linux/seccomp"

// Host is what this machine and this caller can do, as far as a plan depends
// on it. [Look] fills it by trying; a test makes its own.
type Host struct {
	// Arch is the processor, for the seccomp filter.
	Arch seccomp.Arch
	// Root: the caller may make mounts, change ids and place processes in
	// cgroups.
	Root     bool
	UID, GID int
	// Landlock is the kernel's ABI; 0: none, and Why["landlock"] says why.
	Landlock int
	// BPF: the cgroup programs are attached. UnixHooks: they see unix
	// sockets.
	BPF, UnixHooks bool
	// UserNS: an ordinary caller may make a user namespace and mounts in it.
	UserNS bool
	// Proc: a new instance of /proc can be mounted.
	Proc bool
	// Controllers are the cgroup v2 controllers that leaves can have.
	Controllers []string
	// LastCap is the kernel's highest capability.
	LastCap int
	// Why says, for what is missing, why ("bpf", "landlock", "userns",
	// "cgroup"); Remedy what would change it.
	Why, Remedy map[string]string
}

// why returns the reason for which a mechanism is missing.
func (h Host) why(mechanism, otherwise string) string {
	if w := h.Why[mechanism]; w != "" {
		return w
	}
	return otherwise
}
