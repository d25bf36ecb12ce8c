// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import "os"

// A probe confines the very program that it runs in, since that is there on
// every host. So that no program does its own work when it is started this
// way, each that links this package answers here, before its main function:
// where both the variable and the argument say so, and then with acts that are
// harmless wherever they are done.
const (
	probeVar     = "THOLE_PROBE"
	probeCommand = "probe-acts"
)

func init() {
	if len(os.Args) != 3 || os.Args[1] != probeCommand || os.Getenv(probeVar) == "" {
		return
	}
	if ProbeActs(os.Args[2], os.Stdin, os.Stdout) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
