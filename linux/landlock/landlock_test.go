// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"strings"
	"testing"
)

// TestABI: each version handles what the one before does, and a newer kernel
// than the table what the newest row does.
func TestABI(t *testing.T) {
	last := Of(0)
	if last.FS != 0 || last.Net != 0 || last.Scope != 0 {
		t.Errorf("without Landlock: %+v", last)
	}
	// Rights that the versions added (Documentation/userspace-api/landlock.rst).
	added := map[int]string{2: "refer", 3: "truncate", 5: "ioctl_dev", 9: "resolve_unix"}
	for v := 1; v < len(abis); v++ {
		abi := Of(v)
		if abi.Version != v || abi.FS&last.FS != last.FS || abi.Net&last.Net != last.Net || abi.Scope&last.Scope != last.Scope {
			t.Errorf("version %d loses something: %+v", v, abi)
		}
		more := abi.FS &^ last.FS
		if v > 1 && added[v] != strings.ReplaceAll(more.String(), "none", "") {
			t.Errorf("version %d adds %s, want %q", v, more, added[v])
		}
		if (abi.Net != 0) != (v >= 4) || (abi.Scope != 0) != (v >= 6) {
			t.Errorf("version %d: net %x, scope %x", v, abi.Net, abi.Scope)
		}
		last = abi
	}
	if n := Of(99); n.Version != 99 || n.FS != last.FS || n.Net != last.Net || n.Scope != last.Scope {
		t.Errorf("version 99: %+v", n)
	}
	if n := Of(-1); n.FS != 0 || n.Version != 0 {
		t.Errorf("version -1: %+v", n)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		abi    int
		access Access
		file   bool
		want   string
	}{
		{9, Read | Execute, false, "execute,read_file,read_dir"},
		{9, Read | Execute, true, "execute,read_file"},
		{9, Outbox, false, "write_file,make_dir,make_reg,truncate"},
		{2, Outbox, false, "write_file,make_dir,make_reg"},
		{2, Outbox, true, "write_file"},
		{1, Write, true, "write_file"},
		{4, Ioctl, true, "none"},
		{5, Ioctl, true, "ioctl_dev"},
		{8, Unix, true, "none"},
		{9, Unix, true, "resolve_unix"},
		{0, Read, false, "none"},
	} {
		if got := Cut(Of(tt.abi).FS, tt.access, tt.file).String(); got != tt.want {
			t.Errorf("abi %d, %s, file %v: %s, want %s", tt.abi, tt.access, tt.file, got, tt.want)
		}
	}
}

// TestSets: no grant but a device's may do what makes devices, and an outbox
// neither reads nor takes away.
func TestSets(t *testing.T) {
	for name, set := range map[string]Access{"read": Read, "execute": Execute, "write": Write, "outbox": Outbox} {
		for _, no := range []string{"make_char", "make_block", "ioctl_dev"} {
			if strings.Contains(set.String(), no) {
				t.Errorf("%s holds %s", name, no)
			}
		}
	}
	for _, no := range []string{"read", "remove", "refer", "make_sym", "make_sock", "make_fifo", "execute"} {
		if strings.Contains(Outbox.String(), no) {
			t.Errorf("an outbox holds %s", no)
		}
	}
}

// TestRuleset: what prints is what is there, and a rule that keeps nothing is
// no rule.
func TestRuleset(t *testing.T) {
	r := New(Of(6))
	r.Allow(Rule{Path: "/usr", Access: Read | Execute, Optional: true, Why: "base system"})
	r.Allow(Rule{Path: "/srv/x", Access: Unix, File: true, Why: "not in this ABI"})
	r.Allow(Rule{Path: "/srv/f", Access: Read, File: true, Why: "rd"})
	r.Net, r.ConnectPorts = BindTCP|ConnectTCP, []uint16{3128}
	want := `landlock abi 6 handles fs=execute,write_file,read_file,read_dir,remove_dir,remove_file,make_char,make_dir,make_reg,make_sock,make_fifo,make_block,make_sym,refer,truncate,ioctl_dev net=bind_tcp,connect_tcp scope=abstract_unix_socket scope=signal
  /usr: execute,read_file,read_dir (if it exists)  # base system
  /srv/f: read_file  # rd
  tcp port 3128: connect_tcp
`
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
