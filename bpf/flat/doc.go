// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package flat is the network object of package bpf in a form that needs no
// ELF or BTF reader: a list of maps and programs with relocation records, and
// the types and constants of include/abi.h. It has no dependencies and runs
// no code at start.
//
// net.img and abi_gen.go are generated; see package bpf.
package flat
