// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/tholehq/thole/common/platform"
)

const doctorUsage = `Usage: thole doctor [-o json]

Reports, for each capability, whether this host enforces it for this user. Every
"enforced" was tried now: a forbidden act was refused and a permitted one allowed,
in confined processes that doctor starts; nothing is sent to the network. What
killed runs left behind is taken away first.

  -o json    print the report as one JSON object

Exit status: 0 where everything is enforced that a sandbox always needs (marked *),
1 where something of it is not, 70 where the host could not be probed.
`

// always are the capabilities that every policy needs, whatever it grants.
var always = [...]platform.Capability{platform.FS, platform.IPC, platform.NetNone, platform.NetLoopback, platform.NetLinkLocal,
	platform.NetListen, platform.ExecWritable, platform.Children, platform.Signals, platform.VerifyKernel}

func needed(c platform.Capability) bool {
	for _, a := range always {
		if a == c {
			return true
		}
	}
	return false
}

func doctorFlags(args []string) (asJSON bool, code int, done bool) {
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "-h" || a == "-help" || a == "--help":
			fmt.Fprint(os.Stdout, doctorUsage)
			return false, 0, true
		case (a == "-o" || a == "--o") && len(args) > 1 && args[1] == "json":
			asJSON, args = true, args[2:]
		case a == "-o=json" || a == "--o=json":
			asJSON, args = true, args[1:]
		case a == "-o" || a == "--o" || strings.HasPrefix(a, "-o="):
			return false, fail(exitUsage, "doctor: no such format", "the format is json: thole doctor -o json"), true
		case a == "--json" || a == "-json":
			return false, fail(exitUsage, "doctor: no flag "+a, "thole doctor -o json"), true
		default:
			return false, fail(exitUsage, fmt.Sprintf("doctor: %q is neither a flag nor an argument of it", a), "thole doctor [-o json]"), true
		}
	}
	return asJSON, 0, false
}

// doctorExit is 0 where all of always is enforced.
func doctorExit(r *platform.Report) int {
	if len(lacking(r)) > 0 {
		return 1
	}
	return 0
}

// lacking returns what every policy needs and this host does not enforce.
func lacking(r *platform.Report) []string {
	var l []string
	for _, c := range always {
		status := platform.Unavailable
		for _, f := range r.Findings {
			if f.Capability == c {
				status = f.Status
			}
		}
		if status != platform.Enforced {
			l = append(l, string(c))
		}
	}
	return l
}

// reportWidth bounds the lines of the text, as far as words can be broken.
const reportWidth = 100

// reportText prints the report for a person.
func reportText(r *platform.Report, facts [][2]string) string {
	var b strings.Builder
	head := append([][2]string{{"kernel", r.OS + " " + r.Kernel + " " + r.Arch}, {"user", r.User}}, facts...)
	for _, f := range head {
		label := fmt.Sprintf("%-12s", f[0])
		b.WriteString(wrap(label, strings.Repeat(" ", len(label)), f[1]))
	}
	b.WriteByte('\n')
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Capability))
	}
	indent := strings.Repeat(" ", 4)
	counts := map[platform.Status]int{}
	for _, f := range r.Findings {
		counts[f.Status]++
		mark := " "
		if needed(f.Capability) {
			mark = "*"
		}
		by := ""
		if f.By != "" {
			by = "by " + f.By
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%s %-*s  %-11s  %s", mark, width, f.Capability, f.Status, by), " "))
		b.WriteString(wrap(indent, indent, f.Reason))
		if f.Remedy != "" && f.Status != platform.Enforced {
			b.WriteString(wrap(indent+"remedy: ", indent+"        ", f.Remedy))
		}
	}
	fmt.Fprintf(&b, "\n%d enforced, %d cooperative, %d unavailable. ", counts[platform.Enforced], counts[platform.Cooperative], counts[platform.Unavailable])
	if l := lacking(r); len(l) > 0 {
		b.WriteString("Not enforced of what every sandbox needs (*):\n" + wrap(indent, indent, strings.Join(l, ", ")))
	} else {
		b.WriteString("What every sandbox needs (*) is enforced.\n")
	}
	return b.String()
}

// wrap breaks text at spaces.
func wrap(first, rest, text string) string {
	var b strings.Builder
	b.WriteString(first)
	at := utf8.RuneCountInString(first)
	for i, w := range strings.Fields(text) {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
		case at+1+n > reportWidth:
			b.WriteString("\n" + rest)
			at = utf8.RuneCountInString(rest)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	b.WriteByte('\n')
	return b.String()
}

// reportJSON writes platform.Report as its tags say.
func reportJSON(r *platform.Report) string {
	var b strings.Builder
	field := func(sep, key, value string) {
		b.WriteString(sep + `"` + key + `":`)
		writeJSONString(&b, value)
	}
	field("{", "os", r.OS)
	field(",", "arch", r.Arch)
	field(",", "kernel", r.Kernel)
	field(",", "user", r.User)
	b.WriteString(`,"findings":[`)
	for i, f := range r.Findings {
		if i > 0 {
			b.WriteByte(',')
		}
		field("{", "capability", string(f.Capability))
		field(",", "status", string(f.Status))
		if f.By != "" {
			field(",", "by", f.By)
		}
		field(",", "reason", f.Reason)
		if f.Remedy != "" {
			field(",", "remedy", f.Remedy)
		}
		b.WriteByte('}')
	}
	b.WriteString("]}")
	return b.String()
}

// writeJSONString writes a string of RFC 8259.
func writeJSONString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
