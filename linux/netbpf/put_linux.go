// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/common/addr"
)

// Put gives the sandbox with this cgroup id a policy, or replaces the one it
// has. A process of the sandbox sees the old policy whole or the new one
// whole: rules are stored under a generation of their own before the policy
// names it.
func (e *Enforcer) Put(cgroup uint64, im *Image) error {
	policies, err := e.fd("policies")
	if err != nil {
		return err
	}
	stats, err := e.fd("stats")
	if err != nil {
		return err
	}
	var old flat.Policy
	had := mapLookup(policies, &cgroup, &old) == nil
	value := im.policy
	if len(im.nodes) > 0 {
		if value.Generation, err = newGeneration(old.Generation); err != nil {
			return err
		}
	}
	keys, err := e.putRules(cgroup, value.Generation, im.nodes)
	if err != nil {
		return err
	}
	// So that the programs need not allocate when they first count.
	zero := make([]flat.Stats, possibleCPUs())
	if err := mapUpdate(stats, &cgroup, &zero[0], unix.BPF_NOEXIST); err != nil && err != unix.EEXIST {
		return &Error{Step: "write map", Object: "stats", Err: err, Hint: hint(err)}
	}
	if err := mapUpdate(policies, &cgroup, &value, unix.BPF_ANY); err != nil {
		e.dropKeys(keys)
		return &Error{Step: "write map", Object: "policies", Err: err, Hint: hint(err)}
	}
	if had && old.Flags&uint8(flat.HasRules) != 0 {
		// A program that read the old policy may still be looking for its rules.
		unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
		if err := e.dropRules(cgroup, old.Generation); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ruled, cgroup)
	if keys != nil {
		if e.ruled == nil {
			e.ruled = map[uint64][]flat.RuleKey{}
		}
		e.ruled[cgroup] = keys
	}
	return nil
}

