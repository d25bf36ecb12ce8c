// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vm

import "os/exec"

// endWithUs does nothing: only Linux can.
func endWithUs(*exec.Cmd) {}
