// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64

package seccomp

// int80 is never called: only amd64 has a second table behind an interrupt.
func int80(uint32) int { panic("int 0x80 on another architecture") }
