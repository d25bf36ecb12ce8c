// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package darwin is the macOS platform.
//
// Nothing runs confined here yet: every start is refused. The backend that
// belongs here generates a deny-by-default Seatbelt profile for each process.
package darwin
