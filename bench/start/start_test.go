// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{5}, 5}, {[]float64{4, 2}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{8, 2, 4, 6}, 5},
	} {
		m := median(c.x)
		if m.mid != c.want || m.lo > m.mid || m.hi < m.mid {
			t.Errorf("median(%v) = %+v, want %v", c.x, m, c.want)
		}
	}
	if m := median(nil); !math.IsNaN(m.mid) {
		t.Errorf("median of nothing is %v", m.mid)
	}
}

// TestCoverage draws from distributions whose median and ratio are known and
// counts how often the bounds hold them.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const trials = 150
	inMedian, inRatio := 0, 0
	for range trials {
		x, y := make([]float64, 100), make([]float64, 100)
		for i := range x {
			shared := rng.ExpFloat64() // a slow round is slow for both
			x[i], y[i] = 2*(1+shared), 1+shared
		}
		want := 1 + math.Ln2
		if m := median(y); m.lo <= want && want <= m.hi {
			inMedian++
		}
		if r := ratio(x, y); r.lo <= 2.0000001 && 1.9999999 <= r.hi {
			inRatio++
		}
	}
	if inMedian < trials*90/100 || inRatio < trials*90/100 {
		t.Errorf("of %d: median %d, ratio %d", trials, inMedian, inRatio)
	}
}

func TestRunText(t *testing.T) {
	var out bytes.Buffer
	o := options{n: 3, warmup: 1, format: "text", empty: "testdata/empty", ref: "/nonexistent"}
	if err := run(o, command(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "empty ") || !strings.HasSuffix(lines[1], "1.00 [1.00, 1.00]") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestRunBenchstat(t *testing.T) {
	var out bytes.Buffer
	o := options{n: 2, format: "benchstat", empty: "testdata/empty", ref: "/nonexistent"}
	if err := run(o, command(), &out); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^BenchmarkStart/\S+-\d+ 1 \d+ ns/op$`)
	if got := len(line.FindAllString(out.String(), -1)); got != 4 {
		t.Errorf("%d result lines in\n%s", got, out.String())
	}
}

func TestRunFailures(t *testing.T) {
	o := options{n: 1, format: "text", empty: "testdata/empty", ref: "/nonexistent"}
	if err := run(o, []string{"no-such-command-here"}, &bytes.Buffer{}); err == nil {
		t.Error("a missing command is no error")
	}
	t.Setenv("THOLE_BENCH_FAIL", "1")
	if err := run(o, command(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a failing command gives %v", err)
	}
	t.Setenv("THOLE_BENCH_FAIL", "")
	o.max = 1e-6
	if err := run(o, command(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "over 0.00") {
		t.Errorf("a ratio over the limit gives %v", err)
	}
}

// command is this test binary as a program that does nothing, on every system.
func command() []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{exe, "-test.run=^TestChild$"}
}

func TestChild(t *testing.T) {
	if os.Getenv("THOLE_BENCH_FAIL") != "" {
		os.Exit(3)
	}
}
