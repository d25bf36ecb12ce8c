// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package mixed

import "testing"

func TestPass(t *testing.T) { t.Log("not shown") }

func TestSkip(t *testing.T) { t.Skip("needs a moon") }

func TestSkipLines(t *testing.T) {
	t.Log("before")
	t.Skip("needs two\nlines")
}

func TestSkipBare(t *testing.T) { t.SkipNow() }

func TestGroup(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Skip("needs a sub") })
}

func TestFail(t *testing.T) {
	t.Run("good", func(t *testing.T) { t.Log("quiet") })
	t.Run("bad", func(t *testing.T) { t.Error("the reason of the failure") })
}
