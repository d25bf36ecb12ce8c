// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package deptest holds the repository to its own rules, as tests: which
// package may import which on each operating system, what may not be linked
// into the launcher, licence headers, documentation, file sizes, the Makefile's
// help, and that every supported platform builds.
//
// The rules are tables in the tests: a new package has to be given its place
// there. Command gotest below runs the whole suite and reports skipped tests.
package deptest
