// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package seccomp

const raceDetector = true
