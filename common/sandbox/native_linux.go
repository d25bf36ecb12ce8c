// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "github.com/tholehq/thole/linux"

// Native returns this host's platform. Close it when the last job has ended;
// enforcement stays in force without it.
func Native() (*linux.Platform, error) { return linux.New() }