// newGeneration returns a number that no rules of a sandbox bear: neither those
// of its policy nor, in all likelihood, any that a process left behind when it
// died before its policy named them.
func newGeneration(old uint32) (uint32, error) {
	for {
		var b [4]byte
		if _, err := unix.Getrandom(b[:], 0); err != nil {
			return 0, &Error{Step: "choose", Object: "generation", Err: err}
		}
		if g := binary.LittleEndian.Uint32(b[:]); g != old {
			return g, nil
		}
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL: it returns after every program
// that was running has ended.
const membarrierGlobal = 1

func (e *Enforcer) putRules(cgroup uint64, generation uint32, nodes []node) ([]flat.RuleKey, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	rules, err := e.fd("rules")
	if err != nil {
		return nil, err
	}
	keys := make([]flat.RuleKey, 0, len(nodes))
	for i := range nodes {
		k := nodes[i].key(cgroup, generation)
		if err := mapUpdate(rules, &k, &nodes[i].Node, unix.BPF_ANY); err != nil {
			e.dropKeys(keys)
			return nil, &Error{Step: "write map", Object: "rules", Err: err, Hint: hint(err)}
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (e *Enforcer) dropKeys(keys []flat.RuleKey) error {
	if len(keys) == 0 {
		return nil
	}
	rules, err := e.fd("rules")
	if err != nil {
		return err
	}
	for i := range keys {
		if err := mapDelete(rules, &keys[i]); err != nil && err != unix.ENOENT {
			return &Error{Step: "delete from map", Object: "rules", Err: err}
		}
	}
	return nil
}

// dropRules deletes a sandbox's rules of one generation. What this process
// put it remembers; the rules of another process it has to look for.
func (e *Enforcer) dropRules(cgroup uint64, generation uint32) error {
	e.mu.Lock()
	keys := e.ruled[cgroup]
	e.mu.Unlock()
	if len(keys) > 0 && keys[0].Generation == generation {
		return e.dropKeys(keys)
	}
	return e.dropMatching(func(k *flat.RuleKey) bool { return k.Cgroup == cgroup && k.Generation == generation })
}

func (e *Enforcer) dropMatching(drop func(*flat.RuleKey) bool) error {
	rules, err := e.fd("rules")
	if err != nil {
		return err
	}
	keys, err := mapKeys[flat.RuleKey](rules)
	if err != nil {
		return &Error{Step: "list map", Object: "rules", Err: err}
	}
	var gone []flat.RuleKey
	for i := range keys {
		if drop(&keys[i]) {
			gone = append(gone, keys[i])
		}
	}
	return e.dropKeys(gone)
}

// Remove forgets a sandbox. Call it when its cgroup is empty: a process that
// were still there would be refused everything.
func (e *Enforcer) Remove(cgroup uint64) error {
	policies, err := e.fd("policies")
	if err != nil {
		return err
	}
	var old flat.Policy
	err = mapLookup(policies, &cgroup, &old)
	if err == nil {
		err = mapDelete(policies, &cgroup)
	}
	if err != nil && err != unix.ENOENT {
		return &Error{Step: "delete from map", Object: "policies", Err: err}
	}
	if old.Flags&uint8(flat.HasRules) != 0 {
		if err := e.dropRules(cgroup, old.Generation); err != nil {
			return err
		}
	}
	for _, name := range []string{"slots", "stats"} {
		fd, err := e.fd(name)
		if err != nil {
			return err
		}
		if err := mapDelete(fd, &cgroup); err != nil && err != unix.ENOENT {
			return &Error{Step: "delete from map", Object: name, Err: err}
		}
	}
	e.mu.Lock()
	delete(e.ruled, cgroup)
	e.mu.Unlock()
	return nil
}

// Stats are the totals of one sandbox.
type Stats struct {
	Denied    uint64 // acts that were refused
	WouldDeny uint64 // acts that audit mode let pass
	Lost      uint64 // of these, the ones that have no event
}

// Stats returns a sandbox's totals; all zero if it is unknown.
func (e *Enforcer) Stats(cgroup uint64) (Stats, error) {
	var s Stats
	fd, err := e.fd("stats")
	if err != nil {
		return s, err
	}
	cpus := make([]flat.Stats, possibleCPUs())
	if err := mapLookup(fd, &cgroup, &cpus[0]); err != nil {
		if err == unix.ENOENT {
			return s, nil
		}
		return s, &Error{Step: "read map", Object: "stats", Err: err}
	}
	for i := range cpus {
		s.Denied += cpus[i].Denied
		s.WouldDeny += cpus[i].WouldDeny
		s.Lost += cpus[i].Lost
	}
	return s, nil
}

// Sweep forgets every sandbox that live denies, and returns how many cgroups
// had something left. The addresses of namespaces that no sandbox is in any
// more go as well, and so do the programs of other builds that no cgroup runs.
func (e *Enforcer) Sweep(live func(cgroup uint64) bool) (removed int, err error) {
	dead := map[uint64]bool{}
	for _, name := range []string{"policies", "slots", "stats"} {
		fd, err := e.fd(name)
		if err != nil {
			return 0, err
		}
		keys, err := mapKeys[uint64](fd)
		if err != nil {
			return 0, &Error{Step: "list map", Object: name, Err: err}
		}
		for _, id := range keys {
			if _, seen := dead[id]; !seen {
				dead[id] = !live(id)
			}
		}
	}
	for id, gone := range dead {
		if !gone {
			continue
		}
		if err := e.Remove(id); err != nil {
			return removed, err
		}
		removed++
	}
	// Rules whose policy was never written, or was already removed.
	err = e.dropMatching(func(k *flat.RuleKey) bool {
		_, seen := dead[k.Cgroup]
		return dead[k.Cgroup] || !seen && !live(k.Cgroup)
	})
	return removed, errors.Join(err, e.withAddresses(func() error { return e.dropNamespaces(0) }), e.cleanForeign())
}

// mapKeys lists a map's keys. A key that is deleted while the list is made
// can start it over; the list is then longer, never shorter.
func mapKeys[K any](fd int) ([]K, error) {
	var keys []K
	var next K
	err := mapNext(fd, (*K)(nil), &next)
	for err == nil {
		keys = append(keys, next)
		if len(keys) > 1<<22 {
			return nil, unix.EAGAIN
		}
		key := next
		err = mapNext(fd, &key, &next)
	}
	if err == unix.ENOENT {
		return keys, nil
	}
	return nil, err
}

// specials calls f with each row of the table of special addresses, as the
// programs want it.
func specials(f func(flat.AddrKey, flat.Special) error) error {
	for _, t := range addr.Table() {
		bits, a := t.Key()
		s := flat.Special{Class: uint8(t.Class), Embeds: t.Embeds}
		if bits == 96 && t.Prefix.Addr().Is4In6() {
			// The programs' addresses are of this form already.
			s.Embeds = -1
		}
		if err := f(flat.AddrKey{Prefixlen: uint32(bits), Addr: a}, s); err != nil {
			return err
		}
	}
	return nil
}

// tableHash tells tables apart (FNV-1a).
func tableHash() uint64 {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	specials(func(k flat.AddrKey, s flat.Special) error {
		add(byte(k.Prefixlen))
		for _, b := range k.Addr {
			add(b)
		}
		add(s.Class)
		add(byte(s.Embeds))
		return nil
	})
	return h
}

func (e *Enforcer) fillSpecial() error {
	fd, err := e.fd("special")
	if err != nil {
		return err
	}
	want := map[flat.AddrKey]bool{}
	err = specials(func(k flat.AddrKey, s flat.Special) error {
		want[k] = true
		return mapUpdate(fd, &k, &s, unix.BPF_ANY)
	})
	if err != nil {
		return &Error{Step: "write map", Object: "special", Err: err, Hint: hint(err)}
	}
	keys, err := mapKeys[flat.AddrKey](fd)
	if err != nil {
		return &Error{Step: "list map", Object: "special", Err: err}
	}
	for _, k := range keys {
		if !want[k] {
			if err := mapDelete(fd, &k); err != nil && err != unix.ENOENT {
				return &Error{Step: "delete from map", Object: "special", Err: err}
			}
		}
	}
	return nil
}
