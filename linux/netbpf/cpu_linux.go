// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import "sync"

// possibleCPUs is how many values a per-CPU map has: one for each CPU that
// the kernel could ever bring up, which is more than run.
var possibleCPUs = sync.OnceValue(func() int {
	return countCPUs(string(readFile("/sys/devices/system/cpu/possible")))
})
