// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// A record is one line of `go test -json` (go doc test2json).
type record struct {
	Action, Package, Test, Output string
}

// A skip is a test, or a whole package, that did not run.
type skip struct{ pkg, test, reason string }

// A report collects the records of one run.
type report struct {
	out    io.Writer
	output map[[2]string][]string // by package and test, until its result
	skips  []skip
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: make(map[[2]string][]string)}
}

// read reads records until the end and prints on the way. A line that is no
// record is printed as it is.
func (r *report) read(in io.Reader) error {
	d := json.NewDecoder(in)
	for {
		var rec record
		if err := d.Decode(&rec); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read go test -json: %w", err)
		}
		r.add(rec)
	}
}

func (r *report) add(rec record) {
	key := [2]string{rec.Package, rec.Test}
	switch rec.Action {
	case "build-output":
		fmt.Fprint(r.out, rec.Output)
	case "output":
		if rec.Test == "" && rec.Output != "PASS\n" && !strings.HasPrefix(rec.Output, "coverage:") {
			// The package's own lines: "ok …", "FAIL …", a panic, a benchmark.
			fmt.Fprint(r.out, rec.Output)
			return
		}
		r.output[key] = append(r.output[key], rec.Output)
	case "fail":
		for _, line := range r.output[key] {
			if !progress(line) {
				fmt.Fprint(r.out, line)
			}
		}
		delete(r.output, key)
		if rec.Test == "" { // a test that was running when its binary died has no result
			r.flush(rec.Package)
		}
	case "skip":
		if rec.Test != "" {
			r.skips = append(r.skips, skip{rec.Package, rec.Test, reason(r.output[key])})
		}
		delete(r.output, key)
	case "pass":
		delete(r.output, key)
	}
}

func (r *report) flush(pkg string) {
	for key, lines := range r.output {
		if key[0] == pkg {
			fmt.Fprint(r.out, strings.Join(lines, ""))
			delete(r.output, key)
		}
	}
}

// progress says whether line only tells that a test began, paused or went on.
func progress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}

var position = regexp.MustCompile(`^\s+[\w.-]+\.go:\d+: (.*)`)

// reason is the text that the test gave to Skip: the last message logged. A
// message that runs over several lines keeps them all, joined.
func reason(lines []string) string {
	var out []string
	for _, line := range lines {
		text := strings.TrimRight(line, "\n")
		switch m := position.FindStringSubmatch(text); {
		case m != nil:
			out = []string{m[1]}
		case progress(text) || strings.HasPrefix(strings.TrimSpace(text), "--- "):
		case len(out) > 0:
			out = append(out, strings.TrimSpace(text))
		}
	}
	return strings.Join(out, " ")
}

// printSkips lists what was skipped and returns how many reasons are not
// allowed. A test that gives none is never allowed. It marks them when strict.
func (r *report) printSkips(allowed []string, strict bool) (refused int) {
	if len(r.skips) == 0 {
		fmt.Fprintln(r.out, "\nno test was skipped")
		return 0
	}
	fmt.Fprintf(r.out, "\n%d skipped:\n", len(r.skips))
	slices.SortFunc(r.skips, func(a, b skip) int {
		return strings.Compare(a.pkg+"\x00"+a.test, b.pkg+"\x00"+b.test)
	})
	for _, s := range r.skips {
		mark, text := "", s.reason
		if text == "" {
			text = "(no reason given)"
		}
		ok := slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(s.reason, a) })
		if strict && !ok {
			mark = " NOT ALLOWED"
			refused++
		}
		fmt.Fprintf(r.out, "skip%s\t%s\t%s: %s\n", mark, s.pkg, s.test, text)
	}
	return refused
}
