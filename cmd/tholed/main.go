// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command tholed holds what lives only as long as a process does: today the
// optional LSM layer. It links what the lean command must not.
package main

import "os"

func main() { os.Exit(run(os.Args[1:])) }
