// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// TestMapSizes holds the sizes that a map is opened by against the image.
func TestMapSizes(t *testing.T) {
	im, err := flat.Net()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range im.Maps {
		if m.Contents != nil {
			continue
		}
		if k, v := layout(m.Name); k != m.KeySize || v != m.ValueSize {
			t.Errorf("%s: sizes %d and %d, the image has %d and %d", m.Name, k, v, m.KeySize, m.ValueSize)
		}
	}
}

// makeOld replaces a pinned map by one with a larger value, as another version
// would have left it, and marks the pins as that version's.
func makeOld(t *testing.T, j *jail, name string) {
	t.Helper()
	im, err := flat.Net()
	if err != nil {
		t.Fatal(err)
	}
	if name != "meta" {
		markOld(t, j)
	}
	for _, m := range im.Maps {
		if m.Name != name {
			continue
		}
		if m.Inner != nil {
			t.Fatalf("%s holds maps", name)
		}
		m.ValueSize += 8
		fd, err := mapCreate(&m, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		path := filepath.Join(j.e.Pins(), name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := objPin(fd, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no map %s", name)
}

// TestRenew opens where a map of another layout is pinned and nothing lives:
// everything is made anew, and enforces.
func TestRenew(t *testing.T) {
	for _, name := range []string{"meta", "own", "policies", "stats"} {
		t.Run(name, func(t *testing.T) {
			j := newJail(t)
			idle := j.cell("")
			idle.put(&Policy{})
			f, err := os.Create(filepath.Join(j.e.Pins(), "any_0011223344556677"))
			if err == nil {
				f.Close()
				t.Fatal("a bpf file system takes plain files")
			}
			if err := os.Mkdir(filepath.Join(j.e.Pins(), "any_0011223344556677"), 0o700); err != nil {
				t.Fatal(err)
			}
			makeOld(t, j, name)
			other, err := Open(j.options())
			if err != nil {
				t.Fatal(err)
			}
			other.Close()
			j.open()
			if dirs, err := j.e.foreignDirs(); err != nil || len(dirs) != 0 {
				t.Errorf("left of the other version: %v, %v", dirs, err)
			}
			fd, err := j.e.fd("policies")
			if err != nil {
				t.Fatal(err)
			}
			if ids, err := mapKeys[uint64](fd); err != nil || len(ids) != 0 {
				t.Errorf("policies of the other version: %v, %v", ids, err)
			}
			c := j.cell("prisoner")
			c.put(&Policy{})
			if got := c.act(refusedDial)[0]; got != perm {
				t.Errorf("errno %v, want EPERM", unix.Errno(got))
			}
			j.attachedOnce("anew")
		})
	}
}

// TestRenewBusy: while something lives under the other layout it stays in
// force, and the error says what is in the way.
func TestRenewBusy(t *testing.T) {
	refused := func(t *testing.T, j *jail) {
		t.Helper()
		e, err := Open(j.options())
		if err == nil {
			e.Close()
		}
		if !errors.Is(err, errLayout) || Remedy(err) == "" {
			t.Errorf("error %v, want the other layout with a remedy", err)
		}
	}
	accepted := func(t *testing.T, j *jail) {
		t.Helper()
		e, err := Open(j.options())
		if err != nil {
			t.Fatal(err)
		}
		e.Close()
	}
	t.Run("process", func(t *testing.T) {
		j := newJail(t)
		c := j.cell("prisoner")
		c.put(&Policy{})
		makeOld(t, j, "own")
		refused(t, j)
		if got := c.act(refusedDial)[0]; got != perm {
			t.Errorf("errno %v, want EPERM", unix.Errno(got))
		}
		c.end()
		accepted(t, j)
	})
	t.Run("owner", func(t *testing.T) {
		j := newJail(t)
		c := j.cell("")
		makeOld(t, j, "meta")
		if err := unix.Flock(int(c.fd.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		refused(t, j)
		unix.Flock(int(c.fd.Fd()), unix.LOCK_UN)
		accepted(t, j)
	})
	t.Run("cgroup of others", func(t *testing.T) {
		j := newJail(t)
		c := j.outside("given", "prisoner")
		c.put(&Policy{})
		if err := j.e.AttachTo(int(c.fd.Fd())); err != nil {
			t.Fatal(err)
		}
		makeOld(t, j, "resolvers")
		refused(t, j)
		if got := c.act(refusedDial)[0]; got != perm {
			t.Errorf("errno %v, want EPERM", unix.Errno(got))
		}
		c.end()
		accepted(t, j)
	})
}

// TestOtherLayout: a map that was exchanged after the enforcer was opened is
// not written to.
func TestOtherLayout(t *testing.T) {
	j := newJail(t)
	// Who adopts the pins opens a map when it is first needed.
	e, err := Open(j.options())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	makeOld(t, j, "own")
	if err := e.SyncOwn(5, nil); !errors.Is(err, errLayout) {
		t.Errorf("error %v, want the other layout", err)
	}
}
