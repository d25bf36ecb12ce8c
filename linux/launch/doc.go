// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package launch turns the start of a confined process into data: a list of
// system calls that the parent prepares and that the child executes without
// running a line of Go.
//
// A [List] is a value. It prints itself, so that a launch can be read and
// compared with a golden, and a test can make any one of its calls fail. On
// Linux a list is assembled into an [Image] (one private mapping that holds
// the calls, their strings and structures), and a few dozen instructions of
// assembly run it: in a new process ([Image.Clone]) or on the calling thread
// ([Image.Self]).
//
// The first call that does not answer as the list expects ends the process,
// after its index and answer were written to the status pipe. So a launch
// never continues past a step that failed.
package launch
