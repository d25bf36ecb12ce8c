// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is one kernel in the cache.
type Kernel struct {
	Name    string // its directory's: the beginning of a release, or "newest"
	Release string // what uname -r says
	Dir     string
}

// Cache returns the directory in which .ci/vm keeps kernels for this user.
func Cache() (string, error) {
	if dir := os.Getenv("THOLE_VM_CACHE"); dir != "" {
		return dir, nil
	}
	if os.Getuid() == 0 {
		return "/var/cache/thole-vm", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache of kernels: %w", err)
	}
	return filepath.Join(dir, "thole-vm"), nil
}

// Open returns the kernel of that name.
func Open(cache, name string) (Kernel, error) {
	dir := filepath.Join(cache, name)
	b, err := os.ReadFile(filepath.Join(dir, "release"))
	if errors.Is(err, os.ErrNotExist) {
		return Kernel{}, fmt.Errorf("no kernel %s in %s: run .ci/vm %s", name, cache, name)
	}
	if err != nil {
		return Kernel{}, fmt.Errorf("open kernel %s: %w", name, err)
	}
	return Kernel{Name: name, Release: strings.TrimSpace(string(b)), Dir: dir}, nil
}

// Image is the path of the kernel itself.
func (k Kernel) Image() string { return filepath.Join(k.Dir, "vmlinuz") }

// Modules returns the paths, in the order of loading, of the modules named and
// of those that they need. A name that is no module is taken to be part of the
// kernel.
func (k Kernel) Modules(names ...string) ([]string, error) {
	dir := filepath.Join(k.Dir, "modules")
	b, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("list modules of kernel %s: %w", k.Name, err)
	}
	var paths []string
	for _, m := range loadOrder(string(b), names) {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(m)))
	}
	return paths, nil
}

// loadOrder reads the text of modules.dep (depmod(8), modules.dep(5)): each
// line is a module and, after a colon, everything that it needs, the last of
// which is to be loaded first.
func loadOrder(dep string, names []string) []string {
	var order []string
	for _, name := range names {
		for line := range strings.Lines(dep) {
			module, needs, ok := strings.Cut(strings.TrimSpace(line), ":")
			base, _, _ := strings.Cut(path.Base(module), ".")
			if !ok || strings.ReplaceAll(base, "-", "_") != name {
				continue
			}
			all := strings.Fields(needs)
			slices.Reverse(all)
			for _, m := range append(all, module) {
				if !slices.Contains(order, m) {
					order = append(order, m)
				}
			}
			break
		}
	}
	return order
}
