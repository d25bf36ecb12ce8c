// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	"github.com/tholehq/thole/common/sandbox"
)

// probeActsMain does by hand what doctor's confined children do: the harmless
// acts that its one argument lists, for one who wants to see them in a sandbox.
func probeActsMain(args []string) int {
	if len(args) != 1 {
		return fail(exitUsage, "probe-acts is started by thole doctor", "thole doctor")
	}
	if err := sandbox.ProbeActs(args[0], os.Stdin, os.Stdout); err != nil {
		return fail(exitUsage, err.Error(), "thole doctor")
	}
	return 0
}
