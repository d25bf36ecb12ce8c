// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"strings"
	"testing"
)

func TestCloseOthers(t *testing.T) {
	tests := []struct {
		name    string
		handles map[string]int
		want    []string
	}{
		{"none", nil, []string{"close_range(3, ~0, 0)"}},
		{"first", map[string]int{"a": 3}, []string{"close_range(4, ~0, 0)"}},
		{"apart", map[string]int{"a": 9, "b": 5}, []string{"close_range(3, 4, 0)", "close_range(6, 8, 0)", "close_range(10, ~0, 0)"}},
		{"neighbours and one twice", map[string]int{"a": 4, "b": 5, "c": 5}, []string{"close_range(3, 3, 0)", "close_range(6, ~0, 0)"}},
		{"standard ones are no gap", map[string]int{"in": 0, "out": 1, "err": 2}, []string{"close_range(3, ~0, 0)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, o := range closeOthers(tt.handles) {
				got = append(got, o.String())
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}
