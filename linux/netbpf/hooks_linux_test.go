// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/common/addr"
)

const perm = int(unix.EPERM)

// TestHooks has a prisoner try each kind of act under each mode. passed means
// anything but a refusal: in its own network namespace nothing is reachable.
func TestHooks(t *testing.T) {
	const passed = -1
	tcp := func(family int, ip string, port int) call {
		return call{Op: "connect", Family: family, Type: unix.SOCK_STREAM, IP: ip, Port: port}
	}
	udp := func(family int, ip string, port int) call {
		return call{Op: "sendto", Family: family, Type: unix.SOCK_DGRAM, IP: ip, Port: port}
	}
	with := func(c call, f func(*call)) call { f(&c); return c }
	sock := func(family, typ, proto int) call { return call{Op: "socket", Family: family, Type: typ, Proto: proto} }
	bind := func(typ, port int) call {
		return call{Op: "bind", Family: unix.AF_INET, Type: typ, IP: "0.0.0.0", Port: port}
	}
	unixTo := func(op string, typ int, path string) call {
		return call{Op: op, Family: unix.AF_UNIX, Type: typ, Path: []byte(path)}
	}
	none := &Policy{Broker: "/tmp/thole-test-broker"}
	list := &Policy{Mode: Allowlist, ProxyPort: 4443}
	any := &Policy{Mode: Any}
	open := &Policy{Mode: Rules, DefaultAllow: true}
	closed := &Policy{Mode: Rules}
	audit := &Policy{Audit: true}
	ruled := &Policy{Mode: Rules, DefaultAllow: true, Rules: []Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Deny: true}}}

	tests := []struct {
		name string
		p    *Policy
		c    call
		want int
		rule flat.Rule
	}{
		{"tcp4", none, tcp(unix.AF_INET, "192.0.2.1", 80), perm, flat.RuleNetNone},
		{"tcp6", none, tcp(unix.AF_INET6, "2001:db8::1", 80), perm, flat.RuleNetNone},
		{"tcp4 to 0.0.0.0", any, tcp(unix.AF_INET, "0.0.0.0", 80), perm, flat.RuleLoopback},
		{"tcp6 to ::", any, tcp(unix.AF_INET6, "::", 80), perm, flat.RuleLoopback},
		{"tcp6 mapped", any, tcp(unix.AF_INET6, "::ffff:10.0.0.1", 80), perm, flat.RuleNotPublic},
		{"tcp6 mapped 0.0.0.0", any, tcp(unix.AF_INET6, "::ffff:0.0.0.0", 80), perm, flat.RuleLoopback},
		{"tcp fast open", none, with(tcp(unix.AF_INET, "192.0.2.1", 80), func(c *call) { c.Op = "fastopen" }), perm, flat.RuleNetNone},
		{"tcp6 fast open", none, with(tcp(unix.AF_INET6, "2001:db8::1", 80), func(c *call) { c.Op = "fastopen" }), perm, flat.RuleNetNone},
		{"udp4", none, udp(unix.AF_INET, "192.0.2.1", 53), perm, flat.RuleNetNone},
		{"udp4 unspec", any, with(udp(unix.AF_INET, "10.0.0.1", 53), func(c *call) { c.Unspec = true }), perm, flat.RuleNotPublic},
		{"udp6", none, udp(unix.AF_INET6, "2001:db8::1", 53), perm, flat.RuleNetNone},
		{"udp6 mapped", any, udp(unix.AF_INET6, "::ffff:10.0.0.1", 53), perm, flat.RuleNotPublic},
		{"udp connect", none, with(udp(unix.AF_INET, "192.0.2.1", 53), func(c *call) { c.Op = "connect" }), perm, flat.RuleNetNone},
		{"udp under a proxy", list, udp(unix.AF_INET, "127.0.0.1", 4443), perm, flat.RuleNotProxy},
		{"proxy", list, tcp(unix.AF_INET, "127.0.0.1", 4443), passed, 0},
		{"proxy mapped", list, tcp(unix.AF_INET6, "::ffff:127.0.0.1", 4443), passed, 0},
		{"proxy on ::1", list, tcp(unix.AF_INET6, "::1", 4443), perm, flat.RuleNotProxy},
		{"other port", list, tcp(unix.AF_INET, "127.0.0.1", 4444), perm, flat.RuleNotProxy},
		{"other loopback", list, tcp(unix.AF_INET, "127.0.0.2", 4443), perm, flat.RuleNotProxy},
		{"public", any, tcp(unix.AF_INET, "1.1.1.1", 443), passed, 0},
		{"public6", any, tcp(unix.AF_INET6, "2606:4700::1", 443), passed, 0},
		{"nat64 of private", any, tcp(unix.AF_INET6, "64:ff9b::10.0.0.1", 443), perm, flat.RuleNotPublic},
		{"nat64 of public", any, tcp(unix.AF_INET6, "64:ff9b::1.1.1.1", 443), passed, 0},
		{"6to4 of loopback", any, tcp(unix.AF_INET6, "2002:7f00:1::", 443), perm, flat.RuleLoopback},
		{"link-local", any, tcp(unix.AF_INET, "169.254.169.254", 80), perm, flat.RuleLinkLocal},
		{"own address", any, tcp(unix.AF_INET, "198.41.0.4", 80), perm, flat.RuleOwnAddress},
		{"nat64 of own", any, tcp(unix.AF_INET6, "64:ff9b::198.41.0.4", 80), perm, flat.RuleOwnAddress},
		{"resolver", any, udp(unix.AF_INET, "10.0.0.53", 53), passed, 0},
		{"resolver by tcp", any, tcp(unix.AF_INET, "10.0.0.53", 53), passed, 0},
		{"resolver's other port", any, udp(unix.AF_INET, "10.0.0.53", 54), perm, flat.RuleNotPublic},
		{"resolver under none", none, udp(unix.AF_INET, "10.0.0.53", 53), perm, flat.RuleNetNone},
		{"stub resolver", any, udp(unix.AF_INET, "127.0.0.53", 53), passed, 0},
		{"multicast", any, udp(unix.AF_INET, "224.0.0.251", 5353), perm, flat.RuleNotPublic},
		{"broadcast", any, udp(unix.AF_INET, "255.255.255.255", 67), perm, flat.RuleNotPublic},

		{"tcp socket", none, sock(unix.AF_INET, unix.SOCK_STREAM, 0), passed, 0},
		{"udp socket", none, sock(unix.AF_INET6, unix.SOCK_DGRAM, 0), passed, 0},
		{"raw", any, sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), perm, flat.RuleSocketType},
		{"raw6", any, sock(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6), perm, flat.RuleSocketType},
		{"raw tcp", any, sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP), perm, flat.RuleSocketType},
		{"udplite", any, sock(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), perm, flat.RuleSocketType},
		{"udplite, open", open, sock(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), passed, 0},
		{"raw, open", open, sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), passed, 0},
		{"raw, closed", closed, sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), perm, flat.RuleSocketType},
		{"mptcp", any, sock(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), int(unix.EPROTONOSUPPORT), flat.RuleMptcp},
		{"ping", any, sock(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), perm, flat.RuleSocketType},
		{"ping6", any, sock(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6), perm, flat.RuleSocketType},
		{"ping connect, rule", ruled, with(tcp(unix.AF_INET, "10.0.0.1", 1), func(c *call) { c.Type, c.Proto = unix.SOCK_DGRAM, unix.IPPROTO_ICMP }), perm, flat.RuleOperator},
		{"mptcp connect, rule", ruled, with(tcp(unix.AF_INET, "10.0.0.1", 1), func(c *call) { c.Proto = unix.IPPROTO_MPTCP }), perm, flat.RuleOperator},
		{"mptcp fast open, rule", ruled, with(tcp(unix.AF_INET, "10.0.0.1", 1), func(c *call) { c.Op, c.Proto = "fastopen", unix.IPPROTO_MPTCP }), perm, flat.RuleOperator},
		{"udplite, rule", ruled, with(udp(unix.AF_INET, "10.0.0.1", 1), func(c *call) { c.Proto = unix.IPPROTO_UDPLITE }), perm, flat.RuleOperator},
		{"mptcp, open", open, sock(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), passed, 0},

		{"bind tcp port", any, bind(unix.SOCK_STREAM, 8080), perm, flat.RuleBind},
		{"bind tcp 0", none, bind(unix.SOCK_STREAM, 0), passed, 0},
		{"bind udp 0", any, bind(unix.SOCK_DGRAM, 0), passed, 0},
		{"bind udp 0, none", none, bind(unix.SOCK_DGRAM, 0), perm, flat.RuleBindUdp},
		{"bind udp port", any, bind(unix.SOCK_DGRAM, 5353), perm, flat.RuleBind},
		{"bind6", any, call{Op: "bind", Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "::", Port: 8080}, perm, flat.RuleBind},
		{"bind, closed", closed, bind(unix.SOCK_STREAM, 8080), passed, 0},

		{"loopback, open", open, tcp(unix.AF_INET, "127.0.0.1", 1), passed, 0},
		{"default deny", closed, tcp(unix.AF_INET, "1.1.1.1", 1), perm, flat.RuleDefault},
		{"audit", audit, tcp(unix.AF_INET, "1.1.1.1", 1), passed, flat.RuleNetNone},
		{"audit mptcp", audit, sock(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), passed, flat.RuleMptcp},

		{"broker", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/thole-test-broker"), passed, 0},
		{"broker and NUL", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/thole-test-broker\x00"), passed, 0},
		{"broker, NUL and more", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/thole-test-broker\x00x"), passed, 0},
		{"broker datagram", none, unixTo("unixsend", unix.SOCK_DGRAM, "/tmp/thole-test-broker"), passed, 0},
		{"broker prefix", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/thole-test-broke"), perm, flat.RuleUnix},
		{"broker and more", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/thole-test-broker2"), perm, flat.RuleUnix},
		{"broker by dots", none, unixTo("unix", unix.SOCK_STREAM, "/tmp/./thole-test-broker"), perm, flat.RuleUnix},
		{"relative", none, unixTo("unix", unix.SOCK_STREAM, "thole-test-broker"), perm, flat.RuleUnix},
		{"seqpacket", none, unixTo("unix", unix.SOCK_SEQPACKET, "/run/x"), perm, flat.RuleUnix},
		{"datagram connect", none, unixTo("unix", unix.SOCK_DGRAM, "/dev/log"), perm, flat.RuleUnix},
		{"datagram", none, unixTo("unixsend", unix.SOCK_DGRAM, "/dev/log"), perm, flat.RuleUnix},
		{"abstract", none, unixTo("unix", unix.SOCK_STREAM, "\x00/tmp/thole-test-broker"), perm, flat.RuleUnix},
		{"longest path", none, unixTo("unix", unix.SOCK_STREAM, string(make108())), perm, flat.RuleUnix},
		{"no broker", any, unixTo("unix", unix.SOCK_STREAM, "/run/x"), perm, flat.RuleUnix},
		{"unix, open", open, unixTo("unix", unix.SOCK_STREAM, "/run/no such"), passed, 0},
		{"unix, closed", closed, unixTo("unix", unix.SOCK_STREAM, "/run/no such"), passed, 0},
	}

	j := newJail(t)
	c := j.cell("prisoner")
	c.addresses(&Env{Own: []netip.Addr{netip.MustParseAddr("198.41.0.4")}, Resolvers: []netip.Addr{netip.MustParseAddr("10.0.0.53"), netip.MustParseAddr("127.0.0.53")}})
	r := c.ring(1 << 16)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.c.Family == unix.AF_UNIX && !j.e.Features().Unix {
				t.Skip("this kernel has no hook for unix sockets")
			}
			c.put(tt.p)
			got := c.act(tt.c)[0]
			if why := gone(tt.c, got); why != "" {
				t.Skip(why)
			}
			if got >= 10000 {
				t.Fatalf("no socket: %v", unix.Errno(got-10000))
			}
			refused := got == perm || got == int(unix.EPROTONOSUPPORT)
			if tt.want == passed && refused || tt.want != passed && got != tt.want {
				t.Errorf("errno %v, want %d", unix.Errno(got), tt.want)
			}
			ev := events(t, r)
			if tt.rule == 0 {
				if len(ev) != 0 {
					t.Errorf("event %+v for an act that is allowed", ev[0])
				}
				return
			}
			if len(ev) != 1 {
				t.Fatalf("%d events, want 1", len(ev))
			}
			want := flat.Deny
			if tt.p.Audit {
				want = flat.WouldDeny
			}
			e := ev[0]
			if e.Rule != uint32(tt.rule) || e.Verdict != want || e.Cgroup != c.id || int(e.PID) != c.cmd.Process.Pid || int(e.Family) != tt.c.Family && !mapped(tt.c.IP) {
				t.Errorf("event %+v, want rule %d (%s)", e, tt.rule, Reason(uint32(tt.rule)))
			}
			if tt.want != passed && int(e.Errno) != tt.want {
				t.Errorf("event says errno %d, want %d", e.Errno, tt.want)
			}
		})
	}
}

