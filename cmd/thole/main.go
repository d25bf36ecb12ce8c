// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command thole runs a program in a sandbox.
package main

import (
	"os"

	"github.com/tholehq/thole/cmd/thole/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
