// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import "github.com/tholehq/thole/common/platform"

// Native answers platform.ErrUnsupported: nothing runs confined here yet, and
// nothing runs unconfined in its place.
func Native() (platform.Platform, error) { return nil, &platform.Error{Kind: platform.ErrUnsupported} }