// gone says what of an act this kernel does not have, "" where it does: then
// no hook of ours was asked.
func gone(c call, got int) string {
	switch {
	case c.Proto == unix.IPPROTO_UDPLITE && got%10000 == int(unix.EPROTONOSUPPORT):
		return "this kernel has no UDP-Lite (Linux 7.1 and later)"
	case c.Proto == unix.IPPROTO_MPTCP && c.Op == "fastopen" && got == int(unix.EOPNOTSUPP):
		return "this kernel has no Fast Open for MPTCP (before Linux 6.2)"
	}
	return ""
}

func mapped(ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && a.Is4In6()
}

func make108() []byte {
	b := make([]byte, 108)
	for i := range b {
		b[i] = 'x'
	}
	b[0] = '/'
	return b
}

// TestWhose checks whose policy a caller gets: none at all outside the parent,
// a refusal inside it without a policy, and the sandbox's own below it.
func TestWhose(t *testing.T) {
	j := newJail(t)
	dial := call{Op: "connect", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "127.0.0.1", Port: 1}
	c := j.cell("prisoner")
	if got := c.act(dial)[0]; got != 10000+perm {
		t.Errorf("without a policy: errno %d, want EPERM for the socket", got)
	}
	s, err := j.e.Stats(c.id)
	if err != nil || s.Denied != 1 || s.Lost != 1 {
		t.Errorf("stats %+v, %v: want one refusal and one event lost for want of a ring", s, err)
	}
	c.put(&Policy{Mode: Rules, DefaultAllow: true})
	if got := c.act(dial)[0]; got == perm || got >= 10000 {
		t.Errorf("with an open policy: errno %d", got)
	}
	// Below its own cgroup a sandbox stays what it is.
	sub := c.dir + "/sub"
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(sub)
	c.put(&Policy{})
	moveTo(t, c.cmd.Process.Pid, sub)
	if got := c.act(dial)[0]; got != perm {
		t.Errorf("in a cgroup of its own: errno %d, want EPERM", got)
	}
	// A socket made in a sandbox and used by a process outside of it.
	moveTo(t, c.cmd.Process.Pid, j.root)
	if got := c.act(dial)[0]; got == perm || got >= 10000 {
		t.Errorf("outside: errno %d", got)
	}
	moveTo(t, c.cmd.Process.Pid, j.e.ParentPath())
	if got := c.act(dial)[0]; got != 10000+perm {
		t.Errorf("in the parent itself: errno %d, want EPERM", got)
	}
	moveTo(t, c.cmd.Process.Pid, j.root)
	if _, err := j.e.Sweep(func(uint64) bool { return false }); err != nil {
		t.Error(err)
	}
}

