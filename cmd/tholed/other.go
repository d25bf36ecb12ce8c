// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"os"
)

func run([]string) int {
	fmt.Fprintln(os.Stderr, "tholed: there is nothing to hold on this system")
	return 1
}
