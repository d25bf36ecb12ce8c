// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package matrix tests the whole on other kernels than the host's: which
// kernels, booted with which options, and what is run on each. It has tests
// only, and they run where the environment variable THOLE_VM is 1
// (make test-vm): they need QEMU, the kernels that .ci/vm fetches, and
// minutes.
//
// testdata/table.md is what came of it, for README; -update writes it anew.
package matrix
