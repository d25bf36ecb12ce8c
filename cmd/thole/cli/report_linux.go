// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tholehq/thole/common/addr"
	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/platform"
)

// reportGaps says in one line which layers this caller cannot have.
func (r *runner) reportGaps() {
	if len(r.gaps) == 0 || r.flags.quiet || r.flags.asJSON {
		return
	}
	var names []string
	remedies := map[string]bool{}
	var fixes []string
	for _, g := range r.gaps {
		if !slices.Contains(names, string(g.Capability)) {
			names = append(names, string(g.Capability))
		}
		if g.Remedy != "" && !remedies[g.Remedy] {
			remedies[g.Remedy] = true
			fixes = append(fixes, g.Remedy)
		}
		if r.flags.verbose {
			fmt.Fprintf(os.Stderr, "thole: missing %s: %s\n", g.Capability, g.Reason)
		}
	}
	fmt.Fprintf(os.Stderr, "thole: without these layers: %s (%s)\n", strings.Join(names, ", "), strings.Join(fixes, "; "))
}

// event takes one denial as it happens.
func (r *runner) event(e *event.Event) {
	if r.enc != nil {
		_ = r.enc.Encode(e)
	} else if r.flags.verbose && !r.flags.quiet {
		fmt.Fprintf(os.Stderr, "thole: %s %s %s (%s, %s)\n", e.Type, e.Capability, event.Printable(e.Target), e.Enforcer, event.Printable(e.Rule))
	}
	r.last = event.Event{Seq: e.Seq, Sandbox: e.Sandbox, Module: e.Module, Cgroup: e.Cgroup, CgroupID: e.CgroupID}
	r.summary.Add(e)
}

// shown bounds the listing; the rest is counted.
const shown = 20

// report prints, after the program, what it was refused and what would allow
// it.
func (r *runner) report(res platform.Result) {
	r.summary.AddLost(res.Lost)
	if r.flags.quiet || r.enc != nil {
		if r.enc != nil {
			r.ended(res)
		}
		return
	}
	var b strings.Builder
	if res.TimedOut {
		fmt.Fprintf(&b, "thole: ended after --timeout %v\n", r.flags.timeout)
	}
	if res.OOM {
		b.WriteString("thole: ended by its memory limit (oom)\nhint: a higher --mem-gb\n")
	}
	for _, t := range []event.Type{event.Denied, event.WouldDeny} {
		n := r.summary.Count(t)
		if t == event.Denied {
			n += r.summary.Lost()
		}
		if n == 0 {
			continue
		}
		verb := "were refused"
		if t == event.WouldDeny {
			verb = "would have been refused"
		}
		if n == 1 {
			verb = strings.Replace(verb, "were", "was", 1)
		}
		fmt.Fprintf(&b, "thole: %s %s:\n", plural(n, "act"), verb)
		printed := 0
		for _, g := range r.summary.Groups() {
			if g.Type != t {
				continue
			}
			if printed == shown {
				b.WriteString("  … and more; -o json writes each\n")
				break
			}
			printed++
			target := g.Target
			if target == "" {
				target = "(many more targets)"
			}
			fmt.Fprintf(&b, "  %5d×  %-12s  %-32s  %s [%s]\n", g.Count, g.Capability, event.Printable(target), event.Printable(g.Rule), event.CgroupBPF)
			if fix := remedyFor(g); fix != "" {
				fmt.Fprintf(&b, "          allow: %s\n", fix)
			}
		}
		if lost := r.summary.Lost(); t == event.Denied && lost > 0 {
			fmt.Fprintf(&b, "  %5d×  came too fast to be recorded one by one\n", lost)
		}
	}
	fmt.Fprint(os.Stderr, b.String())
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// remedyFor names the flag that would have allowed the act, or says that none
// does.
func remedyFor(g event.Group) string {
	switch g.Capability {
	case event.NetConnect, event.NetSendmsg, event.NetDNS:
		ap, proto, ok := event.ParseTarget(g.Target)
		if !ok {
			return ""
		}
		a := ap.Addr()
		if a.IsUnspecified() {
			// It means this host, which a rule must name as it is judged.
			return "name the address that is meant, such as --allow-cidr 127.0.0.1:" + fmt.Sprint(ap.Port())
		}
		spec := a.String()
		if a.Is6() && !a.Is4In6() {
			spec = "[" + spec + "]"
		}
		fix := fmt.Sprintf("--allow-cidr %s:%d", spec, ap.Port())
		switch p := event.ProtocolName(proto); p {
		case "tcp", "udp":
			fix += "/" + p
		}
		if addr.IsPublic(a) && strings.Contains(g.Rule, "no network") {
			fix += ", or --net egress-any"
		}
		return fix
	case event.UnixConnect:
		if strings.HasSuffix(g.Target, "/run/nscd/socket") {
			return "nothing needed: the C library only asks for a cache, and goes on without"
		}
		if strings.HasPrefix(g.Target, "/") {
			if event.Printable(g.Target) != g.Target {
				return "nothing that could be written here: look at the name first"
			}
			return "--broker " + shellQuote([]string{g.Target}) + " (one socket; abstract and relative names never)"
		}
		return "nothing: only one absolute path can be opened, by --broker"
	case event.NetBind, event.NetListen:
		return "nothing: a confined process never listens"
	case event.NetSocket, event.NetRaw:
		return "nothing: TCP and UDP are the only sockets"
	}
	return ""
}

// ended writes the last record of -o json.
func (r *runner) ended(res platform.Result) {
	totals := &event.Totals{Lost: r.summary.Lost(), Exit: uint32(res.Code), OOM: res.OOM, Wall: res.Wall, CPU: res.CPU, Peak: res.PeakMemory}
	for _, g := range r.summary.Groups() {
		m := &totals.Denied
		if g.Type == event.WouldDeny {
			m = &totals.WouldDeny
		}
		if *m == nil {
			*m = map[event.Capability]uint64{}
		}
		(*m)[g.Capability] += g.Count
	}
	r.last.Type, r.last.Time, r.last.Seq, r.last.Totals = event.Ended, time.Now(), r.last.Seq+1, totals
	_ = r.enc.Encode(&r.last)
}
