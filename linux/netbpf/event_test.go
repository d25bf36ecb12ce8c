// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tholehq/thole/bpf/flat"
)

func record(n int) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint16(b, uint16(flat.Abi))
	b[2], b[3] = byte(flat.HookConnectUnix), byte(flat.Deny)
	return b
}

func TestDecodeEvent(t *testing.T) {
	long := record(flat.EventUnixSize)
	binary.LittleEndian.PutUint16(long[46:], 109)
	other := record(flat.EventSize)
	other[0]++
	cut := record(flat.EventSize)
	cut[46] = 1
	verdict := record(flat.EventSize)
	verdict[3] = byte(flat.Allow)
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"whole", record(flat.EventSize), nil},
		{"empty", nil, ErrEventShort},
		{"short", record(flat.EventSize)[:flat.EventSize-1], ErrEventShort},
		{"abi", other, ErrEventABI},
		{"path missing", cut, ErrEventShort},
		{"path too long", long, ErrEventField},
		{"verdict", verdict, ErrEventField},
	} {
		if _, err := DecodeEvent(tt.b); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	b := record(flat.EventUnixSize)
	if n := testing.AllocsPerRun(100, func() { DecodeEvent(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLayout holds DecodeEvent's offsets against the generated struct.
func TestLayout(t *testing.T) {
	b := make([]byte, flat.EventUnixSize)
	u := (*flat.EventUnix)(unsafe.Pointer(&b[0]))
	u.E = flat.Event{Abi: uint16(flat.Abi), Hook: 2, Verdict: 2, Family: 10, Type: 1, Proto: 262, Port: 443, Err: 93, Rule: 1002,
		Time: 1 << 40, Cgroup: 1 << 41, Pid: 7, Tid: 8, Uid: 9, Class: 6, PathLen: 2, Addr: [16]uint8{0xfe, 0x80, 15: 1}, Comm: [16]int8{'c'}}
	u.Path[0], u.Path[1] = '/', 'x'
	e, err := DecodeEvent(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Event{Hook: flat.HookConnect6, Verdict: flat.Deny, Family: 10, Type: 1, Proto: 262, Port: 443, Errno: 93, Rule: 1002,
		Time: 1 << 40, Cgroup: 1 << 41, PID: 7, TID: 8, UID: 9, Class: 6, Addr: netip.MustParseAddr("fe80::1"), comm: [16]byte{'c'}, plen: 2}
	want.path[0], want.path[1] = '/', 'x'
	if e != want {
		t.Errorf("got  %+v\nwant %+v", e, want)
	}
	for _, s := range []struct {
		name      string
		got, want uintptr
	}{
		{"Policy", unsafe.Sizeof(flat.Policy{}), flat.PolicySize}, {"RuleKey", unsafe.Sizeof(flat.RuleKey{}), flat.RuleKeySize},
		{"Node", unsafe.Sizeof(flat.Node{}), flat.NodeSize}, {"AddrKey", unsafe.Sizeof(flat.AddrKey{}), flat.AddrKeySize},
		{"Stats", unsafe.Sizeof(flat.Stats{}), flat.StatsSize}, {"Knobs", unsafe.Sizeof(flat.Knobs{}), flat.KnobsSize},
		{"Meta", unsafe.Sizeof(flat.Meta{}), flat.MetaSize}, {"Special", unsafe.Sizeof(flat.Special{}), flat.SpecialSize},
	} {
		if s.got != s.want {
			t.Errorf("%s is %d bytes in Go, %d in C", s.name, s.got, s.want)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add(record(flat.EventSize))
	f.Add(record(flat.EventUnixSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEvent(b)
		if err == nil && (e.Capability() == "" || len(e.Comm()) > 16 || len(e.Path()) > 109 || Reason(e.Rule) == "") {
			t.Errorf("%+v", e)
		}
	})
}

func TestReason(t *testing.T) {
	seen := map[string]bool{}
	for id := flat.RuleNoPolicy; id <= flat.RuleUserns; id++ {
		s := Reason(uint32(id))
		if s == "" || seen[s] || strings.HasPrefix(s, "rule ") {
			t.Errorf("reason %d is %q", id, s)
		}
		seen[s] = true
	}
	if s := Reason(1003); s != "operator's rule 3" {
		t.Errorf("reason of an operator's rule is %q", s)
	}
}

func TestResolvers(t *testing.T) {
	for _, tt := range []struct {
		conf string
		want []string
	}{
		{"", []string{"127.0.0.1"}},
		{"nameserver 10.0.0.1\nnameserver ::1 # c\noptions x\nnameserver 10.0.0.1", []string{"10.0.0.1", "::1"}},
		{"nameserver fe80::1%eth0", []string{"fe80::1"}},
		{"nameserver ::ffff:1.2.3.4", []string{"1.2.3.4"}},
		{"nameserver\t9.9.9.9\r\n", []string{"9.9.9.9"}},
		{" nameserver 1.1.1.1\n#nameserver 1.1.1.1\n;nameserver 1.1.1.1\nnameserver x\nnameserver", []string{"127.0.0.1"}},
		{"nameserver 010.0.0.1\n", []string{"127.0.0.1"}},
	} {
		var got []string
		for _, a := range Resolvers([]byte(tt.conf)) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v, want %v", tt.conf, got, tt.want)
		}
	}
}

func FuzzResolvers(f *testing.F) {
	f.Add([]byte("nameserver 10.0.0.1\nsearch x\n"))
	f.Add([]byte("nameserver fe80::1%eth0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Resolvers(b)
		if len(got) == 0 || len(got) > maxResolvers {
			t.Errorf("%d resolvers", len(got))
		}
		for i, a := range got {
			if !a.IsValid() || a.Is4In6() || a.Zone() != "" || slices.Contains(got[:i], a) {
				t.Errorf("%v", got)
			}
		}
	})
}

func TestCgroupLevel(t *testing.T) {
	const hybrid = `25 20 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro
26 25 0:23 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw
27 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
`
	for _, tt := range []struct {
		info, path string
		want       int
	}{
		{hybrid, "/sys/fs/cgroup/unified/thole", 1},
		{hybrid, "/sys/fs/cgroup/unified/a/b/thole", 3},
		{hybrid, "/sys/fs/cgroup/unified", 0},
		{hybrid, "/sys/fs/cgroup/unified2/x", -1},
		{hybrid, "/sys/fs/cgroup/memory/x", -1},
		{"1 1 0:1 /sys.slice/x /mnt rw - cgroup2 c rw\n", "/mnt/thole", 3},
		{"1 1 0:1 /../x /mnt rw - cgroup2 c rw\n", "/mnt/thole", -1},
		{"1 1 0:1 / / rw - cgroup2 c rw\n", "/thole", 1},
		{"", "/thole", -1},
		{"garbage - cgroup2\n", "/thole", -1},
	} {
		if got := cgroupLevel([]byte(tt.info), tt.path); got != tt.want {
			t.Errorf("%s: level %d, want %d", tt.path, got, tt.want)
		}
	}
}

func FuzzParseBTF(f *testing.F) {
	head := []byte{0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0}
	f.Add(head)
	if b, err := os.ReadFile("/sys/kernel/btf/vmlinux"); err == nil {
		f.Add(b[:4096])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := parseBTF(b); err != nil && k.complete() && len(b) < 24 {
			t.Error("found in nothing")
		}
	})
}

func TestParseBTF(t *testing.T) {
	b, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	if err != nil {
		t.Skip("no kernel BTF here: ", err)
	}
	k, err := parseBTF(b)
	if err != nil {
		t.Fatal(err)
	}
	// A kernel before 6.7 has the structure without the length.
	if k.complete() && (k.uaddr != 8 || k.uaddrlen <= k.uaddr) {
		t.Errorf("%+v", k)
	}
}

func TestCountCPUs(t *testing.T) {
	for s, want := range map[string]int{"0\n": 1, "0-3\n": 4, "0,2-7": 8, "": maxCPUs, "x": maxCPUs, "0-99999": maxCPUs} {
		if got := countCPUs(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}
