// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

var at = time.Date(2026, 3, 4, 5, 6, 7, 80, time.UTC)

// samples holds one record of every type, with every field in use somewhere.
func samples() []Event {
	return []Event{
		{
			Time: at, Type: Denied, Seq: 1, Node: "host-1", Sandbox: "s1", Module: "org.example.tool",
			Cgroup: "/thole/s1", CgroupID: 4711, PID: 100, TID: 101, PPID: 99,
			Exe: "/usr/bin/curl", Comm: "curl", UID: new(uint32(0)), Capability: NetConnect,
			Target: "192.0.2.1:443/tcp", Rule: "policy.toml:3:7: deny 192.0.2.0/24",
			Enforcer: CgroupBPF, Errno: "EPERM", Count: 3,
		},
		{
			Time: at.Add(time.Second), Type: WouldDeny, Seq: 2, Sandbox: "s1", PID: 100,
			Comm: "we\x1b[31mird\xff\u202e", Capability: UnixConnect, Target: "@bus",
			Enforcer: CgroupBPF,
		},
		{Time: at, Type: Started, Seq: 3, Sandbox: "s1", PID: 100, Exe: "/bin/true"},
		{Time: at, Type: Verified, Seq: 4, Sandbox: "s1", PID: 100, Detail: "cgroup, seccomp, landlock"},
		{
			Time: at, Type: Ended, Seq: 5, Sandbox: "s1", Totals: &Totals{
				Denied:    map[Capability]uint64{NetConnect: 3, FSWrite: 1},
				WouldDeny: map[Capability]uint64{UnixConnect: 1},
				Lost:      2, Exit: 137, OOM: true,
				Wall: 1500 * time.Millisecond, CPU: 20 * time.Millisecond, Peak: 1 << 20,
			},
		},
		{Time: at, Type: Ended, Seq: 6, Totals: &Totals{}},
		{Time: at, Type: Escape, Seq: 7, Sandbox: "s1", PID: 7, Detail: "seccomp: no filter"},
		{Time: at, Type: Lost, Seq: 8, Where: InKernel, Count: 12, Since: at.Add(-time.Second)},
		{Time: at, Type: Gap, Seq: 9, Since: at.Add(-time.Minute), Until: at},
	}
}

