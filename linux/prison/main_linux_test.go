// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/sandtest"
)

// roleVar makes this test binary play a part: "host" is the machine around a
// sandbox, with a network and listeners of its own; "warden", its child, is
// the process that starts the sandbox. Both read their order from the file
// that orderVar names.
const (
	roleVar  = "THOLE_PRISON_ROLE"
	orderVar = "THOLE_PRISON_ORDER"
)

func TestMain(m *testing.M) {
	role := map[string]func(*order) (*answer, error){"host": host, "warden": warden}[os.Getenv(roleVar)]
	if role == nil {
		os.Exit(sandtest.Main(m))
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, os.Getenv(roleVar)+":", err)
		os.Exit(1)
	}
}

func play(role func(*order) (*answer, error)) error {
	b, err := os.ReadFile(os.Getenv(orderVar))
	if err != nil {
		return err
	}
	os.Unsetenv(roleVar)
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	a, err := role(&o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

// order is one start.
type order struct {
	Kind, Mode string // "root", "same", "user" or "bare"; "none", "allow", "any", "audit" or "broker"
	World      string
	Program    string   // the prisoner
	Acts       []string // with words in braces
	ProxyPort  int
	Secret     string // in the warden's environment
}

// A job of "same" runs as root: it is given a path that cannot be id-mapped,
// and that is accepted. "bare" is a user who gets no view.

// uid is who starts the sandbox.
func (o *order) uid() int {
	if o.Kind == "user" || o.Kind == "bare" {
		return nobody
	}
	return 0
}

// nobody is an ordinary user (nobody(7) by custom).
const nobody = 65534

// answer is what came of it.
type answer struct {
	Outcomes []string
	Gaps     []platform.Gap
	Events   map[string]int // denials that were reported, by type and capability
	Lost     uint64
	Code     int
	// Signals are those that reached the warden, Typed what the prisoner put
	// into its terminal, Seen what listeners outside saw of it.
	Signals int
	Typed   string
	Seen    []string
}
