// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package windows is the Windows platform.
//
// Nothing runs confined here yet: every start is refused. The backend that
// belongs here starts programs in an AppContainer inside a job object.
package windows
