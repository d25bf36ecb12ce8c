// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/landlock"
)

// baseSystem is what every process may use of the host: programs and
// libraries, their configuration, and the four devices without an owner.
// Nothing in it may hold a secret that others can read; see SECURITY.md.
var baseSystem = []struct {
	path   string
	access landlock.Access
	proc   bool
}{
	{path: "/usr", access: landlock.Read | landlock.Execute},
	{path: "/lib", access: landlock.Read | landlock.Execute},
	{path: "/lib32", access: landlock.Read | landlock.Execute},
	{path: "/lib64", access: landlock.Read | landlock.Execute},
	{path: "/libx32", access: landlock.Read | landlock.Execute},
	{path: "/bin", access: landlock.Read | landlock.Execute},
	{path: "/sbin", access: landlock.Read | landlock.Execute},
	{path: "/opt", access: landlock.Read | landlock.Execute},
	{path: "/nix/store", access: landlock.Read | landlock.Execute},
	{path: "/etc", access: landlock.Read | landlock.Execute},
	{path: "/proc", access: landlock.Read, proc: true},
	{path: "/sys/devices/system/cpu", access: landlock.Read},
	{path: "/dev/null", access: landlock.Device},
	{path: "/dev/zero", access: landlock.Device},
	{path: "/dev/full", access: landlock.Device},
	{path: "/dev/random", access: landlock.Device},
	{path: "/dev/urandom", access: landlock.Device},
}

// executable are the parts of the base system that programs are found in.
var executable = []string{"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt", "/nix/store", "/etc"}

// mayExecute reports whether programs in dir can be executed under p, by
// names alone.
func mayExecute(dir string, p *policy.Policy) bool {
	for _, d := range executable {
		if below(dir, d) {
			return true
		}
	}
	for _, g := range p.FS.RO {
		if below(dir, g.Path) {
			return true
		}
	}
	if p.ExecRW {
		for _, g := range p.FS.RW {
			if below(dir, g.Path) {
				return true
			}
		}
	}
	return false
}
