// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"strings"
	"testing"
)

const mountinfo = `100 99 8:1 / / ro,nosuid,relatime - ext4 /dev/root rw
101 100 0:5 / /dev ro,nosuid shared:2 master:1 - devtmpfs dev rw
102 100 0:20 / /tmp ro,nosuid - tmpfs tmpfs rw
103 102 0:31 / /tmp rw,nosuid,nodev,noexec - tmpfs none rw,mode=1777
104 103 8:1 /srv/w /tmp/a\040b rw,nosuid,nodev,idmapped - ext4 /dev/root rw
105 104 8:2 / /tmp/a\040b/sub rw,nosuid,nodev,idmapped - ext4 /dev/sdb rw
106 100 0:33 / /proc rw,nosuid,nodev,noexec - proc none rw,hidepid=invisible
107 100 8:1 /srv/r /srv/r ro,nosuid,nodev - ext4 /dev/root rw
`

func wanted() *View {
	return &View{
		Writable: []string{"/tmp", "/tmp/a b", "/proc"},
		Mounts: []Mount{
			{Path: "/", Options: []string{"ro", "nosuid"}},
			{Path: "/tmp", Type: "tmpfs", Options: []string{"rw", "nosuid", "nodev", "noexec"}},
			{Path: "/tmp/a b", Options: []string{"rw", "idmapped"}},
			{Path: "/proc", Type: "proc", Options: []string{"rw"}, Super: "hidepid=invisible"},
			{Path: "/srv/r", Options: []string{"ro", "!idmapped"}},
		},
	}
}

func TestView(t *testing.T) {
	if err := wanted().check(mountinfo); err != nil {
		t.Fatal("the good view:", err)
	}
	for _, tt := range []struct{ name, old, new string }{
		{"the rest is writable", "/ / ro,", "/ / rw,"},
		{"a mount of the rest is writable", "/ /dev ro,", "/ /dev rw,"},
		{"setuid programs work", "/ / ro,nosuid,", "/ / ro,"},
		{"no private directory", "103 102 0:31 / /tmp rw,nosuid,nodev,noexec - tmpfs none rw,mode=1777\n", ""},
		{"another file system there", "- tmpfs none rw,mode=1777", "- ext4 none rw,mode=1777"},
		{"a root is not there", `104 103 8:1 /srv/w /tmp/a\040b rw`, `104 103 8:1 /srv/w /tmp/ab rw`},
		{"a root has no mapping", `/tmp/a\040b rw,nosuid,nodev,idmapped`, `/tmp/a\040b rw,nosuid,nodev`},
		{"a read-only root is writable", "/srv/r /srv/r ro,", "/srv/r /srv/r rw,"},
		{"a root has a mapping", "/srv/r ro,nosuid,nodev", "/srv/r ro,nosuid,nodev,idmapped"},
		{"processes are visible", "rw,hidepid=invisible", "rw"},
		{"a neighbour is writable", "107 100 8:1 /srv/r /srv/r ro,nosuid,nodev", "108 100 8:1 / /tmpx rw - ext4 x rw\n107 100 8:1 /srv/r /srv/r ro,nosuid,nodev"},
		{"a mount on top", "107 100", "108 106 0:9 / /proc ro - proc none ro\n107 100"},
		{"a line that is none", "107 100 8:1", "8:1"},
	} {
		text := strings.Replace(mountinfo, tt.old, tt.new, 1)
		if text == mountinfo {
			t.Fatalf("%s: %q is not in the text", tt.name, tt.old)
		}
		var f *Failure
		if err := wanted().check(text); !errors.As(err, &f) || f.Check != "view" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := wanted().check(""); err == nil {
		t.Error("an empty list passed")
	}
}

// TestStd: a standard descriptor that leads elsewhere is seen.
func TestStd(t *testing.T) {
	e := Expect{UID: -1, GID: -1, Std: [3]string{"", "pipe:[1]", ""}}
	if err := Check(e, Seen{Status: good, Std: [3]string{"x", "pipe:[1]", "y"}}); err != nil {
		t.Error(err)
	}
	var f *Failure
	if err := Check(e, Seen{Status: good, Std: [3]string{"x", "socket:[1]", "y"}}); !errors.As(err, &f) || f.Check != "descriptor 1" {
		t.Error(err)
	}
}
