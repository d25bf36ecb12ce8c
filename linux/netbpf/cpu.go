// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"strconv"
	"strings"
)

// maxCPUs bounds a per-CPU value where the kernel's list cannot be read;
// NR_CPUS is at most 8192. The kernel writes as many values as it has, so the
// buffer may be too large and must not be too small.
const maxCPUs = 8192

// countCPUs returns the number of CPUs of a kernel's list such as "0-3": the
// highest number and one, which is no less than there are.
func countCPUs(list string) int {
	list = strings.TrimSpace(list)
	last := list[strings.LastIndexAny(list, "-,")+1:]
	n, err := strconv.Atoi(last)
	if err != nil || n < 0 || n >= maxCPUs {
		return maxCPUs
	}
	return n + 1
}
