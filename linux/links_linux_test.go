// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
)

// What an earlier job, or another user, can plant must not choose what the
// next run grants.
func TestPlantedLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes files of another owner")
	}
	dir := t.TempDir()
	mk := func(name string, mode os.FileMode, uid int) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.Mkdir(p, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(p, uid, uid); err != nil {
			t.Fatal(err)
		}
		return p
	}
	link := func(target, place string, uid int) string {
		t.Helper()
		if err := os.Symlink(target, place); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(place, uid, uid); err != nil {
			t.Fatal(err)
		}
		return place
	}
	secret := mk("secret", 0o700, 0)
	work := mk("work", 0o755, 0)
	own := mk("own", 0o755, 0)
	theirs := mk("theirs", 0o755, 65534)
	shared := mk("shared", 0o777, 0)
	sticky := mk("sticky", 0o777|os.ModeSticky, 0)
	tests := []struct {
		name, path string
		want       string
	}{
		{"left in what is writable", link(secret, filepath.Join(work, "cache"), 0), "lies in the writable"},
		{"root's, in root's directory", link(secret, filepath.Join(own, "l"), 0), ""},
		{"in another user's directory", link(secret, filepath.Join(theirs, "l"), 0), "others could have made"},
		{"another user's", link(secret, filepath.Join(own, "x"), 65534), "others could have made"},
		{"in a directory that others write", link(secret, filepath.Join(shared, "l"), 0), "others could have made"},
		{"root's in a sticky directory", link(secret, filepath.Join(sticky, "l"), 0), ""},
		{"another's in a sticky directory", link(secret, filepath.Join(sticky, "x"), 65534), "others could have made"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &policy.Policy{FS: policy.FS{RW: []policy.Path{{Path: work}}, RO: []policy.Path{{Path: tt.path}}}}
			_, o, err := resolve(p, platform.Spec{Path: "/bin/true"}, "", true)
			if err == nil {
				o.close()
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
