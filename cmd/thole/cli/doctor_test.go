// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tholehq/thole/common/platform"
)

// allEnforced is a report in which nothing is missing.
func allEnforced() *platform.Report {
	r := &platform.Report{OS: "linux", Arch: "amd64", Kernel: "6.12.0", User: "root (uid 0)"}
	for _, c := range platform.Capabilities() {
		r.Findings = append(r.Findings, platform.Finding{Capability: c, Status: platform.Enforced, By: "a layer", Reason: "refused this; allowed that"})
	}
	return r
}

func TestDoctorExit(t *testing.T) {
	if code := doctorExit(allEnforced()); code != 0 {
		t.Errorf("all enforced: %d", code)
	}
	if code := doctorExit(&platform.Report{}); code != 1 {
		t.Errorf("an empty report: %d", code)
	}
	for i, c := range platform.Capabilities() {
		for _, status := range []platform.Status{platform.Unavailable, platform.Cooperative} {
			r := allEnforced()
			r.Findings[i].Status = status
			want := 0
			if needed(c) {
				want = 1
			}
			if code := doctorExit(r); code != want {
				t.Errorf("%s %s: exit %d, want %d", c, status, code, want)
			}
		}
	}
}

func TestDoctorFlags(t *testing.T) {
	tests := []struct {
		args   []string
		asJSON bool
		code   int
		done   bool
	}{
		{nil, false, 0, false},
		{[]string{"-o", "json"}, true, 0, false},
		{[]string{"-o=json"}, true, 0, false},
		{[]string{"-h"}, false, 0, true},
		{[]string{"-o", "yaml"}, false, exitUsage, true},
		{[]string{"-o"}, false, exitUsage, true},
		{[]string{"--json"}, false, exitUsage, true},
		{[]string{"fs"}, false, exitUsage, true},
		{[]string{"-v"}, false, exitUsage, true},
	}
	for _, tt := range tests {
		asJSON, code, done := doctorFlags(tt.args)
		if asJSON != tt.asJSON || code != tt.code || done != tt.done {
			t.Errorf("%v: %v, %d, %v", tt.args, asJSON, code, done)
		}
	}
}

const doctorText = `kernel      linux 6.12.0 amd64
user        root (uid 0)
landlock    ABI 6
leftovers   none

* fs        enforced     by landlock
    refused reading; allowed writing
  identity  unavailable
    the job runs as the caller: without root there is no other uid to give it, and so it goes on
    over the end of the line
    remedy: run as root

1 enforced, 0 cooperative, 1 unavailable. Not enforced of what every sandbox needs (*):
    ipc, net.none, net.no-loopback, net.no-link-local, net.no-listen, exec_writable.deny, children,
    signals, verify.kernel
`

func TestReportText(t *testing.T) {
	r := &platform.Report{OS: "linux", Arch: "amd64", Kernel: "6.12.0", User: "root (uid 0)", Findings: []platform.Finding{
		{Capability: platform.FS, Status: platform.Enforced, By: "landlock", Reason: "refused reading; allowed writing", Remedy: "not shown"},
		{Capability: platform.Identity, Status: platform.Unavailable, Remedy: "run as root",
			Reason: "the job runs as the caller: without root there is no other uid to give it, and so it goes on over the end of the line"},
	}}
	got := reportText(r, [][2]string{{"landlock", "ABI 6"}, {"leftovers", "none"}})
	if got != doctorText {
		t.Errorf("got:\n%s\nwant:\n%s", got, doctorText)
	}
	for line := range strings.Lines(got) {
		if utf8.RuneCountInString(line) > reportWidth+1 {
			t.Errorf("too wide: %q", line)
		}
	}
	if got := reportText(allEnforced(), nil); !strings.Contains(got, "25 enforced, 0 cooperative, 0 unavailable. What every sandbox needs (*) is enforced.\n") {
		t.Errorf("all enforced:\n%s", got)
	}
}

// TestReportJSON: what is written by hand is what the type's tags say.
func TestReportJSON(t *testing.T) {
	for _, r := range []*platform.Report{
		allEnforced(),
		{User: "a \"b\" \\ \n\t é \x00", Kernel: "<&>", Findings: []platform.Finding{{Capability: platform.FS, Status: platform.Unavailable, Reason: "r\r", Remedy: "m"}}},
	} {
		var back platform.Report
		d := json.NewDecoder(strings.NewReader(reportJSON(r)))
		d.DisallowUnknownFields()
		if err := d.Decode(&back); err != nil {
			t.Fatalf("%v in %s", err, reportJSON(r))
		}
		if !reflect.DeepEqual(&back, r) {
			t.Errorf("%+v became %+v", r, back)
		}
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal([]byte(reportJSON(r)), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %s, want %s", reportJSON(r), want)
		}
	}
}
