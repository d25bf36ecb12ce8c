// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Keys of the scalars of a Policy, for [Policy.PosOf] and [Policy.SetPos].
const (
	KeyModule    = "module"
	KeyKind      = "kind"
	KeyNetMode   = "net.mode"
	KeyProxyPort = "net.proxy_port"
	KeyDefault   = "net.default"
	KeyAudit     = "net.audit"
	KeyBroker    = "broker"
	KeyGPU       = "gpu"
	KeyExecRW    = "exec_rw"
	KeyExe       = "exe"
	KeyMemory    = "limits.memory"
	KeyCPU       = "limits.cpu"
	KeyPids      = "limits.pids"
)

// setting records that a scalar was written, and where.
type setting struct {
	key string
	pos Pos
}

// PosOf returns where the scalar of that key was written, and whether it was
// written at all: an explicit false or "none" is, a default is not.
func (p *Policy) PosOf(key string) (Pos, bool) {
	for _, s := range p.set {
		if s.key == key {
			return s.pos, true
		}
	}
	return Pos{}, false
}

// SetPos records that the scalar of that key was written at pos. A caller that
// fills a Policy from flags calls it for each flag that was given.
func (p *Policy) SetPos(key string, pos Pos) {
	for i := range p.set {
		if p.set[i].key == key {
			p.set[i].pos = pos
			return
		}
	}
	p.set = append(p.set, setting{key, pos})
}
