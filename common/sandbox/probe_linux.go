// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"

	"github.com/tholehq/thole/linux"
)

// ProbeActs does the harmless acts that text lists as JSON, writes what came of
// each to out, and waits for the end of in: the confined side of the platform's
// Probe, for a person who wants to see one act in a sandbox.
func ProbeActs(text string, in io.Reader, out io.Writer) error {
	return linux.ProbeActs(text, in, out)
}
