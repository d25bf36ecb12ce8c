// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// attach attaches the programs to the cell's cgroup.
func (c *cell) attach() {
	c.j.t.Helper()
	if err := c.j.e.AttachTo(int(c.fd.Fd())); err != nil {
		var x *Error
		if errors.As(err, &x) && x.Log != "" {
			c.j.t.Log(x.Log[max(0, len(x.Log)-4000):])
		}
		c.j.t.Fatal(err)
	}
}

// everyHook is one act for each hook, all refused without a network.
func everyHook(unixToo bool) []call {
	acts := []call{
		{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "127.0.0.1", Port: 9},
		{Op: "connect", Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "::1", Port: 9},
		{Op: "sendto", Family: unix.AF_INET, Type: unix.SOCK_DGRAM, IP: "127.0.0.1", Port: 9},
		{Op: "sendto", Family: unix.AF_INET6, Type: unix.SOCK_DGRAM, IP: "::1", Port: 9},
		{Op: "bind", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "127.0.0.1", Port: 8080},
		{Op: "bind", Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "::1", Port: 8080},
		{Op: "socket", Family: unix.AF_INET, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_ICMP},
	}
	if unixToo {
		acts = append(acts,
			call{Op: "unix", Family: unix.AF_UNIX, Type: unix.SOCK_STREAM, Path: []byte("/no such")},
			call{Op: "unixsend", Family: unix.AF_UNIX, Type: unix.SOCK_DGRAM, Path: []byte("/no such")})
	}
	return acts
}

// TestAttachTo judges a cgroup that the test made beside the parent, and what
// is below it, and nothing else.
func TestAttachTo(t *testing.T) {
	j := newJail(t)
	acts := everyHook(j.e.Features().Unix)
	given := j.outside("given", "prisoner")
	sub := j.cellAt(filepath.Join(given.dir, "sub"), "prisoner")
	beside := j.outside("beside", "prisoner")
	all := func(when string, c *cell, refused bool) {
		t.Helper()
		for i, e := range c.act(acts...) {
			if (e == perm) != refused {
				t.Errorf("%s: %s %s: %v", when, acts[i].Op, acts[i].IP, unix.Errno(e))
			}
		}
	}
	given.put(&Policy{})
	r := given.ring(1 << 16)
	all("before", given, false)
	given.attach()
	for _, c := range []*cell{given, sub} {
		all("attached", c, true)
		ev := events(t, r)
		if len(ev) != len(acts) {
			t.Fatalf("%d events of %d acts", len(ev), len(acts))
		}
		for i := range ev {
			if int(ev[i].Hook) != i+1 || ev[i].Cgroup != given.id || int(ev[i].PID) != c.cmd.Process.Pid {
				t.Errorf("event %+v, want hook %d", ev[i], i+1)
			}
		}
	}
	all("a bystander", beside, false)
	if s, err := j.e.Stats(beside.id); err != nil || s != (Stats{}) {
		t.Errorf("a bystander's stats %+v, %v", s, err)
	}
	if s, err := j.e.Stats(given.id); err != nil || s.Denied != uint64(2*len(acts)) || s.Lost != 0 {
		t.Errorf("stats %+v, %v", s, err)
	}

	// The deepest policy decides.
	sub.put(&Policy{Mode: Rules, DefaultAllow: true})
	all("with a policy of its own", sub, false)
	all("above it", given, true)
	if err := j.e.Remove(sub.id); err != nil {
		t.Fatal(err)
	}
	all("without it", sub, true)

	// Attached beside the parent's programs, which judge their own.
	inside := j.cell("prisoner")
	inside.put(&Policy{})
	if got := inside.act(refusedDial)[0]; got != perm {
		t.Errorf("in the parent: %v", unix.Errno(got))
	}

	// Without a policy the cgroup is not ours.
	if err := j.e.Remove(given.id); err != nil {
		t.Fatal(err)
	}
	all("without a policy", given, false)
	if err := j.e.VerifyAt(int(given.fd.Fd()), given.id); err == nil {
		t.Error("verified without a policy")
	}
}

