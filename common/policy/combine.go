// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// Combine returns the policy of a document and of flags together: lists add
// up, and a scalar that both wrote with different values is an *Error that
// names both places. The rules of a keep their ids, those of b follow. The
// result is valid, as [Policy.Validate] has it. A nil Policy adds nothing.
func Combine(a, b *Policy) (*Policy, error) {
	if a == nil {
		a = &Policy{}
	}
	if b == nil {
		b = &Policy{}
	}
	c := &combiner{a: a, b: b, to: &Policy{}}
	p := c.to
	p.Module = pick(c, KeyModule, a.Module, b.Module)
	p.Kind = pick(c, KeyKind, notDefault(a), notDefault(b))
	if p.Kind == "" {
		p.Kind = defaultKind
	}
	p.Net.Mode = pick(c, KeyNetMode, a.Net.Mode, b.Net.Mode)
	p.Net.ProxyPort = pick(c, KeyProxyPort, a.Net.ProxyPort, b.Net.ProxyPort)
	p.Net.Default = pick(c, KeyDefault, a.Net.Default, b.Net.Default)
	p.Net.Audit = pick(c, KeyAudit, a.Net.Audit, b.Net.Audit)
	p.Broker = pick(c, KeyBroker, a.Broker, b.Broker)
	p.GPU = pick(c, KeyGPU, a.GPU, b.GPU)
	p.ExecRW = pick(c, KeyExecRW, a.ExecRW, b.ExecRW)
	p.Exe = pick(c, KeyExe, a.Exe, b.Exe)
	p.Limits.MemoryBytes = pick(c, KeyMemory, a.Limits.MemoryBytes, b.Limits.MemoryBytes)
	p.Limits.MilliCPU = pick(c, KeyCPU, a.Limits.MilliCPU, b.Limits.MilliCPU)
	p.Limits.Pids = pick(c, KeyPids, a.Limits.Pids, b.Limits.Pids)
	if c.err != nil {
		return nil, c.err
	}
	p.FS.RO = union(a.FS.RO, b.FS.RO, pathKey)
	p.FS.RW = union(a.FS.RW, b.FS.RW, pathKey)
	p.FS.RD = union(a.FS.RD, b.FS.RD, pathKey)
	p.FS.WO = union(a.FS.WO, b.FS.WO, pathKey)
	p.Net.Allow = union(a.Net.Allow, b.Net.Allow, HostPort.String)
	p.Net.Rules = slices.Concat(a.Net.Rules, b.Net.Rules)
	p.Tools = union(a.Tools, b.Tools, func(t Tool) string { return t.ID })
	for i, t := range p.Tools {
		// A tool that either calls dangerous is.
		p.Tools[i].CodeExec = t.CodeExec || slices.ContainsFunc(b.Tools, func(o Tool) bool { return o.ID == t.ID && o.CodeExec })
	}
	p.Containers = union(a.Containers, b.Containers, func(c Container) string { return c.Platform + " " + c.Image })
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func pathKey(p Path) string { return p.Path }

// notDefault returns the kind where it says more than the default does.
func notDefault(p *Policy) string {
	if _, set := p.PosOf(KeyKind); !set && p.Kind == defaultKind {
		return ""
	}
	return p.Kind
}

// combiner collects the scalars and remembers the first contradiction.
type combiner struct {
	a, b, to *Policy
	err      error
}

func pick[T comparable](c *combiner, key string, av, bv T) T {
	var zero T
	ap, aSet := c.a.PosOf(key)
	bp, bSet := c.b.PosOf(key)
	if aSet {
		c.to.SetPos(key, ap)
	} else if bSet {
		c.to.SetPos(key, bp)
	}
	aSet, bSet = aSet || av != zero, bSet || bv != zero
	switch {
	case !bSet || av == bv:
		return av
	case !aSet:
		return bv
	}
	if c.err == nil {
		at := bp
		if at.File == "" {
			at = ap
		}
		c.err = &Error{File: at.File, Line: at.Line, Column: at.Column, Key: key, Hint: "keep one of the two",
			Msg: fmt.Sprintf("%v (%s) contradicts %v (%s)", bv, place(bp), av, place(ap))}
	}
	return av
}

func place(p Pos) string {
	if s := p.String(); s != "" {
		return s
	}
	return "position unknown"
}

// union returns the elements of a, then those of b, the first of each key.
func union[T any](a, b []T, key func(T) string) []T {
	var out []T
	seen := make(map[string]bool, len(a)+len(b))
	for _, list := range [2][]T{a, b} {
		for _, v := range list {
			if k := key(v); !seen[k] {
				seen[k] = true
				out = append(out, v)
			}
		}
	}
	return out
}
