// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// ErrNotAttached says that the programs of this build are not what the
// parent cgroup runs: someone detached or exchanged them.
var ErrNotAttached = errors.New("the programs are not attached to the parent cgroup")

// Verify checks, by asking the kernel, that a sandbox's policy is in the map
// and that the programs that read it are attached.
func (e *Enforcer) Verify(cgroup uint64) error {
	if err := e.verifyPolicy(cgroup); err != nil {
		return err
	}
	if _, ok := e.intact(); !ok {
		return &Error{Step: "verify", Object: e.parentPath, Err: ErrNotAttached}
	}
	return nil
}

func (e *Enforcer) verifyPolicy(cgroup uint64) error {
	fd, err := e.fd("policies")
	if err != nil {
		return err
	}
	var p flat.Policy
	if err := mapLookup(fd, &cgroup, &p); err != nil {
		return &Error{Step: "look up", Object: "policy", Err: err}
	}
	if p.Abi != uint32(flat.Abi) {
		return &Error{Step: "look up", Object: "policy", Err: unix.EPROTO}
	}
	return nil
}

// Remedy returns the hint of an error of this package, or "".
func Remedy(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
