// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of thole: one file per subcommand.
package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// command is one subcommand.
type command struct {
	name    string
	args    string
	summary string
	run     func(args []string) int
	hidden  bool
}

// commands returns the table, in the order of the help text.
func commands() []command {
	return []command{
		{name: "run", args: "[flags] -- command args…", summary: "run a command confined, and list what it was refused", run: runMain},
		{name: "policy", args: "check|show FILE", summary: "check a policy file, or show what it compiles to here", run: policyMain},
		{name: "doctor", args: "[-o json]", summary: "report what this host enforces, by trying it", run: doctorMain},
		{name: "sandbox-exec", args: "POLICY.json -- /path/to/program args…", summary: "confine this process and become the program", run: sandboxExecMain},
		{name: "version", summary: "print the version", run: versionMain},
		{name: "probe-acts", run: probeActsMain, hidden: true},
	}
}

// agentName is a name under which the binary is the launcher alone: programs
// that know the launcher by this name start it as `oarbank-agent sandbox-exec`.
const agentName = "oarbank-agent"

// Main runs the command line and returns the exit status.
func Main(argv []string) int {
	if len(argv) == 0 {
		return usage(os.Stderr)
	}
	if len(argv) < 2 {
		return usage(os.Stderr)
	}
	name := argv[1]
	if filepath.Base(argv[0]) == agentName && name != "sandbox-exec" && name != "version" {
		return fail(exitUsage, fmt.Sprintf("%s knows sandbox-exec and version, not %q", agentName, name), "call the binary by the name thole for the rest")
	}
	switch name {
	case "help", "-h", "-help", "--help":
		usage(os.Stdout)
		return 0
	case "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(argv[2:])
		}
	}
	hint := "thole help lists the commands"
	if strings.HasPrefix(name, "-") || looksLikeProgram(name) {
		hint = "did you mean: thole run -- " + strings.Join(argv[1:], " ")
	}
	return fail(exitUsage, fmt.Sprintf("no command %q", name), hint)
}

func looksLikeProgram(name string) bool {
	if strings.Contains(name, "/") {
		return true
	}
	_, err := lookPath(name, os.Getenv("PATH"))
	return err == nil
}

func usage(w *os.File) int {
	var b strings.Builder
	b.WriteString("thole runs programs in a sandbox that the kernel enforces.\n\nUsage:\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(&b, "  thole %-13s %s\n                      %s\n", c.name, c.args, c.summary)
		}
	}
	b.WriteString("\nthole COMMAND -h describes a command's flags. A first run:\n  thole run --rw . -- sh -c 'echo hello > here; cat /etc/shadow'\n")
	fmt.Fprint(w, b.String())
	return exitUsage
}
