// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"strings"

	"github.com/tholehq/thole/common/platform"
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
	what string // for the report: "connecting to loopback"
	// optional: where the host lacks what the act needs (IPv6), nothing is
	// shown and nothing is wrong.
	optional bool
	// ifStarts: a host that refuses to start the child at all needs no answer
	// from it, as long as another one gives it.
	ifStarts bool
}

// check is what decides about one capability.
type check struct {
	capability platform.Capability
	by         string
	tries      []try
	// note is added to the reason of what is enforced.
	note string
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
	var no, yes, facts []string
	note := c.note
	for _, t := range c.tries {
		a := answers[t.run]
		if a.refusal != "" {
			if t.ifStarts {
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
		o, ok := a.outcomes[t.act.ID]
		if !ok {
			why := a.broken
			if why == "" {
				why = "the probe gave no answer"
			}
			f.Reason, f.Remedy = t.what+" could not be tried: "+why, c.remedy
			return f
		}
		v := classify(t.act.Op, o)
		switch t.want {
		case refused, hidden:
			switch {
			case v == denied, t.want == hidden && (o.Errno == "ENOENT" || o.Errno == "ESRCH"):
				no = appendNew(no, t.what)
			case v == absent && t.optional:
			case v == absent:
				f.Reason, f.Remedy = t.what+" could not be tried: "+o.Errno+textOf(o), c.remedy
				return f
			default:
				f.Reason, f.Remedy = t.what+" was allowed"+textOf(o), c.remedy
				return f
			}
		case permitted:
			switch {
			case v == allowed:
				yes = appendNew(yes, t.what)
			case v == absent && t.optional:
			default:
				f.Reason, f.Remedy = t.what+" must work and does not: "+o.Errno+textOf(o), c.remedy
				return f
			}
		case holds:
			if v != allowed {
				f.Reason, f.Remedy = t.what+" does not hold"+textOf(o), c.remedy
				return f
			}
			facts = appendNew(facts, t.what)
		}
	}
	var parts []string
	if len(no) > 0 {
		parts = append(parts, "refused "+strings.Join(no, ", "))
	}
	if len(yes) > 0 {
		parts = append(parts, "allowed "+strings.Join(yes, ", "))
	}
	if len(facts) > 0 {
		parts = append(parts, "seen: "+strings.Join(facts, ", "))
	}
	if len(facts) == 0 && (len(no) == 0 || len(yes) == 0) {
		f.Reason, f.Remedy = "not tried both ways here", c.remedy
		if len(parts) > 0 {
			f.Reason += ": only " + strings.Join(parts, "; ")
		}
		return f
	}
	f.Status, f.By = platform.Enforced, c.by
	if note != "" {
		parts = append(parts, note)
	}
	f.Reason = strings.Join(parts, "; ")
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
	if contains(l, s) {
		return l
	}
	return append(l, s)
}
