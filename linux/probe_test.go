// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		op, errno string
		want      verdict
	}{
		{opRead, "", allowed},
		{opRead, "EACCES", denied},
		{opRead, "EPERM", denied},
		{opChmod, "EROFS", denied},
		{opRead, "ENOENT", absent},
		{opRead, "EAGAIN", absent},
		{opFork, "EAGAIN", denied},
		{opTCP, "ECONNREFUSED", allowed},
		{opUnix, "ECONNREFUSED", allowed},
		{opRead, "ECONNREFUSED", absent},
		{opUDP, "ENETUNREACH", allowed},
		{opTCP, "EHOSTUNREACH", allowed},
		{opListen, "ENETUNREACH", absent},
		{opTCP, "ETIMEDOUT", absent},
		{opTCP, "EAFNOSUPPORT", absent},
		{opExec, "ENOEXEC", absent},
		{opUDP, "errno 999", absent},
	}
	for _, tt := range tests {
		if got := classify(tt.op, outcome{Errno: tt.errno}); got != tt.want {
			t.Errorf("classify(%s, %q) = %d, want %d", tt.op, tt.errno, got, tt.want)
		}
	}
}

// TestJudge starts from a check that is enforced, and spoils it in one way
// after the other.
func TestJudge(t *testing.T) {
	base := func() check {
		return check{capability: platform.FS, by: "landlock", remedy: "fix it", tries: []try{
			{run: "a", act: act{ID: "1", Op: opRead}, want: refused, what: "outside"},
			{run: "a", act: act{ID: "2", Op: opRead}, want: permitted, what: "inside"},
			{run: "b", act: act{ID: "1", Op: opRead}, want: refused, what: "outside", ifStarts: true},
			{run: "a", act: act{ID: "3", Op: opTCP}, want: refused, what: "IPv6", optional: true},
			{run: runSelf, act: fact("4"), want: holds, what: "the sun shines"},
		}}
	}
	good := func() map[string]answer {
		return map[string]answer{
			"a":     {outcomes: map[string]outcome{"1": {Errno: "EACCES"}, "2": {}, "3": {Errno: "EPERM"}}},
			"b":     {outcomes: map[string]outcome{"1": {Errno: "EPERM"}}},
			runSelf: {outcomes: map[string]outcome{"4": {}}},
		}
	}
	tests := []struct {
		name   string
		spoil  func(*check, map[string]answer)
		status platform.Status
		reason string
	}{
		{"as it should be", func(*check, map[string]answer) {}, platform.Enforced, "refused outside, IPv6; allowed inside; seen: the sun shines"},
		{"forbidden and allowed", func(_ *check, a map[string]answer) { a["a"].outcomes["1"] = outcome{Text: "wrote it"} }, platform.Unavailable, "outside was allowed (wrote it)"},
		{"allowed in one of two modes", func(_ *check, a map[string]answer) { a["b"].outcomes["1"] = outcome{} }, platform.Unavailable, "outside was allowed"},
		{"forbidden and absent", func(_ *check, a map[string]answer) { a["a"].outcomes["1"] = outcome{Errno: "ENOENT"} }, platform.Unavailable, "outside could not be tried: ENOENT"},
		{"forbidden without answer", func(_ *check, a map[string]answer) { delete(a["a"].outcomes, "1") }, platform.Unavailable, "outside could not be tried: the probe gave no answer"},
		{"no child at all", func(_ *check, a map[string]answer) { delete(a, "a") }, platform.Unavailable, "outside could not be tried: the probe gave no answer"},
		{"a child that broke", func(_ *check, a map[string]answer) { a["a"] = answer{broken: "it fell over"} }, platform.Unavailable, "outside could not be tried: it fell over"},
		{"permitted and refused", func(_ *check, a map[string]answer) { a["a"].outcomes["2"] = outcome{Errno: "EACCES"} }, platform.Unavailable, "inside must work and does not: EACCES"},
		{"permitted and absent", func(_ *check, a map[string]answer) { a["a"].outcomes["2"] = outcome{Errno: "ENOENT"} }, platform.Unavailable, "inside must work and does not: ENOENT"},
		{"optional and absent", func(_ *check, a map[string]answer) { a["a"].outcomes["3"] = outcome{Errno: "EAFNOSUPPORT"} }, platform.Enforced, "refused outside; allowed inside; seen: the sun shines"},
		{"optional and allowed", func(_ *check, a map[string]answer) { a["a"].outcomes["3"] = outcome{Errno: "ECONNREFUSED"} }, platform.Unavailable, "IPv6 was allowed"},
		{"a fact that is not so", func(_ *check, a map[string]answer) { a[runSelf].outcomes["4"] = outcome{Errno: "ERANGE", Text: "rain"} }, platform.Unavailable, "not so: the sun shines (rain)"},
		{"a mode that does not start", func(_ *check, a map[string]answer) { a["b"] = answer{refusal: "no such layer"} }, platform.Enforced,
			"refused outside, IPv6; allowed inside; seen: the sun shines; no sandbox with b starts here"},
		{"a child that is refused", func(_ *check, a map[string]answer) { a["a"] = answer{refusal: "no Landlock", remedy: "boot another"} }, platform.Unavailable, "no Landlock"},
		{"a gap of it", func(_ *check, a map[string]answer) {
			x := a["a"]
			x.gaps = []platform.Gap{{Capability: platform.FS, Reason: "half of it", Remedy: "the other half"}}
			a["a"] = x
		}, platform.Unavailable, "half of it"},
		{"a gap of another", func(_ *check, a map[string]answer) {
			x := a["a"]
			x.gaps = []platform.Gap{{Capability: platform.IPC, Reason: "not this"}}
			a["a"] = x
		}, platform.Enforced, "refused outside, IPv6; allowed inside; seen: the sun shines"},
		{"refusals alone", func(c *check, _ map[string]answer) { c.tries = c.tries[:1] }, platform.Unavailable, "not tried both ways: refused outside"},
		{"permissions alone", func(c *check, _ map[string]answer) { c.tries = c.tries[1:2] }, platform.Unavailable, "not tried both ways: allowed inside"},
		{"nothing", func(c *check, _ map[string]answer) { c.tries = nil }, platform.Unavailable, "not tried both ways: "},
		{"hidden and gone", func(c *check, a map[string]answer) {
			c.tries[0].want = hidden
			a["a"].outcomes["1"] = outcome{Errno: "ENOENT"}
		}, platform.Enforced, "refused outside, IPv6; allowed inside; seen: the sun shines"},
		{"hidden and there", func(c *check, a map[string]answer) {
			c.tries[0].want = hidden
			a["a"].outcomes["1"] = outcome{}
		}, platform.Unavailable, "outside was allowed"},
		{"known", func(c *check, _ map[string]answer) { c.known = "not in this version" }, platform.Unavailable, "not in this version"},
	}
	for _, tt := range tests {
		c, a := base(), good()
		tt.spoil(&c, a)
		f := judge(c, a)
		if f.Status != tt.status || f.Reason != tt.reason {
			t.Errorf("%s: %s %q, want %s %q", tt.name, f.Status, f.Reason, tt.status, tt.reason)
		}
		if enforced := f.Status == platform.Enforced; enforced != (f.By != "") || enforced == (f.Remedy != "") {
			if len(a["a"].gaps) == 0 || f.Remedy == "" {
				t.Errorf("%s: by %q, remedy %q", tt.name, f.By, f.Remedy)
			}
		}
	}
}

