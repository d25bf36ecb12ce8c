// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package lsmbpf

import (
	"errors"
	"slices"
	"strings"
)

// ErrInactive says that programs load and attach but never run, because the
// kernel was started without "bpf" in its list of LSMs.
var ErrInactive = errors.New("bpf is not among the active LSMs: add it to lsm= on the kernel's command line")

// lsmList is where the kernel lists its active LSMs (securityfs).
const lsmList = "/sys/kernel/security/lsm"

// active returns an error if the kernel says that bpf is not an active LSM.
// Where securityfs is not mounted it says nothing; loading then decides.
func active(read func(string) ([]byte, error)) error {
	b, err := read(lsmList)
	if err != nil {
		return nil
	}
	if !slices.Contains(strings.Split(strings.TrimSpace(string(b)), ","), "bpf") {
		return ErrInactive
	}
	return nil
}
