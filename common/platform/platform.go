// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package platform is the one interface that linux, darwin and windows stand
// behind: what a host can enforce, what a policy compiles to, and how a plan
// is started.
package platform

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/policy"
)

// Platform confines processes on one operating system. Close it when the last
// of its jobs has ended; what it put in force in the kernel stays in force.
type Platform interface {
	Close()
	// Probe reports what this host enforces, each capability tried both ways:
	// a forbidden act refused, a permitted one allowed.
	Probe(ctx context.Context) (Report, error)
	// Facts describe the host for a person, a name and a text each.
	Facts() [][2]string
	// Plan resolves the policy's paths and compiles spec. It starts nothing.
	Plan(spec Spec) (Plan, error)
	// Private returns the temporary and home directories that a job finds
	// empty and that vanish with it, or "" where the host cannot make them.
	Private() (tmp, home string)
	// Executable reports whether the policy lets programs in dir be executed,
	// by names alone.
	Executable(dir string, p *policy.Policy) bool
}

// Execer is a platform on which the launcher can become the program.
type Execer interface {
	// PlanExec is Plan for a launcher that becomes the program.
	PlanExec(spec Spec) (ExecPlan, error)
}

// ExecPlan is a plan of [Execer].
type ExecPlan interface {
	fmt.Stringer
	Gaps() []Gap
	// Exec confines this very process and executes the program in its place,
	// so that it returns only with an error, an [*Error]. confined is called
	// when the confinement is verified, before the program's first
	// instruction.
	Exec(confined func() error) error
}

// Sweeper is a platform that can take away what starters that were killed
// left behind.
type Sweeper interface {
	// Sweep ends and removes sandboxes that nobody waits for and returns their
	// number. It is quick, for each start.
	Sweep() (int, error)
	// SweepAll does that and looks everywhere: rules of containers that are
	// gone, directories of probes.
	SweepAll() (sandboxes, directories int, err error)
}

// Plan is what will be done for one start, as a value that prints itself.
type Plan interface {
	fmt.Stringer
	// Gaps lists what was asked and cannot be enforced here.
	Gaps() []Gap
	// Close releases the handles on the granted paths.
	Close()
	// Start returns once the process is born in its container, confined and
	// verified; the program's first instruction comes after that. An error
	// means that the program did not run: it is an [*Error].
	Start(ctx context.Context) (Process, error)
}

// Process is one confined process and its descendants.
type Process interface {
	// PID is the first process of the confinement.
	PID() int
	// Signal sends a signal to the first process.
	Signal(os.Signal) error
	// Events delivers denials as the enforcer reports them; the channel is
	// closed when the process has ended and its last event was delivered.
	Events() <-chan event.Event
	// Wait waits for the first process, ends what remains of its tree, and
	// takes the container away.
	Wait() (Result, error)
	// Kill ends the whole tree.
	Kill() error
}

// Result is how a confined process ended.
type Result struct {
	// Code is the exit status, 128+N where signal N ended the program.
	Code int
	// Signal is the number of the signal that ended the program, or 0.
	Signal int
	// TimedOut: the time limit ended it. OOM: the memory limit did.
	TimedOut, OOM bool
	// Wall, CPU and PeakMemory (bytes; 0: unknown) are what it used.
	Wall, CPU  time.Duration
	PeakMemory uint64
	// Lost counts the denials that no event reports.
	Lost uint64
}

// Spec is one start: whom to confine and how.
type Spec struct {
	Policy *policy.Policy
	// Argv is the program and its arguments; Path the file to execute,
	// absolute.
	Path string
	Argv []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory; empty: the private home.
	Dir string
	// Stdin, Stdout and Stderr are inherited; nil means /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Timeout ends the tree; 0: none.
	Timeout time.Duration
	// Accept names the capabilities whose gaps are acceptable.
	Accept []Capability
	// Strict refuses every gap, also those of hardening.
	Strict bool
	// OwnsChildren: the caller has no other child processes, so that every
	// child that is left when the program has ended belongs to it. Needed
	// where no container can hold the tree.
	OwnsChildren bool
	// OnGap, where set, is told each gap that did not refuse the start.
	OnGap func(Gap)
}
