// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package lsmbpf

import (
	"errors"
	"io/fs"
	"testing"
)

func TestActive(t *testing.T) {
	for _, tt := range []struct {
		list string
		err  error
		want error
	}{
		{"lockdown,capability,landlock,bpf\n", nil, nil},
		{"capability,yama", nil, ErrInactive},
		{"capability,bpfx", nil, ErrInactive},
		{"", fs.ErrNotExist, nil},
	} {
		got := active(func(string) ([]byte, error) { return []byte(tt.list), tt.err })
		if !errors.Is(got, tt.want) {
			t.Errorf("%q: %v, want %v", tt.list, got, tt.want)
		}
	}
}
