// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package lsmbpf loads the optional eBPF objects, which need more of the
// kernel than the network programs do: the LSM hooks, which see what crosses
// a sandbox's border by other ways than its own sockets, and the verifying
// program, which reads a task's confinement from the kernel itself.
//
// Both are probed by loading them. The package links cilium/ebpf: the agent
// imports it, the launcher does not.
package lsmbpf
