// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package rlimit remembers the resource limits that the process was started
// with, before the Go library changed them.
package rlimit
