// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// TestUring has a prisoner, whom no seccomp filter stops, act by an io_uring:
// the hooks see it like the calls, from its own thread or a worker's.
func TestUring(t *testing.T) {
	any, open := &Policy{Mode: Any}, &Policy{Mode: Rules, DefaultAllow: true}
	tcp := call{Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "10.0.0.1", Port: 80}
	tcp6 := call{Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "fc00::1", Port: 80}
	udp := call{Family: unix.AF_INET, Type: unix.SOCK_DGRAM, IP: "10.0.0.1", Port: 9}
	udp6 := call{Family: unix.AF_INET6, Type: unix.SOCK_DGRAM, IP: "fc00::1", Port: 9}
	bound := call{Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "0.0.0.0", Port: 8080}
	bound6 := call{Family: unix.AF_INET6, Type: unix.SOCK_STREAM, IP: "::", Port: 8080}
	raw := call{Family: unix.AF_INET, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_ICMP}
	mptcp := call{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Proto: unix.IPPROTO_MPTCP}
	j := newJail(t)
	c := j.cell("prisoner")
	c.netns()
	c.put(any)
	c.addresses(&Env{})
	r := c.ring(1 << 16)
	for _, tt := range []struct {
		op   string
		c    call
		want int
		hook flat.Hook
		rule flat.Rule
	}{
		{"uring connect", tcp, perm, flat.HookConnect4, flat.RuleNotPublic},
		{"uring connect", tcp6, perm, flat.HookConnect6, flat.RuleNotPublic},
		{"uring connect", udp, perm, flat.HookConnect4, flat.RuleNotPublic},
		{"uring sendmsg", udp, perm, flat.HookSendmsg4, flat.RuleNotPublic},
		{"uring sendmsg", udp6, perm, flat.HookSendmsg6, flat.RuleNotPublic},
		{"uring send", udp, perm, flat.HookSendmsg4, flat.RuleNotPublic},
		{"uring bind", bound, perm, flat.HookBind4, flat.RuleBind},
		{"uring bind", bound6, perm, flat.HookBind6, flat.RuleBind},
		{"uring socket", raw, perm, flat.HookSockCreate, flat.RuleSocketType},
		{"uring socket", mptcp, int(unix.EPROTONOSUPPORT), flat.HookSockCreate, flat.RuleMptcp},
	} {
		for _, async := range []bool{false, true} {
			name := tt.op + " " + tt.c.IP
			if async {
				name += " by a worker"
			}
			t.Run(name, func(t *testing.T) {
				act := tt.c
				act.Op, act.Async = tt.op, async
				try := func(p *Policy) int {
					c.put(p)
					got := c.act(act)[0]
					switch {
					case got >= noOpcode:
						t.Skip("this kernel's io_uring lacks the operation")
					case got >= noRing:
						t.Skip("no io_uring on this host: ", unix.Errno(got-noRing))
					case got >= noSocket:
						t.Fatal("no socket: ", unix.Errno(got-noSocket))
					}
					return got
				}
				if got := try(any); got != tt.want {
					t.Errorf("errno %v, want %v", unix.Errno(got), unix.Errno(tt.want))
				}
				ev := events(t, r)
				if len(ev) != 1 {
					t.Fatalf("%d events, want 1", len(ev))
				}
				if e := ev[0]; e.Hook != tt.hook || e.Rule != uint32(tt.rule) || e.Cgroup != c.id || int(e.PID) != c.cmd.Process.Pid {
					t.Errorf("event %+v, want hook %d and rule %s", e, tt.hook, Reason(uint32(tt.rule)))
				}
				// The same act where nothing is refused: what stopped it was the policy.
				if got := try(open); got == perm || got == int(unix.EINVAL) || got == int(unix.EPROTONOSUPPORT) {
					t.Errorf("under an open policy: %v", unix.Errno(got))
				}
				if ev := events(t, r); len(ev) != 0 {
					t.Errorf("event %+v under an open policy", ev[0])
				}
			})
		}
	}
}

