// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/common/sandbox"
)

// showPlan prints what the policy compiles to on this host.
func showPlan(p *policy.Policy, argv []string) int {
	pf, err := sandbox.Native()
	if err != nil {
		return failErr(err)
	}
	defer pf.Close()
	plan, err := pf.Plan(platform.Spec{Policy: p, Path: argv[0], Argv: argv})
	if err != nil {
		return failErr(err)
	}
	defer plan.Close()
	fmt.Print(plan.String())
	return 0
}