func TestGolden(t *testing.T) {
	var buf bytes.Buffer
	enc := NewEncoder(&buf)
	for _, e := range samples() {
		if err := enc.Encode(&e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
	}
	file := filepath.Join("testdata", "events.ndjson")
	if *update {
		if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buf.Bytes(), want) {
		t.Errorf("got\n%swant\n%s", buf.Bytes(), want)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, e := range samples() {
		line := e.AppendJSON(nil)
		got, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e.Count = e.N()
		if e.Type == WouldDeny {
			e.Comm = strings.ReplaceAll(e.Comm, "\xff", "\uFFFD")
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%s\ngot  %+v\nwant %+v", line, got, e)
		}
	}
}

// TestEveryField sets each field alone and expects to read it back: a field
// added to the struct cannot be forgotten in the encoder or the parser.
func TestEveryField(t *testing.T) {
	base := map[string]Event{ // the type whose record may carry the field
		"capability": samples()[0], "target": samples()[0], "rule": samples()[0],
		"enforcer": samples()[0], "errno": samples()[0], "count": samples()[0],
		"where": samples()[7], "since": samples()[7], "until": samples()[8], "totals": samples()[4],
	}
	typ := reflect.TypeFor[Event]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		t.Run(name, func(t *testing.T) {
			e, ok := base[name]
			if !ok {
				e = Event{Time: at, Type: Started}
			}
			field := reflect.ValueOf(&e).Elem().Field(i)
			switch v := field.Addr().Interface().(type) {
			case *time.Time:
				*v = at.Add(12345)
			case *string:
				*v = "x"
			case *Type:
				*v = Escape
			case *Capability:
				*v = Broker
			case *Enforcer:
				*v = WFP
			case *Where:
				*v = InClient
			case *uint64:
				*v = 1<<64 - 1
			case *uint32:
				*v = 1<<32 - 1
			case **uint32:
				*v = new(uint32(0))
			case **Totals:
				checkTotals(t)
			default:
				t.Fatalf("no value for a field of type %T", v)
			}
			line := e.AppendJSON(nil)
			got, err := Parse(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if !reflect.DeepEqual(got, e) {
				t.Errorf("%s\ngot  %+v\nwant %+v", line, got, e)
			}
		})
	}
}

func checkTotals(t *testing.T) {
	typ := reflect.TypeFor[Totals]()
	for i := range typ.NumField() {
		e := Event{Time: at, Type: Ended, Totals: &Totals{}}
		switch v := reflect.ValueOf(e.Totals).Elem().Field(i).Addr().Interface().(type) {
		case *map[Capability]uint64:
			*v = map[Capability]uint64{Ptrace: 9}
		case *uint64:
			*v = 9
		case *uint32:
			*v = 9
		case *bool:
			*v = true
		case *time.Duration:
			*v = 9
		default:
			t.Fatalf("no value for a field of type %T", v)
		}
		line := e.AppendJSON(nil)
		got, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %s lost", line, typ.Field(i).Name)
		}
	}
}

// TestAgreesWithEncodingJSON compares the encoder with the struct's tags as
// encoding/json reads them, and the order of the fields with the struct's.
func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, e := range samples() {
		e.Count = e.N()
		want, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		var a, b map[string]any
		if err := json.Unmarshal(want, &a); err != nil {
			t.Fatal(err)
		}
		line := e.AppendJSON(nil)
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, name := range []string{"time", "since", "until"} {
			if s, ok := b[name].(string); ok {
				v, err := time.Parse(time.RFC3339Nano, s)
				if err != nil || len(s) != len("2026-03-04T05:06:07.000000080Z") {
					t.Errorf("%s: %q: %v", name, s, err)
				}
				b[name] = v.Format(time.RFC3339Nano)
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("encoding/json says\n%s\nnot\n%s", want, line)
		}
		last := -1
		for _, name := range tags(reflect.TypeFor[Event]()) {
			if i := bytes.Index(line, []byte(`"`+name+`":`)); i >= 0 {
				if i < last {
					t.Errorf("%s: %q out of order", line, name)
				}
				last = i
			}
		}
	}
}

func tags(typ reflect.Type) []string {
	var names []string
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestEncodeRefusesInvalid(t *testing.T) {
	var buf bytes.Buffer
	enc := NewEncoder(&buf)
	err := enc.Encode(&Event{Time: at, Type: Denied, Capability: "net.teleport", Enforcer: CgroupBPF})
	if !errors.Is(err, ErrInvalid) || err.Error() != `capability: unknown capability "net.teleport"` {
		t.Errorf("got %v", err)
	}
	err = enc.Encode(&Event{Time: at, Type: Started, Exe: strings.Repeat("x", MaxLine)})
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if buf.Len() != 0 {
		t.Errorf("wrote %q", buf.Bytes())
	}
}

// TestLongestPaths holds what MaxLine promises.
func TestLongestPaths(t *testing.T) {
	path := strings.Repeat("\x1b", 4096)
	e := samples()[0]
	e.Cgroup, e.Exe, e.Target, e.Rule, e.Detail = path, path, path, path, path
	var buf bytes.Buffer
	if err := NewEncoder(&buf).Encode(&e); err != nil {
		t.Fatal(err)
	}
	if got, err := NewReader(&buf).Next(); err != nil || got.Target != path {
		t.Errorf("error %v", err)
	}
}

func TestOneWritePerRecord(t *testing.T) {
	var w countWriter
	enc := NewEncoder(&w)
	for _, e := range samples() {
		if err := enc.Encode(&e); err != nil {
			t.Fatal(err)
		}
	}
	if int(w) != len(samples()) {
		t.Errorf("%d writes for %d records", w, len(samples()))
	}
}

type countWriter int

func (c *countWriter) Write(p []byte) (int, error) { *c++; return len(p), nil }

func TestNames(t *testing.T) {
	if len(Types()) != 8 || len(Capabilities()) != 23 || len(Enforcers()) != 9 || len(Wheres()) != 3 {
		t.Error("a list lost or gained a name: correct schema.json and this test")
	}
	if Type("").Valid() || Capability("").Valid() || Enforcer("").Valid() || Where("").Valid() {
		t.Error("the empty name is valid")
	}
}

func BenchmarkEncode(b *testing.B) {
	e := samples()[0]
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendJSON(buf[:0])
	}
}

func BenchmarkParse(b *testing.B) {
	e := samples()[0]
	line := e.AppendJSON(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
