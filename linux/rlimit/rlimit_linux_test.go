// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package rlimit_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/tholehq/thole/linux/rlimit"
)

const roleVar = "THOLE_RLIMIT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		soft, hard, ok := rlimit.Nofile()
		fmt.Println(soft, hard, ok)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestNofile: the limit is the one that the process was started with, whatever
// the Go library has made of it since.
func TestNofile(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []struct{ set, want string }{
		{"ulimit -Sn 99; ulimit -Hn 200", "99 200 true\n"},
		{"ulimit -Sn 199; ulimit -Hn 200", "199 200 true\n"},
		{"ulimit -Sn 200; ulimit -Hn 200", "200 200 true\n"},
	} {
		c := exec.Command("/bin/sh", "-c", limits.set+`; exec "$0"`, exe)
		c.Env = []string{roleVar + "=1"}
		out, err := c.CombinedOutput()
		if err != nil || string(out) != limits.want {
			t.Errorf("%s: %v, %q, want %q", limits.set, err, out, limits.want)
		}
	}
}
