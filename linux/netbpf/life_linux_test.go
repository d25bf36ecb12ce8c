// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

var refusedDial = call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "127.0.0.1", Port: 9}

// TestRingOverflow checks that what does not fit is counted to the last one.
func TestRingOverflow(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	r := c.ring(1)
	c.put(&Policy{})
	const n = 500
	loop := refusedDial
	loop.Op, loop.N = "loop", n
	if got := c.act(loop)[0]; got != 0 {
		t.Fatalf("%d of %d passed", got, n)
	}
	kept := len(events(t, r))
	s, err := j.e.Stats(c.id)
	if err != nil {
		t.Fatal(err)
	}
	if s.Denied != n || s.Lost != uint64(n-kept) || kept == 0 || kept == n {
		t.Errorf("stats %+v with %d events of %d", s, kept, n)
	}
	// Once read, the ring takes events again, over its end as well.
	for range 3 {
		loop.N = 20
		c.act(loop)
		if got := len(events(t, r)); got != 20 {
			t.Errorf("%d events after draining, want 20", got)
		}
	}
}

// TestRingRead checks the blocking read and its end.
func TestRingRead(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	r := c.ring(1 << 16)
	c.put(&Policy{})
	got := make(chan Event)
	end := make(chan error)
	go func() {
		var buf [flat.EventUnixSize]byte
		for {
			n, err := r.Read(buf[:])
			if err != nil {
				end <- err
				return
			}
			e, err := DecodeEvent(buf[:n])
			if err != nil {
				end <- err
				return
			}
			got <- e
		}
	}()
	c.act(refusedDial)
	if e := <-got; e.Rule != uint32(flat.RuleNetNone) {
		t.Errorf("event %+v", e)
	}
	r.Stop()
	if err := <-end; !errors.Is(err, ErrClosed) {
		t.Errorf("read ended with %v", err)
	}
}

// TestRingSlots checks that rings are handed on, also by a process that was
// killed, and that two readers never share one.
func TestRingSlots(t *testing.T) {
	j := newJail(t)
	a, err := j.e.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	b, err := j.e.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	if a.slot == b.slot {
		t.Errorf("two rings in slot %d", a.slot)
	}
	other, err := Open(j.options())
	if err != nil {
		t.Fatal(err)
	}
	x, err := other.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	if x.slot == a.slot || x.slot == b.slot {
		t.Errorf("another process has slot %d as well", x.slot)
	}
	x.Close()
	other.Close()
	was := a.slot
	a.Close()
	again, err := j.e.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	if again.slot != was {
		t.Errorf("slot %d, want %d once more", again.slot, was)
	}
	again.Close()
	big, err := j.e.NewRing(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if int(big.mask) != 1<<20-1 {
		t.Errorf("ring of %d bytes", big.mask+1)
	}
	big.Close()
	b.Close()
	crash := exec.Command(os.Args[0], j.root, j.name, j.fs)
	crash.Env = append(os.Environ(), roleVar+"=crash")
	if out, _ := crash.CombinedOutput(); strings.TrimSpace(string(out)) != "<nil>" {
		t.Fatalf("holder: %s", out)
	}
	after, err := j.e.NewRing(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	after.Close()
}

// TestUpgrade replaces the programs while a prisoner connects in a loop: not
// one connect may pass.
func TestUpgrade(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner-hostnet")
	c.put(&Policy{})
	progs := func() [16]uint32 {
		var m flat.Meta
		var zero uint32
		fd, err := j.e.fd("meta")
		if err != nil {
			t.Fatal(err)
		}
		if err := mapLookup(fd, &zero, &m); err != nil {
			t.Fatal(err)
		}
		return m.Progs
	}
	passed := make(chan int)
	stop := make(chan struct{})
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				passed <- n
				return
			default:
			}
			loop := refusedDial
			loop.Op, loop.N = "loop", 200
			n += c.act(loop)[0]
		}
	}()
	rounds := 3
	if testing.Short() { // each loads everything anew
		rounds = 1
	}
	for range rounds {
		before := progs()
		markOld(t, j)
		j.open()
		after := progs()
		for hook, id := range before {
			if id != 0 && after[hook] == id {
				t.Errorf("hook %d still has program %d", hook, id)
			}
			if id != 0 && !j.e.attached(attachType(hook), after[hook]) {
				t.Errorf("hook %d: program %d is not attached", hook, after[hook])
			}
		}
	}
	close(stop)
	if n := <-passed; n != 0 {
		t.Errorf("%d connects passed during upgrades", n)
	}
	if s, _ := j.e.Stats(c.id); s.Denied == 0 {
		t.Error("the prisoner did nothing")
	}
}

