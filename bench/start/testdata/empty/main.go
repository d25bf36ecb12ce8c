// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command empty does nothing: it is what any Go program costs to start.
package main

func main() {}
