// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package netbpf enforces what a sandbox may reach by socket, with eBPF
// programs attached to the common parent cgroup of all sandboxes.
//
// [Compile] turns a [Policy] into an [Image] and touches nothing; [Decide] is
// the same decision in Go, for explanations and for tests. [Open] adopts the
// programs that an earlier process loaded, or loads them, and puts images
// into the kernel by cgroup id. Everything is pinned: it holds on when the
// process that made it is gone.
//
// The decision itself is written in bpf/include/abi.h.
package netbpf
