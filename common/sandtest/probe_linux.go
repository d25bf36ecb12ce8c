// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"context"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/sandbox"
)

func probe() (platform.Report, error) {
	p, err := sandbox.Native()
	if err != nil {
		return platform.Report{}, err
	}
	defer p.Close()
	return p.Probe(context.Background())
}