// TestAttachToAddresses gives an attached cgroup mode any in a network
// namespace of its own.
func TestAttachToAddresses(t *testing.T) {
	j := newJail(t)
	c := j.outside("given", "prisoner")
	c.netns()
	c.put(&Policy{Mode: Any})
	c.addresses(&Env{Own: []netip.Addr{netip.MustParseAddr("9.9.9.1")}})
	c.attach()
	got := c.act(publicTCP("9.9.9.1"), publicTCP("9.9.9.2"), publicTCP("10.0.0.1"))
	if got[0] != perm || got[1] == perm || got[2] != perm {
		t.Errorf("errno %v", got)
	}
}

// TestAttachAgain: a second time changes nothing, and programs of others stay.
func TestAttachAgain(t *testing.T) {
	j := newJail(t)
	c := j.outside("given", "")
	c.put(&Policy{})
	// Somebody else's: the parent's program is as good as any.
	other, err := pinnedParentProgram(j)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	connect4 := hooks[flat.HookConnect4].attach
	if err := progAttach(other, int(c.fd.Fd()), connect4, allowMulti); err != nil {
		t.Fatal(err)
	}
	c.attach()
	state := func() (ids [16][]uint32) {
		for hook := range hooks {
			if hooks[hook].program != "" {
				ids[hook] = attached(int(c.fd.Fd()), hooks[hook].attach)
			}
		}
		return ids
	}
	before := state()
	second, err := Open(j.options())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.AttachTo(int(c.fd.Fd())); err != nil {
		t.Fatal(err)
	}
	for hook, ids := range state() {
		want := 1
		if hook == int(flat.HookConnect4) {
			want = 2
		}
		if hooks[min(hook, len(hooks)-1)].program == "" || hook >= len(hooks) || isUnix(hook) && !j.e.Features().Unix {
			continue
		}
		if len(ids) != want || ids[0] != before[hook][0] || ids[want-1] != before[hook][want-1] {
			t.Errorf("hook %d: programs %v, before %v", hook, ids, before[hook])
		}
	}
	if err := j.e.VerifyAt(int(c.fd.Fd()), c.id); err != nil {
		t.Error(err)
	}
}

