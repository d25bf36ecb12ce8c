// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"slices"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
)

// A probe tries each capability on this host, in confined children of this
// machine's own platform, and judges what came of it. What is tried, and how
// an answer is judged, is pure and lies here; probe_linux.go does it.

// want is what an act must come to for the capability to be enforced.
type want uint8

const (
	refused   want = iota // the kernel says no
	hidden                // likewise, or there is nothing to be found
	permitted             // done
	holds                 // a fact that the probe saw from outside
)

// try is one act and what must come of it.
type try struct {
	run  string // the child that does it
	act  act
	want want
	what string // for the report: "connecting to loopback"; empty: not told
	// optional: where the host lacks what the act needs (IPv6), nothing is
	// shown and nothing is wrong.
	optional bool
	// reported: the outcome comes with another act's.
	reported bool
	// ifStarts: a host that refuses to start the child at all needs no answer
	// from it, as long as another one gives it.
	ifStarts bool
}

// check is what decides about one capability.
type check struct {
	capability platform.Capability
	by         string
	tries      []try
	// last, where set, is done after the tries by the child of the first: an
	// act that should end it.
	last *act
	// remedy is for a layer that was set up and does not hold.
	remedy string
	// known, where set, is the answer, and nothing is tried: no part of this
	// program does it, or the host has no such thing.
	known string
}

// answer is what one child said.
type answer struct {
	// refusal says why it was not started; empty: it was.
	refusal, remedy string
	// gaps are what its plan could not hold, without refusing the start.
	gaps []platform.Gap
	// outcomes are by the act's id; broken says why there may be fewer than
	// asked.
	outcomes map[string]outcome
	broken   string
}

// verdict is how one outcome counts.
type verdict uint8

const (
	allowed verdict = iota
	denied
	absent // the act met neither a rule nor its object
)

// classify says what an outcome means. What a kernel answers after every rule
// let an act pass counts as allowed: a closed port, a missing route.
func classify(op string, o outcome) verdict {
	switch o.Errno {
	case "":
		return allowed
	case "EPERM", "EACCES", "EROFS":
		return denied
	case "EAGAIN":
		if op == opFork {
			return denied // pids.max, see cgroup-v2.rst
		}
	case "ECONNREFUSED":
		if op == opTCP || op == opUnix || op == opUnixDgram {
			return allowed
		}
	case "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL":
		if op == opTCP || op == opUDP {
			return allowed
		}
	}
	return absent
}

// judge makes the finding of a check. A capability is enforced where every
// forbidden act was refused, every permitted one was done, and there was one
// of each, or where every fact holds.
func judge(c check, answers map[string]answer) platform.Finding {
	f := platform.Finding{Capability: c.capability, Status: platform.Unavailable}
	if c.known != "" {
		f.Reason, f.Remedy = c.known, c.remedy
		return f
	}
	var no, yes, facts, skipped []string
	var tally [holds + 1]int
	fail := func(reason string) platform.Finding {
		f.Reason, f.Remedy = reason, c.remedy
		return f
	}
	for _, t := range c.tries {
		a := answers[t.run]
		if a.refusal != "" {
			if t.ifStarts {
				skipped = appendNew(skipped, grants(t.run))
				continue
			}
			f.Reason, f.Remedy = a.refusal, a.remedy
			return f
		}
		for _, g := range a.gaps {
			if g.Capability == c.capability {
				f.Reason, f.Remedy = g.Reason, g.Remedy
				return f
			}
		}
		name := t.what
		if name == "" {
			name = t.act.ID
		}
		o, ok := a.outcomes[t.act.ID]
		if !ok {
			if a.broken == "" {
				return fail(name + " could not be tried: the probe gave no answer")
			}
			return fail(name + " could not be tried: " + a.broken)
		}
		list := &no
		switch v := classify(t.act.Op, o); t.want {
		case refused, hidden:
			switch {
			case v == denied, t.want == hidden && (o.Errno == "ENOENT" || o.Errno == "ESRCH"):
			case v == absent && t.optional:
				continue
			case v == absent:
				return fail(name + " could not be tried: " + o.Errno + textOf(o))
			default:
				return fail(name + " was allowed" + textOf(o))
			}
		case permitted:
			list = &yes
			if v == absent && t.optional {
				continue
			}
			if v != allowed {
				return fail(name + " must work and does not: " + o.Errno + textOf(o))
			}
		case holds:
			list = &facts
			if v != allowed {
				return fail("not so: " + name + textOf(o))
			}
		}
		tally[t.want]++
		if t.what != "" {
			*list = appendNew(*list, t.what)
		}
	}
	var parts []string
	for _, l := range []struct {
		verb  string
		items []string
	}{{"refused ", no}, {"allowed ", yes}, {"seen: ", facts}} {
		if len(l.items) > 0 {
			parts = append(parts, l.verb+strings.Join(l.items, ", "))
		}
	}
	if len(skipped) > 0 {
		parts = append(parts, "no sandbox with "+strings.Join(skipped, " or ")+" starts here")
	}
	f.Reason = strings.Join(parts, "; ")
	if tally[holds] == 0 && (tally[refused]+tally[hidden] == 0 || tally[permitted] == 0) {
		return fail("not tried both ways: " + f.Reason)
	}
	f.Status, f.By = platform.Enforced, c.by
	return f
}

func textOf(o outcome) string {
	if o.Text == "" {
		return ""
	}
	return " (" + o.Text + ")"
}

// appendNew appends s unless it is there: the same act in three modes is told
// once.
func appendNew(l []string, s string) []string {
	if slices.Contains(l, s) {
		return l
	}
	return append(l, s)
}

// grants names what the policy of a child grants, as policies spell it.
func grants(run string) string {
	switch run {
	case runAllowlist:
		return policy.Allowlist.String()
	case runAny:
		return policy.Any.String()
	case runBroker:
		return "a broker"
	}
	return run
}
