// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakeHelp wants every target of the Makefile in `make help`, with words.
func TestMakeHelp(t *testing.T) {
	dir := root(t)
	data, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`).FindAllStringSubmatch(string(data), -1) {
		targets = append(targets, m[1])
	}
	for _, want := range []string{"help", "build", "demo", "test", "test-race", "fuzz", "check", "bench", "bench-start", "generate", "clean", "install"} {
		if !slices.Contains(targets, want) {
			t.Errorf("no target %s", want)
		}
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	cmd := exec.Command("make", "--no-print-directory", "help")
	cmd.Dir = dir
	// What an outer make hands down is not this one's.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "MAKEFLAGS=") || strings.HasPrefix(kv, "MAKELEVEL=") || strings.HasPrefix(kv, "MFLAGS=")
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make help: %v\n%s", err, out)
	}
	help := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		help[name] = strings.TrimSpace(text)
	}
	for _, target := range targets {
		if help[target] == "" {
			t.Errorf("make help does not explain %s", target)
		}
	}
}

// TestCrossBuild builds every package, its own system's tests aside, for the
// platforms that a release serves.
func TestCrossBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the cross build takes a minute")
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		t.Run(strings.ReplaceAll(platform, "/", "-"), func(t *testing.T) {
			goos, goarch, _ := strings.Cut(platform, "/")
			cmd := exec.Command("go", "build", "./...")
			cmd.Dir = root(t)
			cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go build: %v\n%s", err, out)
			}
		})
	}
}