func pinnedParentProgram(j *jail) (int, error) {
	var m flat.Meta
	var zero uint32
	fd, err := j.e.fd("meta")
	if err == nil {
		err = mapLookup(fd, &zero, &m)
	}
	if err != nil {
		return -1, err
	}
	attr := struct{ id, next, flags uint32 }{m.Progs[flat.HookConnect4], 0, 0}
	return bpf(unix.BPF_PROG_GET_FD_BY_ID, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// progDetach takes a program off a cgroup (BPF_PROG_DETACH).
func progDetach(prog, cgroup int, attach uint32) error {
	attr := struct{ target, prog, attach, flags uint32 }{uint32(cgroup), uint32(prog), attach, 0}
	_, err := bpf(unix.BPF_PROG_DETACH, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// TestVerifyAt takes each program away in turn.
func TestVerifyAt(t *testing.T) {
	j := newJail(t)
	c := j.outside("given", "")
	cg := int(c.fd.Fd())
	c.put(&Policy{})
	if err := j.e.VerifyAt(cg, c.id); err == nil {
		t.Error("verified before anything was attached")
	}
	c.attach()
	if err := j.e.VerifyAt(cg, c.id); err != nil {
		t.Error(err)
	}
	for hook := range hooks {
		if hooks[hook].program == "" || isUnix(hook) && !j.e.Features().Unix {
			continue
		}
		fd, err := objGet(j.e.foreignPins() + "/" + hooks[hook].program)
		if err != nil {
			t.Fatal(err)
		}
		err = progDetach(fd, cg, hooks[hook].attach)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.e.VerifyAt(cg, c.id); !errors.Is(err, ErrNotAttached) {
			t.Errorf("without %s: %v", hooks[hook].program, err)
		}
		c.attach()
		if err := j.e.VerifyAt(cg, c.id); err != nil {
			t.Errorf("with %s again: %v", hooks[hook].program, err)
		}
	}
	// Another cgroup is not verified by what is attached here.
	beside := j.outside("beside", "")
	beside.put(&Policy{})
	if err := j.e.VerifyAt(int(beside.fd.Fd()), beside.id); !errors.Is(err, ErrNotAttached) {
		t.Errorf("a cgroup without programs: %v", err)
	}
}

// alive tells Sweep which cgroups exist, as the launcher does.
func (j *jail) alive(id uint64) bool {
	fd, err := j.e.openCgroup(id)
	if err == nil {
		unix.Close(fd)
	}
	return err != unix.ESTALE
}

// TestForeignGone removes a cgroup, which nobody is told of, and sweeps.
func TestForeignGone(t *testing.T) {
	j := newJail(t)
	gone, stays := j.outside("gone", "prisoner"), j.outside("stays", "")
	for _, c := range []*cell{gone, stays} {
		c.put(&Policy{Rules: []Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}})
		c.ring(1 << 16)
		c.attach()
	}
	gone.act(refusedDial)
	if n, err := j.e.Sweep(j.alive); n != 0 || err != nil {
		t.Errorf("swept %d, %v while both exist", n, err)
	}
	gone.end()
	if err := os.Remove(gone.dir); err != nil {
		t.Fatal(err)
	}
	if n, err := j.e.Sweep(j.alive); n != 1 || err != nil {
		t.Errorf("swept %d, %v, want the one that is gone", n, err)
	}
	for _, name := range []string{"policies", "slots", "stats"} {
		fd, err := j.e.fd(name)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := mapKeys[uint64](fd); err != nil || len(k) != 1 || k[0] != stays.id {
			t.Errorf("%s holds %v, %v", name, k, err)
		}
	}
	for _, k := range j.keys("rules") {
		if k.Cgroup != stays.id {
			t.Errorf("rule %+v is left", k)
		}
	}
}

// TestOtherBuilds: the programs of another build stay pinned while a cgroup
// runs them, and are removed after that.
func TestOtherBuilds(t *testing.T) {
	j := newJail(t)
	old, now := j.outside("old", "prisoner"), j.outside("now", "")
	old.put(&Policy{})
	old.attach()
	// What another build would have called it.
	theirs := filepath.Join(j.e.Pins(), foreignPrefix+"0011223344556677")
	if err := os.Rename(j.e.foreignPins(), theirs); err != nil {
		t.Fatal(err)
	}
	now.put(&Policy{})
	now.attach()
	pinned := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	sweep := func() {
		t.Helper()
		if _, err := j.e.Sweep(j.alive); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if !pinned(theirs) || !pinned(j.e.foreignPins()) {
		t.Fatal("removed what a cgroup runs")
	}
	// This build's come beside the other's, and the same policy is judged.
	old.attach()
	if got := old.act(refusedDial)[0]; got != perm {
		t.Errorf("under two builds: %v", unix.Errno(got))
	}
	if err := j.e.VerifyAt(int(old.fd.Fd()), old.id); err != nil {
		t.Error(err)
	}
	old.end()
	if err := os.Remove(old.dir); err != nil {
		t.Fatal(err)
	}
	sweep()
	if pinned(theirs) {
		t.Error("the other build's programs are still pinned")
	}
	if !pinned(j.e.foreignPins()) {
		t.Error("this build's programs are gone")
	}
	if err := j.e.VerifyAt(int(now.fd.Fd()), now.id); err != nil {
		t.Error(err)
	}
}

// TestForeignRepair: programs that look into a map that is no longer pinned
// are not used again: they would know no policy and let everything pass.
func TestForeignRepair(t *testing.T) {
	j := newJail(t)
	first := j.outside("first", "")
	first.put(&Policy{})
	first.attach()
	markOld(t, j)
	if err := os.Remove(filepath.Join(j.e.Pins(), "policies")); err != nil {
		t.Fatal(err)
	}
	j.open()
	c := j.outside("second", "prisoner")
	c.put(&Policy{})
	c.attach()
	if got := c.act(refusedDial)[0]; got != perm {
		t.Errorf("errno %v, want EPERM", unix.Errno(got))
	}
	if err := j.e.VerifyAt(int(c.fd.Fd()), c.id); err != nil {
		t.Error(err)
	}
}
