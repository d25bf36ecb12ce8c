// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux"
)

// Native returns this host's platform, which is also a [platform.Execer] and a
// [platform.Sweeper]. Close it when the last job has ended; enforcement stays
// in force without it.
func Native() (platform.Platform, error) {
	p, err := linux.New()
	if err != nil {
		return nil, err
	}
	return native{p}, nil
}

// native gives Linux's own plans as the interface's.
type native struct{ *linux.Platform }

func (n native) Plan(s platform.Spec) (platform.Plan, error) {
	p, err := n.Platform.Plan(s)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (n native) PlanExec(s platform.Spec) (platform.ExecPlan, error) {
	p, err := n.Platform.PlanExec(s)
	if err != nil {
		return nil, err
	}
	return p, nil
}
