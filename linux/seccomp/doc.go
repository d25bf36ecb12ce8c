// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package seccomp turns a list of rules on system calls into a classic BPF
// filter for seccomp(2).
//
// Rules builds the rule list of a job from a few options, Compile turns it
// into instructions, and Program.String prints it, one rule a line with its
// reason. Everything here is data and runs on every operating system;
// installing the filter is the launcher's work.
//
// The list refuses and permits the rest: the filter is the layer above
// Landlock and the cgroup programs, it closes what those cannot see, and it
// runs programs nobody wrote for it. What the table of numbers does not hold is
// refused too, so that a call of a newer kernel stays shut until someone
// has read what it does.
package seccomp
