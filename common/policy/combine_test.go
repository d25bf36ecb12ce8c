// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func sandbox(t *testing.T, doc string) *Policy {
	t.Helper()
	p, err := ParseOperator("policy.toml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// flags makes a policy as the command line does.
func flags(set func(*Policy), keys ...string) *Policy {
	p := &Policy{}
	set(p)
	for _, k := range keys {
		p.SetPos(k, Pos{Flag: "--" + k})
	}
	return p
}

func TestCombineConflicts(t *testing.T) {
	tests := []struct {
		name string
		a, b *Policy
		want string // the error, empty for none
	}{
		{"mode, twice the same", sandbox(t, "[sandbox]\nnet.mode = \"egress-any\"\n"),
			flags(func(p *Policy) { p.Net.Mode = Any }, KeyNetMode), ""},
		{"mode, only the flag", sandbox(t, ""), flags(func(p *Policy) { p.Net.Mode = Any }, KeyNetMode), ""},
		{"mode, only the file", sandbox(t, "[sandbox]\nnet.mode = \"egress-any\"\n"), flags(func(*Policy) {}), ""},
		{"mode widened", sandbox(t, "[sandbox]\nnet.mode = \"none\"\n"), flags(func(p *Policy) { p.Net.Mode = Any }, KeyNetMode),
			"policy.toml:2:12: net.mode: egress-any (--net.mode) contradicts none (policy.toml:2:12)"},
		{"mode narrowed", sandbox(t, "[sandbox]\nnet.mode = \"egress-any\"\n"), flags(func(*Policy) {}, KeyNetMode),
			"policy.toml:2:12: net.mode: none (--net.mode) contradicts egress-any (policy.toml:2:12)"},
		{"two files", sandbox(t, "[limits]\npids = 1\n"), sandbox(t, "\n[limits]\npids = 2\n"),
			"policy.toml:3:8: limits.pids: 2 (policy.toml:3:8) contradicts 1 (policy.toml:2:8)"},
		{"explicit false", sandbox(t, "[sandbox]\nexec_writable = false\n"), flags(func(p *Policy) { p.ExecRW = true }, KeyExecRW),
			"policy.toml:2:17: exec_rw: true (--exec_rw) contradicts false (policy.toml:2:17)"},
		{"without positions", &Policy{Exe: "/a"}, &Policy{Exe: "/b"}, "exe: /b (position unknown) contradicts /a (position unknown)"},
		{"default kind yields", &Policy{Kind: "runner"}, &Policy{Kind: "probe"}, ""},
		{"kinds", &Policy{Kind: "service"}, &Policy{Kind: "probe"}, "kind: probe (position unknown) contradicts service (position unknown)"},
		{"enforce and audit", sandbox(t, "[net]\nmode = \"enforce\"\n"), flags(func(p *Policy) { p.Net.Audit = true }, KeyAudit),
			"policy.toml:2:8: net.audit: true (--net.audit) contradicts false (policy.toml:2:8)"},
		{"hosts without the mode", sandbox(t, ""), flags(func(p *Policy) {
			p.Net.Allow = []HostPort{{Host: "a.example", Port: 443, Pos: Pos{Flag: "--allow a.example"}}}
		}),
			"net.allow: a list of hosts has no use with mode \"none\" (--allow a.example)"},
		{"hosts from one, mode from the other", flags(func(p *Policy) { p.Net.Allow = []HostPort{{Host: "a.example", Port: 443}} }),
			flags(func(p *Policy) { p.Net.Mode = Allowlist }, KeyNetMode), ""},
		{"allowlist without hosts", sandbox(t, ""), flags(func(p *Policy) { p.Net.Mode = Allowlist }, KeyNetMode),
			"net.allow: mode \"egress-allowlist\" needs a list of hosts (--net.mode)"},
		{"port without the mode", sandbox(t, ""), flags(func(p *Policy) { p.Net.ProxyPort = 1 }, KeyProxyPort),
			"net.proxy_port: a proxy's port has no use with mode \"none\" (--net.proxy_port)"},
		{"both nil", nil, nil, ""},
	}
	for _, tt := range tests {
		p, err := Combine(tt.a, tt.b)
		got := ""
		if err != nil {
			got = err.Error()
			if p != nil || !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: policy %v with error %v", tt.name, p, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestCombineLists(t *testing.T) {
	posixOnly(t)
	a := sandbox(t, "[fs]\nrw = [\"/a\", \"/b\"]\n[net]\ndeny = [\"10.0.0.0/8\"]\n[sandbox]\ntools = [{ id = \"x\" }]\n")
	b := sandbox(t, "[fs]\nrw = [\"/b\", \"/c\"]\nro = [\"/b\"]\n[net]\nallow = [\"10.0.0.1\"]\n[sandbox]\ntools = [{ id = \"x\", trust = \"code-exec\" }, { id = \"y\" }]\n")
	before := a.String() + b.String()
	p, err := Combine(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := "kind runner\nro /b\nrw /a\nrw /b\nrw /c\nnet none\nrule 0 deny 10.0.0.0/8\nrule 1 allow 10.0.0.1/32\ntool x code-exec\ntool y\n"
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if a.String()+b.String() != before {
		t.Error("Combine changed its arguments")
	}
}

func TestValidate(t *testing.T) {
	posixOnly(t)
	pos := Pos{Flag: "--rw x"}
	pre := netip.MustParsePrefix
	tests := []struct {
		p    Policy
		want string
	}{
		{Policy{}, ""},
		{Policy{Kind: "root"}, `kind: unknown kind "root"`},
		{Policy{FS: FS{RW: []Path{{"x", pos}}}}, `rw: path "x" is not absolute (--rw x)`},
		{Policy{FS: FS{RO: []Path{{"/", pos}}}}, `ro: path "/" is the root directory (--rw x)`},
		{Policy{FS: FS{RD: []Path{{"/a/", pos}}}}, `rd: path "/a/" is not in clean form (--rw x)`},
		{Policy{FS: FS{WO: []Path{{"/a/../b", pos}}}}, `wo: path "/a/../b" holds ".." (--rw x)`},
		{Policy{Net: Net{Mode: Any + 1}}, "net.mode: unknown mode 3"},
		{Policy{Net: Net{Rules: []Rule{{Prefix: pre("10.0.0.0/8"), PortHi: 65535}}}}, ""},
		{Policy{Net: Net{Rules: []Rule{{Text: "t"}}}}, `net.rules[0]: rule "t" is not in normal form`},
		{Policy{Net: Net{Rules: []Rule{{Prefix: pre("10.0.0.1/8"), Text: "t"}}}}, `net.rules[0]: rule "t" is not in normal form`},
		{Policy{Net: Net{Rules: []Rule{{Prefix: pre("10.0.0.0/8"), PortLo: 2, PortHi: 1, Text: "t"}}}}, `net.rules[0]: rule "t" is not in normal form`},
		{Policy{Net: Net{Rules: []Rule{{Prefix: netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104), Text: "t"}}}}, `net.rules[0]: rule "t" is not in normal form`},
		{Policy{Net: Net{Mode: Allowlist, ProxyPort: 1}}, ""},
		{Policy{Net: Net{Mode: Any, ProxyPort: 1}}, `net.proxy_port: a proxy's port has no use with mode "egress-any"`},
	}
	for i, tt := range tests {
		got := ""
		if err := tt.p.Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%d:\n got %q\nwant %q", i, got, tt.want)
		}
	}
}

func TestFromMode(t *testing.T) {
	posixOnly(t)
	tests := []struct {
		name, mode, workspace string
		temps, homes          []string
		want                  string // the policy, or the error behind "error: "
	}{
		{"read only", ReadOnly, "/w/", []string{"/tmp"}, nil, "kind runner\nro /w\nnet none\n"},
		{"workspace", WorkspaceWrite, "/w", []string{"/tmp", "/var/tmp", "/tmp/"}, []string{"", "/home/u"}, "kind runner\nrw /tmp\nrw /var/tmp\nrw /w\nnet none\nexec_rw\n"},
		{"below a home", WorkspaceWrite, "/home/u/w", nil, []string{"/home/u"}, "kind runner\nrw /home/u/w\nnet none\nexec_rw\n"},
		{"beside a home", WorkspaceWrite, "/home/user2", nil, []string{"/home/user"}, "kind runner\nrw /home/user2\nnet none\nexec_rw\n"},
		{"root", WorkspaceWrite, "/", nil, nil, `error: workspace: path "/" is the root directory (workspace_write)`},
		{"root, reading", ReadOnly, "//", nil, nil, `error: workspace: path "//" is the root directory (read_only)`},
		{"home", WorkspaceWrite, "/home/u/", nil, []string{"/home/u"}, `error: workspace: workspace /home/u holds the home directory /home/u (workspace_write)`},
		{"home, reading", ReadOnly, "/root", nil, []string{"/x", "/root/"}, `error: workspace: workspace /root holds the home directory /root/ (read_only)`},
		{"above a home", WorkspaceWrite, "/home", nil, []string{"/home/u"}, `error: workspace: workspace /home holds the home directory /home/u (workspace_write)`},
		{"empty workspace", WorkspaceWrite, "", nil, nil, `error: workspace: empty path (workspace_write)`},
		{"relative workspace", WorkspaceWrite, "w", nil, nil, `error: workspace: path "w" is not absolute (workspace_write)`},
		{"temporary root", WorkspaceWrite, "/w", []string{"/"}, nil, `error: temporary root: path "/" is the root directory (workspace_write)`},
		{"unknown", "workspace-write", "/w", nil, nil, `error: mode: unknown mode workspace-write (workspace-write)`},
		{"no mode", "", "/w", nil, nil, `error: mode: unknown mode ""`},
	}
	for _, tt := range tests {
		p, err := FromMode(tt.mode, tt.workspace, tt.temps, tt.homes...)
		var got string
		if err != nil {
			got = "error: " + err.Error()
			if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoConfinement) {
				t.Errorf("%s: error %v is not ErrInvalid alone", tt.name, err)
			}
		} else {
			got = p.String()
			if err := p.Validate(); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
	if p, err := FromMode(FullAccess, "/w", nil); p != nil || !errors.Is(err, ErrNoConfinement) || errors.Is(err, ErrInvalid) {
		t.Errorf("danger_full_access = %v, %v", p, err)
	}
}

func TestErrorString(t *testing.T) {
	tests := []struct {
		e    Error
		want string
	}{
		{Error{File: "f", Line: 1, Column: 2, Key: "k", Msg: "m", Hint: "h"}, "f:1:2: k: m"},
		{Error{File: "f", Line: 1, Column: 2, Msg: "m"}, "f:1:2: m"},
		{Error{Line: 1, Column: 2, Msg: "m"}, "m"},
		{Error{Key: "k", Msg: "m"}, "k: m"},
	}
	for _, tt := range tests {
		if got := tt.e.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
	// A hostile document does not make a message of its own size.
	_, err := ParseJSON("POLICY.json", []byte(`{"`+strings.Repeat("x", 500000)+`": 1}`))
	if err == nil || len(err.Error()) > 2*maxQuoted {
		t.Errorf("message of %d bytes", len(err.Error()))
	}
	_, err = ParseJSON("POLICY.json", []byte(`{"kind": "`+strings.Repeat("\\u001b", 100000)+`"}`))
	if err == nil || strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 8*maxQuoted {
		t.Errorf("message of %d bytes, or with an escape character", len(err.Error()))
	}
}
