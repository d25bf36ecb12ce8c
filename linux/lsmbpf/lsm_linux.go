// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package lsmbpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/tholehq/thole/bpf"
	"github.com/tholehq/thole/bpf/flat"
)

// Config says whose sandboxes the LSM programs judge.
type Config struct {
	// Pins is the directory with the network programs' maps
	// (netbpf.Enforcer.Pins).
	Pins string
	// Parent is the cgroup id of the parent of all sandboxes.
	Parent uint64
	// JudgeUnix has the LSM hooks judge the peers of unix sockets, for kernels
	// whose cgroup hooks do not (netbpf.Features.Unix is false).
	JudgeUnix bool
}

// LSM holds the attached programs. They end with it: unlike the network
// programs they run for every process of the host, so they are attached only
// while an agent is there.
type LSM struct {
	links []link.Link
	hooks []string
	gaps  map[string]error
}

// shared are the maps that the object takes from the pins.
var shared = []string{"policies", "stats", "slots", "rings"}

// Attach loads and attaches what the kernel takes. A hook that it lacks is in
// Gaps; if it takes none at all, the error is the first one's.
func Attach(c Config) (*LSM, error) {
	if err := active(os.ReadFile); err != nil {
		return nil, err
	}
	spec, err := bpf.LoadLsm()
	if err != nil {
		return nil, fmt.Errorf("read lsm object: %w", err)
	}
	if err := spec.Variables["knobs"].Set(flat.Knobs{Parent: c.Parent, Level: -1}); err != nil {
		return nil, fmt.Errorf("set lsm knobs: %w", err)
	}
	if c.JudgeUnix {
		if err := spec.Variables["judge_unix"].Set(uint32(1)); err != nil {
			return nil, fmt.Errorf("set lsm knobs: %w", err)
		}
	}
	maps := map[string]*ebpf.Map{}
	defer func() {
		for _, m := range maps {
			m.Close()
		}
	}()
	for _, name := range shared {
		m, err := ebpf.LoadPinnedMap(filepath.Join(c.Pins, name), nil)
		if err != nil {
			return nil, fmt.Errorf("open pinned map %s: %w", name, err)
		}
		maps[name] = m
	}
	l := &LSM{gaps: map[string]error{}}
	var first error
	for name, p := range spec.Programs {
		if err := l.attach(spec, name, maps); err != nil {
			l.gaps[p.AttachTo] = err
			if first == nil {
				first = err
			}
			continue
		}
		l.hooks = append(l.hooks, p.AttachTo)
	}
	if len(l.links) == 0 {
		return nil, fmt.Errorf("attach lsm programs: %w", first)
	}
	return l, nil
}

// attach loads one program by itself, so that a hook that the kernel lacks
// takes no other with it.
func (l *LSM) attach(all *ebpf.CollectionSpec, name string, maps map[string]*ebpf.Map) error {
	one := all.Copy()
	for other := range one.Programs {
		if other != name {
			delete(one.Programs, other)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	defer coll.Close()
	k, err := link.AttachLSM(link.LSMOptions{Program: coll.Programs[name]})
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	l.links = append(l.links, k)
	return nil
}

// Hooks returns the LSM hooks that are judged.
func (l *LSM) Hooks() []string { return l.hooks }

// Gaps returns the hooks that are not, and why.
func (l *LSM) Gaps() map[string]error { return l.gaps }

// Close detaches the programs.
func (l *LSM) Close() error {
	var errs []error
	for _, k := range l.links {
		errs = append(errs, k.Close())
	}
	l.links = nil
	return errors.Join(errs...)
}
