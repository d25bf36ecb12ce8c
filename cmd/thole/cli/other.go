// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

import (
	"runtime"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
)

// Nothing runs unconfined here: what would start a program refuses to.

func unsupported() int {
	return fail(platform.ExitConfine, platform.ErrUnsupported.Error()+": "+runtime.GOOS, "thole confines on Linux; policy check works everywhere")
}

func runMain([]string) int                  { return unsupported() }
func sandboxExecMain([]string) int          { return unsupported() }
func showPlan(*policy.Policy, []string) int { return unsupported() }
