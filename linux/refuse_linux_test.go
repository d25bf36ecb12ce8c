// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
)

// TestRefuse: a start is refused where a gap is required, and a strict one at
// any gap; every gap is named.
func TestRefuse(t *testing.T) {
	for _, h := range hosts() {
		for _, c := range policies() {
			plan, err := Compile(h.Host, c.Resolved, c.o)
			if err != nil {
				continue // TestGaps holds which
			}
			required := 0
			for _, g := range plan.Gaps() {
				if g.Required {
					required++
				}
			}
			for _, strict := range []bool{false, true} {
				plan.start.Strict = strict
				want := required
				if strict {
					want = len(plan.Gaps())
				}
				err := plan.refuse()
				if (err != nil) != (want > 0) || err != nil && !errors.Is(err, platform.ErrConfine) {
					t.Errorf("%s %s, strict %v: %d gaps refuse, %v", h.name, c.name, strict, want, err)
				}
				for _, g := range plan.Gaps() {
					if (g.Required || strict) && !strings.Contains(err.Error(), string(g.Capability)) {
						t.Errorf("%s %s: %v does not name %s", h.name, c.name, err, g.Capability)
					}
				}
			}
		}
	}
}
