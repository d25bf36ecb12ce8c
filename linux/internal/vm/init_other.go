// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vm

// Init returns: guests run Linux.
func Init() {}