func moveTo(t testing.TB, pid int, dir string) {
	t.Helper()
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}

// TestEventFields compares every field of one event of each shape.
func TestEventFields(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	r := c.ring(1 << 16)
	c.put(&Policy{Rules: []Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Deny: true}}})
	c.act(
		call{Op: "connect", Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "::ffff:10.1.2.3", Port: 443},
		call{Op: "unix", Family: unix.AF_UNIX, Type: unix.SOCK_STREAM, Path: []byte("\x00a\x00b")},
		call{Op: "unixsend", Family: unix.AF_UNIX, Type: unix.SOCK_DGRAM, Path: []byte("/dev/log")},
	)
	got := events(t, r)
	want := 3
	if !j.e.Features().Unix {
		want = 1
	}
	if len(got) != want {
		t.Fatalf("%d events, want %d", len(got), want)
	}
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	now := uint64(ts.Nano())
	for i := range got {
		e := &got[i]
		if e.Time > now || now-e.Time > 60e9 {
			t.Errorf("event %d is of %d, now is %d", i, e.Time, now)
		}
		if comm, _ := os.ReadFile("/proc/" + itoa(c.cmd.Process.Pid) + "/comm"); e.Comm()+"\n" != string(comm) {
			t.Errorf("comm %q, want %q", e.Comm(), comm)
		}
		if int(e.PID) != c.cmd.Process.Pid || e.TID != e.PID || e.UID != 0 || e.Cgroup != c.id || e.Verdict != flat.Deny || e.Errno != 1 {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	e := &got[0]
	if e.Hook != flat.HookConnect6 || e.Addr != netip.MustParseAddr("10.1.2.3") || e.Port != 443 || e.Proto != 6 || e.Type != 1 ||
		e.Family != unix.AF_INET6 || e.Rule != uint32(flat.RuleOperator) || addr.Class(e.Class) != addr.Private || e.Capability() != "net.connect" {
		t.Errorf("connect: %+v", e)
	}
	if want == 1 {
		return // no hook for unix sockets
	}
	if e = &got[1]; e.Hook != flat.HookConnectUnix || e.Path() != "@a\x00b" || e.Rule != uint32(flat.RuleUnix) {
		t.Errorf("abstract: %+v %q", e, e.Path())
	}
	if e = &got[2]; e.Hook != flat.HookSendmsgUnix || e.Path() != "/dev/log" || e.Type != unix.SOCK_DGRAM {
		t.Errorf("datagram: %+v %q", e, e.Path())
	}
}