// TestSendmmsg sends two messages by one call: each is judged by itself.
func TestSendmmsg(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	if got := c.act(call{Op: "lo"})[0]; got != int(unix.EPERM) {
		// Without a policy the socket for it is refused.
		t.Fatalf("errno %v, want EPERM", unix.Errno(got))
	}
	c.netns()
	c.put(&Policy{Mode: Any})
	c.addresses(&Env{Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.53")}})
	if got := c.act(call{Op: "lo"})[0]; got != 0 {
		t.Fatalf("bring lo up: %v", unix.Errno(got))
	}
	r := c.ring(1 << 16)
	const good, bad = "127.0.0.53", "127.0.0.54"
	for _, tt := range []struct {
		family        int
		first, second string
		want, events  int
		hook          flat.Hook
	}{
		{unix.AF_INET, good, good, sent + 2, 0, 0},
		{unix.AF_INET, good, bad, sent + 1, 1, flat.HookSendmsg4},
		{unix.AF_INET, bad, good, perm, 1, flat.HookSendmsg4},
		{unix.AF_INET6, "::1", "::1", perm, 1, flat.HookSendmsg6},
		{unix.AF_INET6, "::ffff:" + good, "::ffff:" + bad, sent + 1, 1, flat.HookSendmsg4},
	} {
		got := c.act(call{Op: "sendmmsg", Family: tt.family, Type: unix.SOCK_DGRAM, IP: tt.first, Then: tt.second, Port: 53})[0]
		ev := events(t, r)
		if got != tt.want || len(ev) != tt.events {
			t.Errorf("%s, then %s: %d with %d events, want %d with %d", tt.first, tt.second, got, len(ev), tt.want, tt.events)
			continue
		}
		if len(ev) > 0 && (ev[0].Hook != tt.hook || ev[0].Rule != uint32(flat.RuleLoopback)) {
			t.Errorf("%s, then %s: event %+v", tt.first, tt.second, ev[0])
		}
	}
}

// TestFastOpenConnect connects a socket with TCP_FASTOPEN_CONNECT, whose SYN
// waits for the first write: it is judged at connect all the same.
func TestFastOpenConnect(t *testing.T) {
	j := newJail(t)
	c := j.cell("prisoner")
	r := c.ring(1 << 16)
	for _, tt := range []struct {
		family int
		ip     string
		hook   flat.Hook
	}{
		{unix.AF_INET, "192.0.2.1", flat.HookConnect4},
		{unix.AF_INET6, "2001:db8::1", flat.HookConnect6},
		{unix.AF_INET6, "::ffff:192.0.2.1", flat.HookConnect6},
	} {
		act := call{Op: "fastopen connect", Family: tt.family, Type: unix.SOCK_STREAM, IP: tt.ip, Port: 80}
		c.put(&Policy{})
		got := c.act(act)[0]
		if got >= noSocket {
			t.Skip("no TCP_FASTOPEN_CONNECT: ", unix.Errno(got-noSocket))
		}
		ev := events(t, r)
		if got != perm || len(ev) != 1 || ev[0].Hook != tt.hook || ev[0].Rule != uint32(flat.RuleNetNone) {
			t.Errorf("%s: errno %v, events %+v", tt.ip, unix.Errno(got), ev)
		}
		c.put(&Policy{Mode: Rules, DefaultAllow: true})
		if got := c.act(act)[0]; got == perm {
			t.Errorf("%s: refused under an open policy", tt.ip)
		}
	}
}

// TestOtherProtocols makes sockets of the protocols beside TCP and UDP. Most
// kernels lack some: absent is a result like refused, allowed is not.
func TestOtherProtocols(t *testing.T) {
	const (
		afSMC        = 43
		protoDCCP    = 33
		protoSCTP    = 132
		protoSMC     = 256
		typeDCCP     = 6
		typeSequence = unix.SOCK_SEQPACKET
	)
	j := newJail(t)
	c := j.cell("prisoner")
	r := c.ring(1 << 16)
	absent := func(e int) bool {
		return e == int(unix.EPROTONOSUPPORT) || e == int(unix.ESOCKTNOSUPPORT) || e == int(unix.EAFNOSUPPORT)
	}
	for _, tt := range []struct {
		name               string
		family, typ, proto int
	}{
		{"sctp stream", unix.AF_INET, unix.SOCK_STREAM, protoSCTP},
		{"sctp seqpacket", unix.AF_INET, typeSequence, protoSCTP},
		{"sctp6", unix.AF_INET6, typeSequence, protoSCTP},
		{"dccp", unix.AF_INET, typeDCCP, protoDCCP},
		{"dccp6", unix.AF_INET6, typeDCCP, protoDCCP},
		{"smc by protocol", unix.AF_INET, unix.SOCK_STREAM, protoSMC},
		{"smc6 by protocol", unix.AF_INET6, unix.SOCK_STREAM, protoSMC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			act := call{Op: "socket", Family: tt.family, Type: tt.typ, Proto: tt.proto}
			c.put(&Policy{Mode: Any})
			got := c.act(act)[0]
			ev := events(t, r)
			c.put(&Policy{Mode: Rules, DefaultAllow: true})
			control := c.act(act)[0]
			switch {
			case absent(got) && len(ev) == 0 && absent(control):
				t.Skip("absent in this kernel: ", unix.Errno(got))
			case got != perm || len(ev) != 1 || ev[0].Rule != uint32(flat.RuleSocketType) || int(ev[0].Proto) != tt.proto:
				t.Errorf("errno %v, events %+v", unix.Errno(got), ev)
			case control == perm:
				t.Error("refused under an open policy as well: the test shows nothing")
			}
		})
	}
	// A family of its own has no hook for its sockets: seccomp refuses them.
	// Its connection is TCP at first, which is judged.
	t.Run("smc by family", func(t *testing.T) {
		c.put(&Policy{Mode: None})
		act := call{Op: "socket", Family: afSMC, Type: unix.SOCK_STREAM}
		if got := c.act(act)[0]; absent(got) {
			t.Skip("absent in this kernel: ", unix.Errno(got))
		}
		act = call{Op: "connect smc", Family: unix.AF_INET, Type: unix.SOCK_STREAM, IP: "192.0.2.1", Port: 80}
		if got := c.act(act)[0]; got != perm {
			t.Errorf("connect: %v, want EPERM", unix.Errno(got))
		}
	})
}
