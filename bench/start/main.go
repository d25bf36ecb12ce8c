// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command start measures how long a command takes from before its start to
// after its end, beside an empty Go program and a program in C that does
// nothing, and prints the ratios:
//
//	go run ./bench/start bin/thole version
//
// The three run in a new random order in every round, so that what slows the
// machine for a while slows all of them. Medians carry a 95 % confidence
// interval by order statistics, ratios one by bootstrap.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

// A program is one line of the result.
type program struct {
	name  string
	argv  []string
	times []float64 // nanoseconds
}

type options struct {
	n      int
	warmup int
	format string
	max    float64
	empty  string
	ref    string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 300, "`rounds` to measure")
	flag.IntVar(&o.warmup, "warmup", 20, "`rounds` to run before")
	flag.StringVar(&o.format, "format", "text", "output `format`: text or benchstat")
	flag.Float64Var(&o.max, "max", 0, "fail when the command is surely slower than this `ratio` to the empty program (0: never)")
	flag.StringVar(&o.empty, "empty", "bench/start/testdata/empty", "`directory` of the empty program")
	flag.StringVar(&o.ref, "ref", "/bin/true", "reference `program`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: start [flags] command [argument...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || o.n < 1 || (o.format != "text" && o.format != "benchstat") {
		flag.Usage()
		os.Exit(64)
	}
	if err := run(o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run(o options, argv []string, out io.Writer) error {
	argv0, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("find command: %w", err)
	}
	dir, err := os.MkdirTemp("", "thole-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	empty, err := build(o.empty, dir)
	if err != nil {
		return err
	}
	programs := []*program{
		{name: "empty", argv: []string{empty}},
		{name: filepath.Base(argv[0]), argv: append([]string{argv0}, argv[1:]...)},
	}
	if _, err := os.Stat(o.ref); err == nil {
		programs = append(programs, &program{name: "true", argv: []string{o.ref}})
	}
	// An interrupt ends the rounds, and the temporary directory goes too.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	if err := measure(programs, o.warmup, o.n, stop); err != nil {
		return err
	}
	if o.format == "benchstat" {
		return printBenchstat(out, programs)
	}
	if err := printText(out, programs); err != nil {
		return err
	}
	if r := ratio(programs[1].times, programs[0].times); o.max > 0 && r.lo > o.max {
		return fmt.Errorf("%s takes at least %.2f times the empty program, over %.2f", programs[1].name, r.lo, o.max)
	}
	return nil
}

// build compiles the empty program as `make build` compiles ours.
func build(source, dir string) (string, error) {
	bin := filepath.Join(dir, "empty")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", source, err, text)
	}
	return bin, nil
}

var errInterrupted = errors.New("interrupted")

// measure runs every program once per round, in random order.
func measure(programs []*program, warmup, n int, stop <-chan os.Signal) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &os.ProcAttr{Files: []*os.File{null, null, null}}
	order := rand.Perm(len(programs))
	for round := -warmup; round < n; round++ {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			select {
			case <-stop:
				return errInterrupted
			default:
			}
			p := programs[i]
			d, err := once(p.argv, attr)
			if err != nil {
				return fmt.Errorf("run %s: %w", p.name, err)
			}
			if round >= 0 {
				p.times = append(p.times, float64(d.Nanoseconds()))
			}
		}
	}
	return nil
}

func once(argv []string, attr *os.ProcAttr) (time.Duration, error) {
	begin := time.Now()
	p, err := os.StartProcess(argv[0], argv, attr)
	if err != nil {
		return 0, err
	}
	state, err := p.Wait()
	d := time.Since(begin)
	if err != nil {
		return 0, err
	}
	if !state.Success() {
		return 0, errors.New(state.String())
	}
	return d, nil
}

func printText(w io.Writer, programs []*program) error {
	if _, err := fmt.Fprintf(w, "%-12s %10s %22s %22s\n", "program", "median", "95 % interval", "ratio to empty"); err != nil {
		return err
	}
	for _, p := range programs {
		m := median(p.times)
		r := ratio(p.times, programs[0].times)
		if _, err := fmt.Fprintf(w, "%-12s %7.3f ms %22s %22s\n", p.name, m.mid/1e6,
			fmt.Sprintf("[%.3f, %.3f] ms", m.lo/1e6, m.hi/1e6),
			fmt.Sprintf("%.2f [%.2f, %.2f]", r.mid, r.lo, r.hi)); err != nil {
			return err
		}
	}
	return nil
}

// printBenchstat writes the Go benchmark format, one line per run, for
// golang.org/x/perf/cmd/benchstat.
func printBenchstat(w io.Writer, programs []*program) error {
	if _, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/tholehq/thole/bench/start\n", runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	for _, p := range programs {
		for _, t := range p.times {
			if _, err := fmt.Fprintf(w, "BenchmarkStart/%s-%d 1 %.0f ns/op\n", p.name, runtime.GOMAXPROCS(0), t); err != nil {
				return err
			}
		}
	}
	return nil
}
