// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package sandtest

import (
	"sync"
	"testing"

	"github.com/tholehq/thole/common/platform"
)

// report is this host's, asked for once.
var report = sync.OnceValues(probe)

// Need skips a test unless the host enforces the capabilities; the reason is
// the host's. A host that cannot be asked fails the test, and so does a report
// that leaves the capability out: neither may pass for a reason to skip.
func Need(t testing.TB, capabilities ...platform.Capability) {
	t.Helper()
	r, err := report()
	if err != nil {
		t.Fatalf("ask host: %v", err)
	}
	for _, c := range capabilities {
		f, ok := finding(r, c)
		if !ok {
			t.Fatalf("the host's report says nothing of %s", c)
		}
		if f.Status == platform.Enforced {
			continue
		}
		why := string(c) + " is " + string(f.Status) + " here: " + f.Reason
		if f.Remedy != "" {
			why += " (" + f.Remedy + ")"
		}
		t.Skip(why)
	}
}

func finding(r platform.Report, c platform.Capability) (platform.Finding, bool) {
	for _, f := range r.Findings {
		if f.Capability == c {
			return f, true
		}
	}
	return platform.Finding{}, false
}
