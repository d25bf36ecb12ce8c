// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package linux confines processes on Linux: cgroup eBPF beneath Landlock and
// seccomp, a private read-only view of the file system, an ephemeral uid, and
// a cgroup v2 leaf.
//
// A start goes through four values. [Host] is what this machine can do;
// [Resolved] is the policy with its paths looked up; [Compile] is pure and
// makes a [Plan] of the two; and only [Plan.Start] (or [Plan.Exec], for the
// launcher that becomes the program) has effects. A plan prints itself.
package linux
