// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/common/sandbox"
	"golang.org/x/sys/unix"
)

// grants are the roots of every start, relative to the world.
func (o *order) grants() policy.FS {
	at := func(names ...string) (out []policy.Path) {
		for _, n := range names {
			out = append(out, policy.Path{Path: filepath.Join(o.World, n), Pos: policy.Pos{Flag: "the test's " + n}})
		}
		return out
	}
	g := policy.FS{RO: at("ro"), RW: at("rw", "rw2"), RD: at("rd")}
	if o.Mode != "any" {
		// With an outbox no links are made anywhere: one mode goes without.
		g.WO = at("wo")
	}
	if o.Kind != "bare" {
		// Without a view this grant is refused: the rights would add up.
		g.RO = append(g.RO, at("rw/kept")...)
	}
	if o.Kind == "same" {
		g.RW = append(g.RW, at("ram")...)
	}
	g.RO = append(g.RO, policy.Path{Path: filepath.Dir(o.Program), Pos: policy.Pos{Flag: "the test's program"}})
	return g
}

func (o *order) policy() (*policy.Policy, []platform.Capability) {
	p := &policy.Policy{Kind: "runner", FS: o.grants()}
	var accept []platform.Capability
	switch o.Mode {
	case "allow":
		p.Net.Mode, p.Net.ProxyPort = policy.Allowlist, uint16(o.ProxyPort)
		accept = append(accept, platform.NetAllowlist)
	case "any":
		p.Net.Mode = policy.Any
		accept = append(accept, platform.NetAny)
	case "audit":
		p.Net.Audit = true
	case "broker":
		p.Broker = filepath.Join(o.World, "sock/broker")
		accept = append(accept, platform.IPC)
	}
	switch o.Kind {
	case "root":
		accept = nil // everything can be had
	case "same":
		accept = append(accept, platform.Identity)
	}
	return p, accept
}

// warden starts the sandbox and waits for it.
func warden(o *order) (*answer, error) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT, unix.SIGUSR1)
	// The last of the inherited descriptors is a gate: the acts are written
	// once this process has a pid.
	const gate = 6
	if _, err := unix.Read(gate, make([]byte, 1)); err != nil {
		return nil, err
	}
	pf, err := sandbox.Native()
	if err != nil {
		return nil, err
	}
	defer pf.Close()
	pol, accept := o.policy()
	// A pipe's reader in the warden: the prisoner has no descriptor that the
	// test does not mean to give it.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a := &answer{Events: map[string]int{}}
	plan, err := pf.Plan(platform.Spec{
		Policy: pol, Path: o.Program, Argv: []string{o.Program, filepath.Join(o.World, "ro/acts.json")},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: filepath.Join(o.World, "rw"),
		Stdin: os.Stdin, Stdout: w, Stderr: os.Stderr, Accept: accept, Timeout: time.Minute,
		OwnsChildren: true,
	})
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	a.Gaps = plan.Gaps()
	proc, err := plan.Start(context.Background())
	w.Close()
	if err != nil {
		return nil, err
	}
	out := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(r)
		out <- b
	}()
	for e := range proc.Events() {
		a.Events[string(e.Type)+" "+string(e.Capability)] += int(e.N())
	}
	res, err := proc.Wait()
	if err != nil {
		return nil, err
	}
	a.Code, a.Lost = res.Code, res.Lost
	printed := <-out
	if err := json.NewDecoder(bytes.NewReader(printed)).Decode(&a.Outcomes); err != nil {
		return nil, fmt.Errorf("prisoner ended with %d and printed %.300q: %w", res.Code, printed, err)
	}
	signal.Stop(signals)
	a.Signals = len(signals)
	return a, nil
}
