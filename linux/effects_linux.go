// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/launch"
)

// effects are what a plan needs to be started; a compiled plan alone has
// none.
type effects struct {
	start  platform.Spec
	m      *machine
	opened *opened
	// tamper changes the launch, in tests that make a step fail.
	tamper func(launch.List) launch.List
}
