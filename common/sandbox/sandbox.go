// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox is the front door: the platform of the host that the
// program runs on.
package sandbox
