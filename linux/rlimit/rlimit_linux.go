// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package rlimit

import "syscall"

// Package os raises the soft limit on descriptors when it is initialised, and
// children would inherit that: a program that calls select(2) then breaks.
// Initialisation goes by import path once a package's own imports are done
// (Go specification, "Program initialization"): this package imports syscall
// alone and sorts before os, so that it reads the limit as it was.
var nofile, err = read()

func read() (l syscall.Rlimit, err error) {
	err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return l, err
}

// Nofile returns the limits on open files with which this process was
// started.
func Nofile() (soft, hard uint64, ok bool) { return nofile.Cur, nofile.Max, err == nil }