// markOld makes what is pinned look like another build's.
func markOld(t *testing.T, j *jail) {
	t.Helper()
	fd, err := j.e.fd("meta")
	if err != nil {
		t.Fatal(err)
	}
	var m flat.Meta
	var zero uint32
	if err := mapLookup(fd, &zero, &m); err != nil {
		t.Fatal(err)
	}
	m.Digest[0]++
	if err := mapUpdate(fd, &zero, &m, 0); err != nil {
		t.Fatal(err)
	}
}

// TestConcurrentOpen starts fifty processes on a host where nothing is set up.
func TestConcurrentOpen(t *testing.T) {
	j := newJail(t)
	// Back to nothing.
	j.e.Close()
	j.e = nil
	if err := unix.Unmount(j.fs, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(j.root, j.name)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			cmd := exec.Command(os.Args[0], j.root, j.name, j.fs)
			cmd.Env = append(os.Environ(), roleVar+"=open")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}()
	}
	wg.Wait()
	j.open()
	j.attachedOnce("after all")
}

// attachedOnce wants one program at each hook that this kernel has.
func (j *jail) attachedOnce(when string) {
	j.t.Helper()
	for hook := range hooks {
		if hooks[hook].program == "" || isUnix(hook) && !j.e.Features().Unix {
			continue
		}
		var ids [64]uint32
		if n, err := progQuery(j.e.parentFD, hooks[hook].attach, ids[:]); err != nil || n != 1 {
			j.t.Errorf("%s: %d programs at %s, %v", when, n, hooks[hook].program, err)
		}
	}
}

// TestRepair takes away one pin after the other, as a crash half-way would
// have left them, and opens again.
func TestRepair(t *testing.T) {
	j := newJail(t)
	pins, err := os.ReadDir(j.e.Pins())
	if err != nil {
		t.Fatal(err)
	}
	c := j.cell("prisoner")
	for i, pin := range pins {
		// Each one loads everything anew: seconds on an emulated machine.
		if testing.Short() && i%4 != 0 && pin.Name() != "meta" {
			continue
		}
		if err := os.Remove(filepath.Join(j.e.Pins(), pin.Name())); err != nil {
			t.Fatal(err)
		}
		markOldUnless(t, j, pin.Name())
		j.open()
		c.put(&Policy{})
		if got := c.act(refusedDial)[0]; got != perm {
			t.Errorf("without pin %s: errno %d", pin.Name(), got)
		}
		j.attachedOnce("without pin " + pin.Name())
	}
}

func markOldUnless(t *testing.T, j *jail, name string) {
	if name != "meta" {
		markOld(t, j)
	}
}

// TestParentRemade removes the parent, which severs the links, and expects
// Open to attach anew.
func TestParentRemade(t *testing.T) {
	j := newJail(t)
	if err := os.Remove(j.e.ParentPath()); err != nil {
		t.Fatal(err)
	}
	j.open()
	c := j.cell("prisoner")
	c.put(&Policy{})
	if got := c.act(refusedDial)[0]; got != perm {
		t.Errorf("errno %d, want EPERM", got)
	}
}

// TestSecondInstance checks that pins of another place do not attach beside.
func TestSecondInstance(t *testing.T) {
	j := newJail(t)
	o := j.options()
	o.BPFFS = t.TempDir()
	defer unix.Unmount(o.BPFFS, 0)
	e, err := Open(o)
	if err == nil {
		e.Close()
	}
	var x *Error
	if !errors.As(err, &x) || x.Err != unix.EBUSY || x.Hint == "" {
		t.Errorf("error %v, want EBUSY with a remedy", err)
	}
}

