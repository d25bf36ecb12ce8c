// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		ap    string
		proto int
		want  string
	}{
		{"192.0.2.1:443", 6, "192.0.2.1:443/tcp"},
		{"[2001:db8::1]:53", 17, "[2001:db8::1]:53/udp"},
		{"[::ffff:10.0.0.1]:80", 6, "10.0.0.1:80/tcp"},
		{"[fe80::1%eth0]:1", 132, "[fe80::1%eth0]:1/sctp"},
		{"0.0.0.0:0", 262, "0.0.0.0:0/mptcp"},
		{"0.0.0.0:0", 99, "0.0.0.0:0/99"},
	} {
		got := Target(netip.MustParseAddrPort(c.ap), c.proto)
		if got != c.want {
			t.Errorf("Target(%s, %d) = %s, want %s", c.ap, c.proto, got, c.want)
		}
		ap, proto, ok := ParseTarget(got)
		if !ok || proto != c.proto || Target(ap, proto) != got {
			t.Errorf("ParseTarget(%s) = %v, %d, %v", got, ap, proto, ok)
		}
	}
	for _, s := range []string{"", "/", "/etc/passwd", "192.0.2.1/tcp", "192.0.2.1:80", "192.0.2.1:80/", "192.0.2.1:80/TCP", "192.0.2.1:80/6", "192.0.2.1:080/tcp", "[192.0.2.1]:80/tcp", "example.org:443/tcp", "192.0.2.1:80/-1", "[::ffff:10.0.0.1]:80/tcp"} {
		if ap, proto, ok := ParseTarget(s); ok {
			t.Errorf("ParseTarget(%q) = %v, %d", s, ap, proto)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("192.0.2.1:443/tcp")
	f.Add("[2001:db8::1]:53/udp")
	f.Fuzz(func(t *testing.T, s string) {
		if ap, proto, ok := ParseTarget(s); ok && Target(ap, proto) != s {
			t.Fatalf("%q reads as %v, %d", s, ap, proto)
		}
	})
}

func TestUnixTarget(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "@"},
		{"/run/x.sock", "/run/x.sock"},
		{"/run/x.sock\x00\x00junk", "/run/x.sock"},
		{"\x00bus", "@bus"},
		{"\x00bus\x00", "@bus@"},
		{"@bus", "./@bus"},
		{"rel", "rel"},
	} {
		if got := UnixTarget([]byte(c.path)); got != c.want {
			t.Errorf("UnixTarget(%q) = %q, want %q", c.path, got, c.want)
		}
	}
}

func TestLinuxErrno(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "EPERM", 13: "EACCES", 93: "EPROTONOSUPPORT", 250: "errno 250"} {
		if got := LinuxErrno(n); got != want {
			t.Errorf("LinuxErrno(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	if got := s.AppendText(nil, 0); len(got) != 0 {
		t.Errorf("an empty summary says %q", got)
	}
	for _, e := range samples() {
		s.Add(&e)
	}
	e := Event{Time: at, Type: Denied, Capability: FSRead, Target: "/tmp/\x1b[2J", Enforcer: Landlock}
	s.Add(&e)
	e = Event{Time: at, Type: Denied, Capability: FSRead, Target: "/etc/shadow", Rule: "base system", Enforcer: Landlock}
	s.Add(&e)
	s.Add(&e)
	s.AddLost(3)
	want := `denied 3 net.connect 192.0.2.1:443/tcp (policy.toml:3:7: deny 192.0.2.0/24)
denied 2 fs.read /etc/shadow (base system)
denied 1 fs.read "/tmp/\x1b[2J"
would_deny 1 unix.connect @bus
15 more whose records were lost
`
	if got := string(s.AppendText(nil, 0)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = `denied 3 net.connect 192.0.2.1:443/tcp (policy.toml:3:7: deny 192.0.2.0/24)
4 more not shown
15 more whose records were lost
`
	if got := string(s.AppendText(nil, 1)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s.Count(Denied) != 6 || s.Count(WouldDeny) != 1 || s.Lost() != 15 {
		t.Errorf("denied %d, would_deny %d, lost %d", s.Count(Denied), s.Count(WouldDeny), s.Lost())
	}
}

// TestSummaryBounded: a scan of many targets does not grow the summary, and no
// refusal goes missing from the sum.
func TestSummaryBounded(t *testing.T) {
	var s Summary
	const n = maxGroups + 500
	for i := range n {
		s.Add(&Event{Type: Denied, Capability: NetConnect, Target: fmt.Sprint(i), Rule: "net none"})
	}
	groups := s.Groups()
	if len(groups) != maxGroups+1 || s.Count(Denied) != n || groups[0].Count != 500 {
		t.Errorf("%d groups, %d refusals, first %+v", len(groups), s.Count(Denied), groups[0])
	}
	if got := string(s.AppendText(nil, 1)); !strings.HasPrefix(got, "denied 500 net.connect (other targets)\n") {
		t.Errorf("got %q", got)
	}
}
