// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; read the difference, then run with -update\n%s", name, changed(string(want), got))
	}
}

// changed lists the lines that only one text has.
func changed(from, to string) string {
	var b strings.Builder
	a, z := strings.Split(from, "\n"), strings.Split(to, "\n")
	for _, l := range a {
		if !slices.Contains(z, l) {
			fmt.Fprintf(&b, "- %s\n", l)
		}
	}
	for _, l := range z {
		if !slices.Contains(a, l) {
			fmt.Fprintf(&b, "+ %s\n", l)
		}
	}
	return b.String()
}

// label names the options that are set.
func label(o Options) string {
	var on []string
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Bool && v.Field(i).Bool() {
			on = append(on, v.Type().Field(i).Name)
		}
	}
	if on == nil {
		return "none"
	}
	return strings.Join(on, "+")
}

// TestGolden holds the whole text of the program without options, what each
// option and each combination of the socket options changes in it, and a
// digest and the sizes of every combination.
func TestGolden(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		base := Rules(Options{Arch: a}).String()
		golden(t, "rules-"+a.String()+".txt", base)

		var diffs, sizes strings.Builder
		for _, o := range options(a) {
			p := Rules(o)
			text := p.String()
			fmt.Fprintf(&sizes, "%-76s %3d rules %3d instructions %s\n",
				label(o), len(p.Rules), len(mustCompile(t, p)), digest(text))
			others := o
			others.Unix, others.Inet, others.StrictTypes, others.InetStreamOnly = false, false, false, false
			if l := label(o); l != "none" && (others == Options{Arch: a} || !strings.Contains(l, "+")) {
				fmt.Fprintf(&diffs, "%s\n%s\n", l, changed(base, text))
			}
		}
		golden(t, "options-"+a.String()+".txt", diffs.String())
		golden(t, "sizes-"+a.String()+".txt", sizes.String())
	}
}

// TestEveryOption fails for an option that changes nothing, or that the list of
// combinations forgot.
func TestEveryOption(t *testing.T) {
	all := options(AMD64)
	rt := reflect.TypeFor[Options]()
	if n := rt.NumField() - 1; len(all) != 1<<n {
		t.Fatalf("%d combinations of %d options", len(all), n)
	}
	for i := range rt.NumField() {
		if rt.Field(i).Type.Kind() != reflect.Bool {
			continue
		}
		o := Options{Arch: AMD64}
		// These two narrow Inet and are nothing without it.
		o.Inet = strings.HasPrefix(rt.Field(i).Name, "Inet") || rt.Field(i).Name == "StrictTypes"
		v := reflect.ValueOf(&o).Elem().Field(i)
		v.SetBool(true)
		with := Rules(o).String()
		v.SetBool(false)
		if without := Rules(o).String(); with == without {
			t.Errorf("%s changes nothing", rt.Field(i).Name)
		}
	}
}

// TestNames fails for a name in a rule that no architecture has.
func TestNames(t *testing.T) {
	o := Options{Arch: AMD64, NoSysV: true, NoSetID: true, NoExecMemfd: true, NoLink: true, Inet: true, InetStreamOnly: true}
	x := build(o).missing
	o.Arch = ARM64
	for _, name := range build(o).missing {
		if slices.Contains(x, name) {
			t.Errorf("no architecture has %q", name)
		}
	}
	if len(x) != 0 {
		t.Errorf("amd64 lacks %q", x)
	}
}

// TestNotWidened: each option but those that permit leaves no call permitted
// that was refused without it, on arguments at the edges.
func TestNotWidened(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		for _, o := range options(a) {
			wide := Rules(Options{Arch: a, Unix: o.Unix, Inet: o.Inet})
			p := Rules(o)
			for _, r := range wide.Rules {
				if r.Action == Allow {
					continue
				}
				d := data{nr: r.Nr, arch: a.Audit()}
				for _, c := range r.When {
					if c.Not {
						d.args[c.Arg] = c.Mask & -c.Mask
					} else {
						d.args[c.Arg] = c.Values[0]
					}
				}
				if naive(wide, d) != Allow && naive(p, d) == Allow {
					t.Errorf("%s permits %s %#x", label(o), r.Call, d.args)
				}
			}
		}
	}
}

// TestDepth holds the longest way of a call without conditions: the kernel
// walks it for each number when a filter is installed.
func TestDepth(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		for _, o := range options(a) {
			code := mustCompile(t, Rules(o))
			conditional := map[uint32]bool{}
			for _, r := range Rules(o).Rules {
				conditional[r.Nr] = true
			}
			for nr := range uint32(600) {
				_, steps := interpret(code, data{nr: nr, arch: a.Audit()})
				if !conditional[nr] && steps > 15 {
					t.Fatalf("%s %s: nr %d takes %d steps", a, label(o), nr, steps)
				}
			}
		}
	}
}

func TestActionString(t *testing.T) {
	for a, want := range map[Action]string{
		Allow: "allow", Errno(1): "EPERM", Errno(38): "ENOSYS", Errno(93): "EPROTONOSUPPORT",
		Errno(95): "EOPNOTSUPP", Errno(13): "errno 13", 0: "action 0x0", 0x7fc00000: "action 0x7fc00000",
	} {
		if got := a.String(); got != want {
			t.Errorf("%#x prints %q, want %q", uint32(a), got, want)
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x", sum[:6])
}