// TestChecks holds the table itself: every capability in order, each decided
// both ways, by acts that are harmless and that no two share by name alone.
func TestChecks(t *testing.T) {
	p := places{base: "/var/tmp/" + probePrefix + "0-1", abstract: "@" + probePrefix + "0-1", gpu: "/dev/dri/renderD128", pid: 42, tcp: 1, proxy: 2, tcp6: 3, udp: 4, free: 5}
	for _, h := range []Host{fullHost(), {}, {UserNS: true, Landlock: 7}} {
		cs := checks(h, p)
		var got []platform.Capability
		for _, c := range cs {
			got = append(got, c.capability)
			if c.remedy == "" {
				t.Errorf("%s has no remedy", c.capability)
			}
			if c.known == "" && c.by == "" {
				t.Errorf("%s has no mechanism", c.capability)
			}
		}
		if !reflect.DeepEqual(got, platform.Capabilities()) {
			t.Fatalf("checks are of %v", got)
		}
		byID := map[string]act{}
		for _, run := range []string{runNone, runAllowlist, runAny, runBroker, runExecRW, runGPU, runMemory, runCPU, runPids, runSelf} {
			list := acts(cs, run)
			if len(list) == 0 {
				t.Errorf("the child %s has nothing to do", run)
			}
			for _, a := range list {
				if other, ok := byID[a.ID]; ok && !reflect.DeepEqual(a, other) {
					t.Errorf("two acts are called %q: %v and %v", a.ID, a, other)
				}
				byID[a.ID] = a
				if err := a.harmless(); err != nil {
					t.Error(err)
				}
			}
			back, err := parseActs(encodeActs(list))
			if err != nil || !reflect.DeepEqual(back, list) {
				t.Errorf("acts of %s do not survive: %v, %v", run, back, err)
			}
		}
	}
}

