// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package linux

// effects are what a plan needs to be started: nothing starts here, plans are
// compiled and printed.
type effects struct{}
