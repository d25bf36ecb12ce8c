// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64

package main

// archNumbers are calls that other processors do not have.
var archNumbers = map[string]uintptr{}

func int80(nr, a, b, c uint32) int32 { return -38 } // ENOSYS
