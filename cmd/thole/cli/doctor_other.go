// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

func doctorMain(args []string) int {
	if _, code, done := doctorFlags(args); done {
		return code
	}
	return unsupported()
}

func probeActsMain([]string) int { return unsupported() }
