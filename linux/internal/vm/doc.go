// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package vm runs static programs on other kernels than the host's: under
// QEMU, in a guest whose first process is the program that asked for it.
//
// A guest has a root file system on ext4, made by [Tree.Image] and thrown away
// after the boot, and a job: steps that its first process ([Init]) runs one
// after another as root. What they print and how they end comes back over a
// serial port as [Frame]s. There is no network but loopback.
//
// Kernels are Debian's, unpacked by .ci/vm into a directory each.
package vm
