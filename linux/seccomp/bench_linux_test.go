// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkCompile is what a one-shot start pays before the kernel is asked.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(Rules(Options{Arch: AMD64, Inet: true})); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRules is the part of BenchmarkCompile that lists the rules.
func BenchmarkRules(b *testing.B) {
	for b.Loop() {
		Rules(Options{Arch: AMD64, Inet: true})
	}
}

// BenchmarkInstall measures seccomp(2) alone, each on a thread of its own that
// ends with its filter; insns and steps (of a read call) describe the filter.
func BenchmarkInstall(b *testing.B) {
	arch, ok := Native()
	if !ok {
		b.Skip("no filter for " + runtime.GOARCH)
	}
	for _, name := range []string{"hybrid", "halves", "chain"} {
		for _, o := range []struct {
			name string
			o    Options
		}{
			{"least", Options{Arch: arch, Unix: true, Inet: true}},
			{"most", Options{Arch: arch, Inet: true, InetStreamOnly: true, NoSysV: true, NoSetID: true, NoExecMemfd: true}},
		} {
			code, err := compile(Rules(o.o), dispatchers[name])
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name+"/"+o.name, func(b *testing.B) { benchInstall(b, code) })
		}
	}
	b.Run("empty", func(b *testing.B) { benchInstall(b, []Filter{{Code: retK, K: uint32(Allow)}}) })
}

func benchInstall(b *testing.B, code []Filter) {
	read, _ := AMD64.Number("read")
	_, steps := interpret(code, data{nr: read, arch: AMD64.Audit()})
	var sum time.Duration
	n := 0
	for b.Loop() {
		took := make(chan time.Duration)
		fail := make(chan error, 1)
		go func() {
			// Never unlocked: the thread dies with its filter.
			runtime.LockOSThread()
			start := time.Now()
			err := install(code, 0)
			took <- time.Since(start)
			fail <- err
		}()
		sum += <-took
		if err := <-fail; err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(sum.Nanoseconds())/float64(n), "install-ns")
	b.ReportMetric(float64(len(code)), "insns")
	b.ReportMetric(float64(steps), "steps")
}
