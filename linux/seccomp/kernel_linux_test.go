// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"runtime"
	"testing"
)

// TestRefused issues every refused call on the running kernel, one victim for
// each call and set of options (for each set of options with -short and under
// the race detector, where a process takes a second to start), and expects the
// filter's answer, told from the kernel's own by its mark.
func TestRefused(t *testing.T) {
	a := native(t)
	type key struct {
		call string
		opt  Options
	}
	var keys []key
	groups := map[key][]refusal{}
	tried := map[string]bool{}
	for _, r := range refusals() {
		if _, ok := a.Number(r.call); !ok {
			continue
		}
		r.opt.Arch = a
		k := key{r.call, r.opt}
		if testing.Short() || raceDetector {
			k.call = ""
		}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], r)
		tried[r.call] = true
	}
	for _, k := range keys {
		o := order{Options: k.opt, Mark: true}
		for _, r := range groups[k] {
			nr, _ := a.Number(r.call)
			o.Calls = append(o.Calls, probe{Nr: nr, Args: r.args})
		}
		out := mustRun(t, o)
		for i, r := range groups[k] {
			if got, want := out.Errnos[i], int(r.errno)+marked; got != want {
				t.Errorf("%s %#x with %s: errno %d, want %d", r.call, r.args, label(r.opt), got, want)
			}
		}
	}
	for _, r := range Rules(Options{
		Arch: a, Inet: true, InetStreamOnly: true, NoSysV: true, NoSetID: true, NoExecMemfd: true, NoLink: true,
	}).Rules {
		if r.Action != Allow && !tried[r.Call] {
			t.Errorf("%s is refused and was not tried", r.Call)
		}
	}
}

// TestNumbers issues numbers outside the table.
func TestNumbers(t *testing.T) {
	a := native(t)
	o := order{Options: Options{Arch: a}, Mark: true}
	var want []int
	add := func(nr uint32, errno int) {
		o.Calls = append(o.Calls, probe{Nr: nr, Args: arguments()})
		want = append(want, errno+marked)
	}
	for nr := uint32(472); nr < 560; nr++ {
		add(nr, ENOSYS)
	}
	add(400, ENOSYS)
	add(0x3fffffff, ENOSYS)
	if a == AMD64 {
		for nr := range uint32(560) {
			add(nr|x32Bit, EPERM)
		}
		add(0x7fffffff, EPERM)
	}
	out := mustRun(t, o)
	for i, c := range o.Calls {
		if out.Errnos[i] != want[i] {
			t.Errorf("number %#x: errno %d, want %d", c.Nr, out.Errnos[i], want[i])
		}
	}
}

// TestI386 goes through int 0x80, where 20 is getpid and 272 fadvise64_64.
func TestI386(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has int 0x80")
	}
	calls := []probe{{Nr: 20, I386: true}, {Nr: 272, I386: true}, {Nr: 1000, I386: true}}
	if out, err := run(t, order{None: true, Calls: calls[:1]}); err != nil {
		t.Skipf("this kernel has no i386 calls: %.200v", err)
	} else if out.Errnos[0] != 0 {
		t.Fatalf("getpid by int 0x80 without a filter: errno %d", out.Errnos[0])
	}
	out := mustRun(t, order{Options: Options{Arch: AMD64}, Mark: true, Calls: calls})
	for i, c := range calls {
		if out.Errnos[i] != EPERM+marked {
			t.Errorf("i386 call %d: errno %d", c.Nr, out.Errnos[i])
		}
	}
}

// TestSplitOnKernel: two filters answer as one, each error from its half.
func TestSplitOnKernel(t *testing.T) {
	a := native(t)
	o := order{Options: Options{Arch: a, Log: true}, Split: true}
	var want []int
	for _, c := range []struct {
		name  string
		errno int
	}{{"clone3", ENOSYS}, {"unshare", EPERM}, {"io_uring_setup", ENOSYS}, {"listen", EPERM}, {"getpid", 0}} {
		nr, _ := a.Number(c.name)
		o.Calls = append(o.Calls, probe{Nr: nr, Args: arguments()})
		want = append(want, c.errno)
	}
	out := mustRun(t, o)
	for i := range want {
		if out.Errnos[i] != want[i] {
			t.Errorf("call %d: errno %d, want %d", o.Calls[i].Nr, out.Errnos[i], want[i])
		}
	}
}
