// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

const started = `{"time":"2026-03-04T05:06:07Z","type":"started","seq":1`

const totals = `{"time":"2026-03-04T05:06:07Z","type":"ended","seq":1,"totals":{"lost":0,"exit":0,"oom":false,"wall_ns":0,"cpu_ns":0,"peak_bytes":0`

func TestParseBad(t *testing.T) {
	refusal := `{"time":"2026-03-04T05:06:07Z","type":"denied","seq":1`
	for _, c := range []struct{ line, want string }{
		{``, `the record ends early`},
		{` `, `the record ends early`},
		{`null`, `not an object`},
		{`[]`, `not an object`},
		{`"x"`, `not an object`},
		{`{`, `the record ends early`},
		{`{}`, `time: missing`},
		{`{"time":"2026-03-04T05:06:07Z"}`, `type: unknown type ""`},
		{`{"time":"2026-03-04T05:06:07Z","type":"started"}`, `seq: missing`},
		{started, `seq: the record ends early`},
		{started + `,`, `the record ends early`},
		{started + `,}`, `not a field name`},
		{started + `}{}`, `more text after the record`},
		{started + `} x`, `more text after the record`},
		{started + `,"colour":"red"}`, `colour: unknown field`},
		{started + `,"PID":1}`, `PID: unknown field`},
		{started + `,"":1}`, `a field without a name`},
		{started + `,"seq":1}`, `seq: field given twice`},
		{started + `,"se\u0071":2}`, `seq: field given twice`},
		{started + `,"pid":null}`, `pid: not a number`},
		{started + `,"pid":"1"}`, `pid: not a number`},
		{started + `,"pid":0}`, `pid: 0 is not a whole number from 1 to 4294967295`},
		{started + `,"pid":-1}`, `pid: -1 is not a whole number from 1 to 4294967295`},
		{started + `,"pid":1.0}`, `pid: 1.0 is not a whole number from 1 to 4294967295`},
		{started + `,"pid":1e3}`, `pid: 1e3 is not a whole number from 1 to 4294967295`},
		{started + `,"pid":4294967296}`, `pid: 4294967296 is not a whole number from 1 to 4294967295`},
		{started + `,"pid":01}`, `pid: 01 is not a whole number from 1 to 4294967295`},
		{started + `,"cgroup_id":18446744073709551616}`, `cgroup_id: 18446744073709551616 is not a whole number from 1 to 18446744073709551615`},
		{started + `,"node":7}`, `node: not a string`},
		{started + `,"node":""}`, `node: empty`},
		{started + `,"node":{}}`, `node: not a string`},
		{started + `,"node":"a` + "\x01" + `"}`, `node: a control character in a string`},
		{started + `,"node":"` + "\xff" + `"}`, `not UTF-8`},
		{started + `,"node":"\q"}`, `node: a bad escape in a string`},
		{started + `,"node":"\ud800"}`, `node: a bad escape in a string`},
		{started + `,"node":"\ud800\u0041"}`, `node: a bad escape in a string`},
		{started + `,"node":"\u12g4"}`, `node: a bad escape in a string`},
		{started + `,"node":"x`, `node: the record ends early`},
		{started + `,"node"`, `node: the record ends early`},
		{started + `,"node" "x"}`, `node: no colon after the name`},
		{started + `,"node":"x" "pid":1}`, `node: neither comma nor brace after the value`},
		{started + `,"pid":1;}`, `pid: 1; is not a whole number from 1 to 4294967295`},
		{started + `,"pid":+1}`, `pid: not a number`},
		{started + `,"pid":}`, `pid: not a number`},
		{started + `,"pid":`, `pid: the record ends early`},
		{`{"time":"yesterday","type":"started","seq":1}`, `time: "yesterday" is not an RFC 3339 time`},
		{`{"time":"2026-03-04 05:06:07Z","type":"started","seq":1}`, `time: "2026-03-04 05:06:07Z" is not an RFC 3339 time`},
		{`{"time":"0001-01-01T00:00:00Z","type":"started","seq":1}`, `time: "0001-01-01T00:00:00Z" is out of range`},
		{`{"time":"9999-12-31T23:59:59-01:00","type":"started","seq":1}`, `time: "9999-12-31T23:59:59-01:00" is out of range`},
		{`{"time":"2026-03-04T05:06:07Z","type":"danced","seq":1}`, `type: unknown type "danced"`},
		{refusal + `}`, `capability: unknown capability ""`},
		{refusal + `,"capability":"net.connect"}`, `enforcer: unknown enforcer ""`},
		{refusal + `,"capability":"net.conect","enforcer":"landlock"}`, `capability: unknown capability "net.conect"`},
		{refusal + `,"capability":"net.bind","enforcer":"magic"}`, `enforcer: unknown enforcer "magic"`},
		{refusal + `,"capability":"net.bind","enforcer":"landlock","count":0}`, `count: 0 is not a whole number from 1 to 18446744073709551615`},
		{refusal + `,"capability":"net.bind","enforcer":"landlock","since":"2026-03-04T05:06:07Z"}`, `since: not part of a record of type "denied"`},
		{started + `,"capability":"net.bind"}`, `capability: not part of a record of type "started"`},
		{started + `,"target":"x"}`, `target: not part of a record of type "started"`},
		{started + `,"rule":"x"}`, `rule: not part of a record of type "started"`},
		{started + `,"enforcer":"wfp"}`, `enforcer: not part of a record of type "started"`},
		{started + `,"errno":"EPERM"}`, `errno: not part of a record of type "started"`},
		{started + `,"count":1}`, `count: not part of a record of type "started"`},
		{started + `,"where":"agent"}`, `where: not part of a record of type "started"`},
		{started + `,"until":"2026-03-04T05:06:07Z"}`, `until: not part of a record of type "started"`},
		{strings.Replace(totals, "ended", "started", 1) + `}}`, `totals: not part of a record of type "started"`},
		{`{"time":"2026-03-04T05:06:07Z","type":"ended","seq":1}`, `totals: missing`},
		{`{"time":"2026-03-04T05:06:07Z","type":"ended","seq":1,"totals":{}}`, `totals: needs lost, exit, oom, wall_ns, cpu_ns and peak_bytes`},
		{`{"time":"2026-03-04T05:06:07Z","type":"ended","seq":1,"totals":[]}`, `totals: not an object`},
		{totals + `,"exit":1}}`, `totals.exit: field given twice`},
		{totals + `,"mood":1}}`, `totals.mood: unknown field`},
		{totals + `,"denied":{"walk":1}}}`, `totals.denied: unknown capability "walk"`},
		{totals + `,"would_deny":{"walk":1}}}`, `totals.would_deny: unknown capability "walk"`},
		{totals + `,"denied":{"bpf":-1}}}`, `totals.denied.bpf: -1 is not a whole number from 0 to 18446744073709551615`},
		{totals + `,"denied":{"bpf":1,"bpf":1}}}`, `totals.denied.bpf: field given twice`},
		{totals + `,"denied":7}}`, `totals.denied: not an object`},
		{strings.Replace(totals, "false", `"no"`, 1) + `}}`, `totals.oom: not true or false`},
		{strings.Replace(totals, `"cpu_ns":0`, `"cpu_ns":-5`, 1) + `}}`, `totals.cpu_ns: -5 is not a whole number from 0 to 9223372036854775807`},
		{`{"time":"2026-03-04T05:06:07Z","type":"lost","seq":1}`, `where: unknown stage ""`},
		{`{"time":"2026-03-04T05:06:07Z","type":"lost","seq":1,"where":"moon"}`, `where: unknown stage "moon"`},
		{`{"time":"2026-03-04T05:06:07Z","type":"lost","seq":1,"where":"agent"}`, `count: missing`},
		{`{"time":"2026-03-04T05:06:07Z","type":"lost","seq":1,"where":"agent","count":1}`, `since: missing`},
		{`{"time":"2026-03-04T05:06:07Z","type":"gap","seq":1}`, `since: missing`},
		{`{"time":"2026-03-04T05:06:07Z","type":"gap","seq":1,"since":"2026-03-04T05:06:07Z"}`, `until: missing`},
		{`{"time":"2026-03-04T05:06:07Z","type":"gap","seq":1,"since":"2026-03-04T05:06:07Z","until":"2026-03-04T05:06:06Z"}`, `until: before since`},
	} {
		_, err := Parse([]byte(c.line))
		if err == nil || err.Error() != c.want || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s\ngot  %v\nwant %s", c.line, err, c.want)
		}
	}
}

