// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package rlimit

// Package syscall raises the soft limit on descriptors when it is initialised,
// and programs that are started by raw calls would inherit that: one that uses
// select(2) then breaks. Initialisation goes by import path once a package's
// own imports are done (Go specification, "Program initialization"): this
// package imports nothing and sorts before syscall, so that it reads the limit
// as it was.
var nofile, failed = read()

// getNofile is prlimit64(0, RLIMIT_NOFILE, NULL, to).
//
//go:noescape
func getNofile(to *[2]uint64) (result uintptr)

func read() (l [2]uint64, failed bool) {
	r := getNofile(&l)
	return l, r != 0
}

// Nofile returns the limits on open files with which this process was
// started.
func Nofile() (soft, hard uint64, ok bool) { return nofile[0], nofile[1], !failed }
