// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernfile opens and reads the small files and directories in which
// the kernel shows itself (proc, cgroupfs, sysfs).
//
// Package os registers what it opens with the runtime's poller, which for a
// file of ten bytes is four times the system calls; a launch reads a dozen of
// them before the program's first instruction.
package kernfile
