// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases.
var version = ""

func versionMain(args []string) int {
	if len(args) > 0 {
		return fail(exitUsage, "version takes no arguments")
	}
	v := version
	if v == "" {
		v = "devel"
		if bi, ok := debug.ReadBuildInfo(); ok {
			for _, s := range bi.Settings {
				if s.Key == "vcs.revision" && len(s.Value) >= 12 {
					v = "devel-" + s.Value[:12]
				}
			}
		}
	}
	fmt.Printf("thole %s %s/%s\n", v, runtime.GOOS, runtime.GOARCH)
	return 0
}
