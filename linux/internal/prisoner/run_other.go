// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// run has nothing to try on another system.
func run([]string) int { return 1 }