func TestHarmless(t *testing.T) {
	const in = "/var/tmp/thole-doctor-0-1/x"
	for _, a := range []act{
		{Op: opRead, Path: "/etc/shadow"}, {Op: opOpenWrite, Path: "/etc/passwd"}, {Op: opUnlink, Path: "/var/tmp/thole-doctor-0-1"},
		{Op: opUnlink, Path: "/var/tmp/thole-doctor-0-1/../../../etc/passwd"}, {Op: opCreate, Path: "thole-doctor-0/x"}, {Op: opExec, Path: "/bin/sh"},
		{Op: opExec, Path: in, Nested: []act{{Op: opRead, Path: "/etc/shadow"}}}, {Op: opList, Path: "/root"}, {Op: opStat, Path: "/etc/x"}, {Op: opStat, Path: "/proc/../etc/x"},
		{Op: opUnix, Path: "/run/docker.sock"}, {Op: opUnix, Path: "@other"}, {Op: opTCP, Addr: "198.41.0.4:443"}, {Op: opTCP, Addr: "[::ffff:10.0.0.1]:1"},
		{Op: opTCP, Addr: "10.0.0.1:80"}, {Op: opTCP, Addr: "localhost:80"}, {Op: opTCP}, {Op: opBind, Addr: "0.0.0.0:80"}, {Op: opUDP, Addr: "x"},
		{Op: opKill, N: 1}, {Op: opKill, N: 0}, {Op: opKill, N: -1}, {Op: opDevice, Path: "/dev/vda"}, {Op: opDevice, Path: "/dev/dri/../vda"},
		{Op: opFork, N: 1000}, {Op: opBurn, N: 10_000}, {Op: opAlloc, N: 1 << 20}, {Op: opFact}, {Op: "format"}, {},
	} {
		if a.harmless() == nil {
			t.Errorf("%+v passes for harmless", a)
		}
		if _, err := parseActs(encodeActs([]act{a})); err == nil {
			t.Errorf("%+v would be done", a)
		}
	}
}

func TestParseActs(t *testing.T) {
	for _, text := range []string{
		``, `[`, `{}`, `[{}]`, `[]x`, `[{"op":"listen"}`, `[{"op":"listen",}]`, `[{"op":"listen"},]`, `[{"op":"listen","op":"listen"}]`,
		`[{"op":"listen","more":"x"}]`, `[{"op":listen}]`, `[{"op":"kill","n":"two"}]`, `[{"op":"exec","acts":"x"}]`, `[{"op":"lis` + "\n" + `ten"}]`,
		`[{"op":"\x"}]`, `[{"op":"\u00e9"}]`, `[{"op":"\u00"}]`, "[{\"op\":\"\xff\"}]",
	} {
		if a, err := parseActs(text); err == nil {
			t.Errorf("%q gives %v", text, a)
		}
	}
	deep := act{Op: opExec, Path: "/thole-doctor-/x"}
	for range maxNesting + 1 {
		deep = act{Op: opExec, Path: deep.Path, Nested: []act{deep}}
	}
	if _, err := parseActs(encodeActs([]act{deep})); err == nil {
		t.Error("acts are nested without bound")
	}
}

func TestParseOutcomes(t *testing.T) {
	tests := []struct {
		text  string
		n     int
		whole bool
		err   string
	}{
		{"", 0, false, ""},
		{`{"id":"end"}` + "\n", 0, true, ""},
		{`{"id":"a"}` + "\n" + `{"id":"end"}` + "\n", 1, true, ""},
		{`{"id":"a","errno":"EPERM","text":"x y"}` + "\n", 1, false, ""},
		{`{"id":"a"}` + "\n" + `{"id":"b","err`, 1, false, ""},
		{`{"id":"a"}` + "\n" + `{"id":"a"}` + "\n", 1, false, `"a" twice`},
		{`{"id":"end"}` + "\n" + `{"id":"a"}` + "\n", 0, false, "after the end"},
		{`{"errno":"EPERM"}` + "\n", 0, false, "without id"},
		{`{"id":"a","verdict":"ok"}` + "\n", 0, false, "unknown key"},
		{"usage: program [flags]\n", 0, false, "want {"},
		{`{"id":"a"} ` + "\n", 0, false, "text after"},
	}
	for _, tt := range tests {
		out, whole, err := parseOutcomes(tt.text)
		if len(out) != tt.n || whole != tt.whole || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: %v, whole %v, %v", tt.text, out, whole, err)
		}
	}
}

func FuzzParseActs(f *testing.F) {
	f.Add(`[{"id":"a","op":"list","path":"/"},{"id":"b","op":"exec","path":"/thole-doctor-/x","acts":"[{\"op\":\"ids\"}]"}]`)
	f.Add(`[{"op":"kill","n":"7"}]`)
	f.Add(`[{"id":"\u000a\"\\","op":"ids"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		acts, err := parseActs(text)
		if err != nil {
			return
		}
		for _, a := range acts {
			if err := a.harmless(); err != nil {
				t.Fatal(err)
			}
		}
		again, err := parseActs(encodeActs(acts))
		if err != nil || encodeActs(again) != encodeActs(acts) {
			t.Fatalf("%q: %v", encodeActs(acts), err)
		}
	})
}

func FuzzParseOutcomes(f *testing.F) {
	f.Add(`{"id":"a","errno":"EPERM","text":"x"}` + "\n" + `{"id":"end"}` + "\n")
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, whole, err := parseOutcomes(text)
		if err != nil && whole {
			t.Fatal("whole with an error")
		}
		for id, o := range out {
			if id == "" || id == lastID || o.ID != id {
				t.Fatalf("outcome %q: %v", id, o)
			}
			back, _, err := parseOutcomes(string(appendOutcome(nil, o)))
			if err != nil || back[id] != o {
				t.Fatalf("%v became %v, %v", o, back[id], err)
			}
		}
	})
}
