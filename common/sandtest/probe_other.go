// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandtest

import "github.com/tholehq/thole/common/platform"

func probe() (platform.Report, error) {
	return platform.Report{}, &platform.Error{Kind: platform.ErrUnsupported}
}
