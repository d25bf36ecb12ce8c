// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/common/sandbox"
)

// splitCommand separates flags from the command at "--".
func splitCommand(args []string) (flags, command []string, ok bool) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:], true
		}
	}
	return args, nil, false
}

// parse parses the flags before "--" and checks that a command follows.
func parse(name string, f *policyFlags, args []string) (command []string, code int, done bool) {
	flags, command, ok := splitCommand(args)
	fs := flag.NewFlagSet("thole "+name, flag.ContinueOnError)
	fs.SetOutput(os.Stderr)
	f.register(fs)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "Usage: thole %s [flags] -- command args…\n\nFlags:\n", name)
		fs.PrintDefaults()
	}
	if err := fs.Parse(flags); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, 0, true
		}
		return nil, exitUsage, true
	}
	if fs.NArg() > 0 {
		rest := append(append([]string{}, fs.Args()...), command...)
		used := flags[:len(flags)-fs.NArg()]
		words := append(append([]string{"thole", name}, used...), append([]string{"--"}, rest...)...)
		return nil, fail(exitUsage, fmt.Sprintf("%q stands before --", fs.Arg(0)), "the command comes after --: "+shellQuote(words)), true
	}
	if !ok || len(command) == 0 {
		return nil, fail(exitUsage, "no command", "thole "+name+" [flags] -- command args…"), true
	}
	if f.output != "" && f.output != "json" {
		return nil, fail(exitUsage, fmt.Sprintf("-o %s: no such format", f.output), "the format is json"), true
	}
	f.asJSON = f.output == "json"
	return command, 0, false
}

func shellQuote(words []string) string {
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`|&;<>()*?[]{}#~") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func runMain(args []string) int {
	// A launch allocates little: a collection in the middle of it would only
	// stop it. A long run stays small all the same.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	var f policyFlags
	command, code, done := parse("run", &f, args)
	if done {
		return code
	}
	pol, err := f.policy()
	if err != nil {
		fail(0, err.Error(), hintOf(err))
		return exitUsage
	}
	accept, err := f.accepted()
	if err != nil {
		fail(0, err.Error(), hintOf(err))
		return exitUsage
	}
	pf, err := sandbox.Native()
	if err != nil {
		return failErr(err)
	}
	defer pf.Close()
	r := &runner{flags: &f, platform: pf, policy: pol, accept: accept}
	return r.run(command)
}

// runner is one `thole run`.
type runner struct {
	flags    *policyFlags
	platform platform.Platform
	policy   *policy.Policy
	accept   []platform.Capability
	gaps     []platform.Gap
	summary  event.Summary
	enc      *event.Encoder
	last     event.Event // whose sandbox fields the ended record carries
}

func (r *runner) run(command []string) int {
	if r.flags.asJSON {
		r.enc = event.NewEncoder(os.Stderr)
	}
	home, tmp, remove, err := r.privateDirs()
	if err != nil {
		return failErr(&platform.Error{Kind: platform.ErrConfine, Err: err})
	}
	defer remove()
	path := searchPath(os.Getenv("PATH"), func(d string) bool { return r.platform.Executable(d, r.policy) })
	program, err := r.find(command[0], path)
	if err != nil {
		return failErr(err)
	}
	spec := platform.Spec{
		Policy: r.policy, Path: program, Argv: command,
		Env: environ(os.Environ(), r.flags.keepEnv, r.flags.env, path, home, tmp),
		Dir: r.workdir(home), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Timeout: r.flags.timeout, Accept: r.accept, Strict: r.flags.strict, OwnsChildren: true,
		OnGap: func(g platform.Gap) { r.gaps = append(r.gaps, g) },
	}
	plan, err := r.platform.Plan(spec)
	if err != nil {
		return failErr(err)
	}
	defer plan.Close()
	if r.flags.verbose {
		fmt.Fprint(os.Stderr, plan.String())
	}
	// Catching signals takes the runtime a while: beside the launch. One that
	// comes before ends this process, and the child at its gate with it.
	forwarders := make(chan *forwarder, 1)
	go func() { forwarders <- newForwarder() }()
	proc, err := plan.Start(context.Background())
	fw := <-forwarders
	if err != nil {
		fw.stop()
		return failErr(err)
	}
	fw.to(proc)
	r.reportGaps()
	swept := make(chan struct{})
	go func() {
		// While the program runs: what a killed start left is nobody's.
		if s, ok := r.platform.(platform.Sweeper); ok {
			_, _ = s.Sweep()
		}
		close(swept)
	}()
	for e := range proc.Events() {
		r.event(&e)
	}
	result, err := proc.Wait()
	fw.stop()
	<-swept
	r.report(result)
	if err != nil {
		fail(0, "take the sandbox away: "+err.Error(), "the next thole run, or thole doctor, tries again")
	}
	if result.TimedOut {
		return 124
	}
	return result.Code
}

// privateDirs returns HOME and TMPDIR of the program. In a private view they
// are empty and vanish with it; without one they are made, and removed.
func (r *runner) privateDirs() (home, tmp string, remove func(), err error) {
	if tmp, home := r.platform.Private(); tmp != "" {
		return home, tmp, func() {}, nil
	}
	t, err := newTempDir()
	if err != nil {
		return "", "", nil, err
	}
	r.policy.FS.RW = append(r.policy.FS.RW, policy.Path{Path: t.path, Pos: policy.Pos{Flag: "the private temporary directory"}})
	return t.path, t.path, t.remove, nil
}

// find resolves the program as the shell would, first where it will be able to
// execute, then where the caller could, so that the error can say what to
// grant.
func (r *runner) find(name, path string) (string, error) {
	p, err := lookPath(name, path)
	if err == nil {
		return p, nil
	}
	outside, err2 := lookPath(name, os.Getenv("PATH"))
	if err2 != nil {
		return "", &platform.Error{Kind: platform.ErrStart, Err: fmt.Errorf("find %s: no such program in PATH", name)}
	}
	real := outside
	if c, err := filepath.EvalSymlinks(outside); err == nil {
		real = c
	}
	return "", &platform.Error{Kind: platform.ErrStart, Err: fmt.Errorf("%s is %s, outside of what the policy lets it execute", name, outside),
		Remedy: "grant its installation: --ro " + installation(real)}
}

// installation is the directory that holds bin/ or the program.
func installation(p string) string {
	d := filepath.Dir(p)
	if b := filepath.Base(d); b == "bin" || b == "shims" || b == "sbin" {
		return filepath.Dir(d)
	}
	return d
}

func (r *runner) workdir(home string) string {
	dir := r.flags.workdir
	if dir == "" {
		here, err := os.Getwd()
		if err != nil || !granted(here, r.policy) {
			return home
		}
		return here
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return abs
}

// granted reports whether a directory lies in a granted path.
func granted(dir string, p *policy.Policy) bool {
	if c, err := filepath.EvalSymlinks(dir); err == nil {
		dir = c
	}
	for _, l := range [][]policy.Path{p.FS.RO, p.FS.RW, p.FS.RD} {
		for _, g := range l {
			root := g.Path
			if c, err := filepath.EvalSymlinks(root); err == nil {
				root = c
			}
			if dir == root || strings.HasPrefix(dir, root+"/") {
				return true
			}
		}
	}
	return false
}