func TestReader(t *testing.T) {
	long := started + `,"node":"` + strings.Repeat("x", MaxLine) + `"}`
	input := strings.Join([]string{
		started + `}`, ``, started + `,"pid":0}`, started + `}` + "\r", long, started + `,"pid":5}`,
	}, "\n")
	for name, r := range map[string]io.Reader{
		"whole":    strings.NewReader(input),
		"bytewise": iotest.OneByteReader(strings.NewReader(input)),
		"data+EOF": iotest.DataErrReader(strings.NewReader(input + "\n")),
	} {
		t.Run(name, func(t *testing.T) {
			in := NewReader(r)
			var got []string
			for {
				e, err := in.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					got = append(got, err.Error())
					continue
				}
				got = append(got, fmt.Sprintf("%d pid %d", in.Line(), e.PID))
			}
			want := []string{
				"1 pid 0",
				"line 2: the record ends early",
				"line 3: pid: 0 is not a whole number from 1 to 4294967295",
				"4 pid 0",
				"line 5: line over 262144 bytes",
				"6 pid 5",
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if _, err := in.Next(); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestReaderReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	in := NewReader(io.MultiReader(strings.NewReader(started+"}\n"+started), iotest.ErrReader(broken)))
	if _, err := in.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := in.Next()
	if line, ok := errors.AsType[*LineError](err); !ok || line.Line != 2 || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLong) {
		t.Errorf("%v looks like one bad line", err)
	}
}

func TestReaderLineOfExactlyMaxLine(t *testing.T) {
	head := started + `,"node":"`
	line := head + strings.Repeat("x", MaxLine-len(head)-len("\"}\n")) + "\"}\n"
	if len(line) != MaxLine {
		t.Fatal(len(line))
	}
	if _, err := NewReader(strings.NewReader(line)).Next(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range samples() {
		f.Add(e.AppendJSON(nil))
	}
	f.Add([]byte(started + `,"uid":0,"node":"\ud800\u2028"}`))
	f.Add([]byte(totals + `,"denied":{}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLong) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := e.Validate(); err != nil {
			t.Fatalf("%q is read but is invalid: %v", line, err)
		}
		if !json.Valid(line) {
			t.Fatalf("%q is read but is not JSON", line)
		}
		var std Event // what encoding/json reads must be the same
		if err := json.Unmarshal(line, &std); err != nil {
			t.Fatalf("%q: encoding/json: %v", line, err)
		}
		first := e.AppendJSON(nil)
		if other := std.AppendJSON(nil); !bytes.Equal(first, other) {
			t.Fatalf("encoding/json reads\n%s\nnot\n%s", other, first)
		}
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := again.AppendJSON(nil); !bytes.Equal(first, second) {
			t.Fatalf("%s\nbecame\n%s", first, second)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("/tmp/\xff", "a\x1b[2J\u009b\u2028", "/bin/\"sh\"\\", uint64(1))
	f.Fuzz(func(t *testing.T, target, comm, exe string, seq uint64) {
		e := Event{
			Time: at, Type: Denied, Seq: seq, Target: target, Comm: comm, Exe: exe,
			Capability: FSRead, Enforcer: Landlock,
		}
		line := e.AppendJSON(nil)
		for _, r := range string(line) {
			if unsafeRune(r) {
				t.Fatalf("%q holds %U", line, r)
			}
		}
		got, err := Parse(line)
		if len(line) > MaxLine {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if utf8.ValidString(target) && got.Target != target || got.Seq != seq {
			t.Fatalf("%q became %q", target, got.Target)
		}
	})
}
