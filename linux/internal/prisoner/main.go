// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command prisoner tries forbidden acts from inside a sandbox and says what came of
// each. It is a helper of tests: static, raw system calls, nothing that an
// act depends on beyond the kernel.
//
// Its one argument is a file with a JSON list of acts, each a name and its
// arguments in one string. It prints a JSON list of as many outcomes: three
// kinds, with the error number where there is one.
//
//	allowed [ERRNO]   the act was done, or failed for a reason of its own
//	denied ERRNO      the kernel refused it
//	absent ERRNO      what it is about is not there
//
// "at STEP" follows where an earlier step than the act itself met that end.
// Acts that look instead of doing something answer with what they saw.
package main

import "os"

func main() { os.Exit(run(os.Args)) }