// TestManyRules puts ten thousand rules and checks them and their removal.
func TestManyRules(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	p := &Policy{Mode: Rules}
	for i := range 10000 {
		p.Rules = append(p.Rules, Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 8), byte(i), 1}), 32), PortLo: 443, PortHi: 443, Proto: TCP})
	}
	c.put(p)
	got := c.act(
		call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "20.39.15.1", Port: 443},
		call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "20.39.16.1", Port: 443},
		call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "20.0.0.1", Port: 80},
	)
	if got[0] == perm || got[1] != perm || got[2] != perm {
		t.Errorf("errno %v", got)
	}
	// Another process replaces them, which has to look for the old ones.
	other, err := Open(j.options())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	im, err := Compile(&Policy{Mode: Rules, Rules: p.Rules[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Put(c.id, im); err != nil {
		t.Fatal(err)
	}
	if n := len(j.keys("rules")); n != 3 {
		t.Errorf("%d nodes left, want one and two families", n)
	}
	if err := j.e.Remove(c.id); err != nil {
		t.Fatal(err)
	}
	if n := len(j.keys("rules")); n != 0 {
		t.Errorf("%d nodes left", n)
	}
}

func (j *jail) keys(name string) []flat.RuleKey {
	fd, err := j.e.fd(name)
	if err != nil {
		j.t.Fatal(err)
	}
	k, err := mapKeys[flat.RuleKey](fd)
	if err != nil {
		j.t.Fatal(err)
	}
	return k
}

// TestSweep checks that what belongs to cgroups that are gone goes, and no more.
func TestSweep(t *testing.T) {
	j := newJail(t)
	live, dead := j.cell(""), j.cell("")
	rule := []Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}
	live.put(&Policy{Rules: rule})
	dead.put(&Policy{Rules: rule})
	r := live.ring(1 << 16)
	if err := r.Attach(dead.id); err != nil {
		t.Fatal(err)
	}
	n, err := j.e.Sweep(func(id uint64) bool { return id == live.id })
	if err != nil || n != 1 {
		t.Errorf("swept %d, %v", n, err)
	}
	for name, want := range map[string]int{"policies": 1, "slots": 1, "stats": 1} {
		fd, err := j.e.fd(name)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := mapKeys[uint64](fd); err != nil || len(k) != want || k[0] != live.id {
			t.Errorf("%s holds %v, %v", name, k, err)
		}
	}
	if k := j.keys("rules"); len(k) != 3 || slices.ContainsFunc(k, func(k flat.RuleKey) bool { return k.Cgroup != live.id }) {
		t.Errorf("rules hold %v", k)
	}
}

func TestOpenErrors(t *testing.T) {
	root := cgroupRoot(t)
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		o    Options
		step string
	}{
		{"no root", Options{}, "open cgroup"},
		{"absent root", Options{CgroupRoot: dir + "/absent"}, "make cgroup"},
		{"not a directory", Options{CgroupRoot: root, Parent: "cgroup.procs"}, "open cgroup"},
	} {
		_, err := Open(tt.o)
		var x *Error
		if !errors.As(err, &x) || x.Step != tt.step {
			t.Errorf("%s: error %v, want step %q", tt.name, err, tt.step)
		}
	}
}

func TestOwnAddrs(t *testing.T) {
	got, err := OwnAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("%v lacks 127.0.0.1", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err = WatchOwn(ctx, func(a []netip.Addr) {
		calls++
		if !slices.Equal(a, got) {
			t.Errorf("watch says %v, want %v", a, got)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("watch ended with %v after %d calls", err, calls)
	}
}

// TestLevel holds the level that is computed against the programs' own search.
func TestLevel(t *testing.T) {
	j := newJail(t)
	if l := j.e.level(); l < 1 {
		t.Skipf("level %d: a cgroup namespace hides it", l)
	}
	c := j.cell("prisoner")
	c.put(&Policy{})
	r := c.ring(1 << 16)
	searchLevel = true
	defer func() { searchLevel = false }()
	markOld(t, j)
	j.open()
	if got := c.act(refusedDial)[0]; got != perm {
		t.Errorf("errno %d, want EPERM", got)
	}
	if ev := events(t, r); len(ev) != 1 || ev[0].Cgroup != c.id || ev[0].Rule != uint32(flat.RuleNetNone) {
		t.Errorf("events %+v", ev)
	}
}
