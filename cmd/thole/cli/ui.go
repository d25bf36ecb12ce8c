// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
)

const exitUsage = platform.ExitUsage

// fail prints an error and its hints to standard error and returns code.
func fail(code int, msg string, hints ...string) int {
	var b strings.Builder
	fmt.Fprintf(&b, "thole: %s\n", visible(msg))
	for _, h := range hints {
		if h != "" {
			fmt.Fprintf(&b, "hint: %s\n", visible(h))
		}
	}
	fmt.Fprint(os.Stderr, b.String())
	return code
}

// failErr prints err, every part of it with its own remedy, and returns the
// launcher's exit status for it.
func failErr(err error) int {
	for _, e := range flatten(err) {
		var pe *platform.Error
		var po *policy.Error
		switch {
		case errors.As(e, &pe):
			fail(0, pe.Error(), pe.Remedy)
		case errors.As(e, &po):
			fail(0, po.Error(), po.Hint)
		default:
			fail(0, e.Error())
		}
	}
	return platform.Exit(err)
}

// flatten returns the errors that errors.Join put together.
func flatten(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

func hintOf(err error) string {
	var pe *policy.Error
	if errors.As(err, &pe) {
		return pe.Hint
	}
	return ""
}

// visible keeps what an error quotes (a path, an argument) from driving the
// terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}
