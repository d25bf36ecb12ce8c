// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/common/policy"
)

// TestReadPolicy: a policy is read whole or not at all.
func TestReadPolicy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p")
	for _, n := range []int{0, 1, 64 << 10, 64<<10 + 1, policy.MaxDocument} {
		if err := os.WriteFile(file, []byte(strings.Repeat("x", n)), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := readPolicy(file); err != nil || len(b) != n {
			t.Errorf("%d bytes: %d, %v", n, len(b), err)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("x", policy.MaxDocument+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var pe *policy.Error
	if _, err := readPolicy(file); !errors.As(err, &pe) || pe.Hint == "" {
		t.Errorf("too large: %v", err)
	}
	if _, err := readPolicy(dir); !errors.As(err, &pe) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := readPolicy("/dev/null"); !errors.As(err, &pe) {
		t.Errorf("a device: %v", err)
	}
	// The kernel lets it be opened, and reading answers EIO: the address 0 of
	// this process is not mapped.
	if _, err := readPolicy("/proc/self/mem"); !errors.Is(err, syscall.EIO) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	// From a pipe, in pieces (a shell's process substitution).
	r, w := pipe(t)
	go func() {
		for range 3 {
			_, _ = w.WriteString("xx")
		}
		w.Close()
	}()
	if b, err := readPolicy("/proc/self/fd/" + strconv.Itoa(int(r.Fd()))); err != nil || string(b) != "xxxxxx" {
		t.Errorf("a pipe: %q, %v", b, err)
	}
}
