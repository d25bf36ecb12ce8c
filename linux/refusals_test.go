// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/seccomp"
)

// Grants that add up to more than they say are refused.
func TestNesting(t *testing.T) {
	root := Host{Arch: seccomp.AMD64, Root: true, Landlock: 7, Proc: true}
	user := Host{Arch: seccomp.AMD64, UID: 1000, GID: 1000, Landlock: 7, UserNS: true}
	bare := Host{Arch: seccomp.AMD64, UID: 1000, GID: 1000, Landlock: 7}
	r := func(g Grant, p string) Root { return Root{Grant: g, Path: p} }
	tests := []struct {
		name  string
		host  Host
		roots []Root
		want  string // in the error; empty: it compiles
	}{
		{"outbox in the private /tmp", root, []Root{r(WO, "/tmp/out")}, "the program's own"},
		{"outbox in the private /dev/shm", root, []Root{r(WO, "/dev/shm/out")}, "the program's own"},
		{"the same as a user with a view", user, []Root{r(WO, "/tmp/out")}, "the program's own"},
		{"without a view /tmp is the host's", bare, []Root{r(WO, "/tmp/out")}, ""},
		{"outbox elsewhere", root, []Root{r(WO, "/srv/out")}, ""},
		{"outbox in a readable path", root, []Root{r(RO, "/srv"), r(WO, "/srv/out")}, "could be read"},
		{"read-only child of a writable path", root, []Root{r(RW, "/srv/w"), r(RO, "/srv/w/hooks")}, ""},
		{"read-only two levels down", root, []Root{r(RW, "/srv/w"), r(RO, "/srv/w/git/hooks")}, "can be renamed"},
		{"the same for rd", user, []Root{r(RW, "/srv/w"), r(RD, "/srv/w/git/hooks")}, "can be renamed"},
		{"no view, no difference", bare, []Root{r(RW, "/srv/w"), r(RO, "/srv/w/hooks")}, "would be writable"},
		{"writable below writable", root, []Root{r(RW, "/srv/w"), r(RW, "/srv/w/a/b")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.host, Resolved{Policy: &policy.Policy{}, Roots: tt.roots, Tmp: "/tmp", Shm: "/dev/shm", Dir: "/"}, Options{})
			var pe *platform.Error
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (!errors.As(err, &pe) || !strings.Contains(err.Error(), tt.want) || pe.Remedy == ""):
				t.Errorf("want a refusal with %q and a remedy, got %v", tt.want, err)
			}
		})
	}
}
