// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Version asks the kernel for its Landlock ABI. 0 with a nil error means that
// the kernel has Landlock in it but that it was not started (lsm= without
// landlock) or was built without it; the second result says which.
func Version() (int, string) {
	v, err := ll.LandlockGetABIVersion()
	switch {
	case err == nil:
		return v, ""
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "Landlock is built in but not enabled: add landlock to the kernel's lsm= parameter"
	case errors.Is(err, unix.ENOSYS):
		return 0, "this kernel has no Landlock: Linux 5.19 or later with CONFIG_SECURITY_LANDLOCK is needed"
	}
	return 0, "landlock_create_ruleset: " + err.Error()
}

// Build makes the ruleset and returns its descriptor (close-on-exec). open
// gives the descriptor of a rule's handle, which stays the caller's.
func (r Ruleset) Build(open func(handle string) (int, bool)) (fd int, err error) {
	fd, err = ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: uint64(r.FS), HandledAccessNet: r.Net, Scoped: r.Scope}, 0)
	if err != nil {
		return -1, fmt.Errorf("create landlock ruleset (abi %d): %w", r.ABI.Version, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
			fd = -1
		}
	}()
	for _, rule := range r.Rules {
		if err := r.add(fd, rule, open); err != nil {
			return fd, fmt.Errorf("add landlock rule for %s (%s): %w", rule.Path, rule.Access, err)
		}
	}
	for _, p := range r.ConnectPorts {
		if err := ll.LandlockAddNetPortRule(fd, &ll.NetPortAttr{AllowedAccess: ConnectTCP, Port: uint64(p)}, 0); err != nil {
			return fd, fmt.Errorf("add landlock rule for tcp port %d: %w", p, err)
		}
	}
	return fd, nil
}

func (r Ruleset) add(fd int, rule Rule, open func(string) (int, bool)) error {
	path, access := -1, rule.Access
	if rule.Handle != "" {
		h, ok := open(rule.Handle)
		if !ok {
			return fmt.Errorf("no handle %q", rule.Handle)
		}
		path = h
	} else {
		p, err := unix.Open(rule.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			if rule.Optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
				return nil
			}
			return fmt.Errorf("open: %w", err)
		}
		defer unix.Close(p)
		// The base system names paths that are a directory on one host and a
		// file on another.
		var st unix.Stat_t
		if err := unix.Fstat(p, &st); err != nil {
			return fmt.Errorf("stat: %w", err)
		}
		access = Cut(access, access, st.Mode&unix.S_IFMT != unix.S_IFDIR)
		path = p
	}
	return ll.LandlockAddPathBeneathRule(fd, &ll.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: path}, 0)
}
