// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
)

// list is a flag that may be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// policyFlags are the flags that describe a policy.
type policyFlags struct {
	file                   string
	ro, rw, rd, wo         list
	net                    string
	allow                  list
	allowCIDR, denyCIDR    list
	proxyPort              int
	broker                 string
	memGB, cpus            string
	pids                   int
	audit, execRW, gpu     bool
	accept                 list
	strict                 bool
	timeout                time.Duration
	env                    list
	keepEnv                bool
	workdir                string
	quiet, verbose, asJSON bool
	output                 string
}

func (f *policyFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.file, "policy", "", "read the operator's policy `FILE` (TOML); flags add to it")
	fs.Var(&f.ro, "ro", "`PATH` to read and execute (repeatable)")
	fs.Var(&f.rw, "rw", "`PATH` to read and write (repeatable)")
	fs.Var(&f.rd, "rd", "`PATH` to read, never execute (repeatable)")
	fs.Var(&f.wo, "wo", "`PATH` to create and write files in, never read (repeatable)")
	fs.StringVar(&f.net, "net", "", "network `MODE`: none (default), egress-allowlist or egress-any")
	fs.Var(&f.allow, "allow", "`HOST[:PORT]` of the allow-list; your proxy at --proxy-port enforces it (repeatable)")
	fs.Var(&f.allowCIDR, "allow-cidr", "allow `CIDR[:PORT[-PORT]][/tcp|/udp]` (repeatable; longest prefix wins)")
	fs.Var(&f.denyCIDR, "deny-cidr", "deny `CIDR[:PORT[-PORT]][/tcp|/udp]` (repeatable; deny wins a tie)")
	fs.IntVar(&f.proxyPort, "proxy-port", 0, "`PORT` of the proxy on 127.0.0.1 that egress-allowlist leaves open")
	fs.StringVar(&f.broker, "broker", "", "the one unix `SOCKET` that may be connected to")
	fs.StringVar(&f.memGB, "mem-gb", "", "memory limit in `GB` (1 GB = 2^30 bytes)")
	fs.StringVar(&f.cpus, "cpus", "", "CPU limit in `CPUS`, such as 1.5")
	fs.IntVar(&f.pids, "pids", 0, "limit on the `NUMBER` of processes and threads")
	fs.BoolVar(&f.audit, "audit", false, "let network and IPC acts pass, and list what would have been refused")
	fs.BoolVar(&f.execRW, "exec-writable", false, "let files in writable paths be executed")
	fs.BoolVar(&f.gpu, "gpu", false, "open the GPU's compute devices")
	fs.Var(&f.accept, "accept", "start although `CAPABILITY` cannot be enforced here (repeatable)")
	fs.BoolVar(&f.strict, "strict", false, "refuse to start if any layer of this run is missing")
	fs.DurationVar(&f.timeout, "timeout", 0, "end the command after `DURATION`, such as 30s")
	fs.Var(&f.env, "env", "set `NAME[=VALUE]`; without a value, pass the caller's (repeatable)")
	fs.BoolVar(&f.keepEnv, "keep-env", false, "pass the caller's environment, but for variables that load code")
	fs.StringVar(&f.workdir, "workdir", "", "start in `DIR` (default: here if granted, else the private home)")
	fs.BoolVar(&f.quiet, "q", false, "print nothing but errors")
	fs.BoolVar(&f.verbose, "v", false, "print the plan and every event")
	fs.StringVar(&f.output, "o", "", "report as `FORMAT`: json writes one record a line to standard error")
}

// policy puts the file and the flags together.
func (f *policyFlags) policy() (*policy.Policy, error) {
	fromFlags, err := f.fromFlags()
	if err != nil || f.file == "" {
		return fromFlags, err
	}
	data, err := readPolicy(f.file)
	if err != nil {
		return nil, err
	}
	fromFile, err := policy.ParseOperator(f.file, data)
	if err != nil {
		return nil, err
	}
	return policy.Combine(fromFile, fromFlags)
}

func flagPos(name, value string) policy.Pos { return policy.Pos{Flag: "--" + name + " " + value} }

func flagError(name, value, msg, hint string) error {
	return &policy.Error{Key: "--" + name + " " + value, Msg: msg, Hint: hint}
}

func (f *policyFlags) fromFlags() (*policy.Policy, error) {
	p := &policy.Policy{Kind: "runner"}
	for _, g := range []struct {
		name string
		in   list
		out  *[]policy.Path
	}{{"ro", f.ro, &p.FS.RO}, {"rw", f.rw, &p.FS.RW}, {"rd", f.rd, &p.FS.RD}, {"wo", f.wo, &p.FS.WO}} {
		for _, s := range g.in {
			if s == "" {
				return nil, flagError(g.name, `""`, "an empty path", "name a directory or a file")
			}
			abs, err := filepath.Abs(s)
			if err != nil {
				return nil, flagError(g.name, s, err.Error(), "")
			}
			clean, err := policy.CleanPath(abs)
			if err != nil {
				return nil, flagError(g.name, s, err.Error(), "")
			}
			*g.out = append(*g.out, policy.Path{Path: clean, Pos: flagPos(g.name, s)})
		}
	}
	if err := f.network(p); err != nil {
		return nil, err
	}
	if f.broker != "" {
		abs, err := filepath.Abs(f.broker)
		if err != nil {
			return nil, flagError("broker", f.broker, err.Error(), "")
		}
		p.Broker = abs
		p.SetPos(policy.KeyBroker, flagPos("broker", f.broker))
	}
	if f.execRW {
		p.ExecRW = true
		p.SetPos(policy.KeyExecRW, policy.Pos{Flag: "--exec-writable"})
	}
	if f.gpu {
		p.GPU = true
		p.SetPos(policy.KeyGPU, policy.Pos{Flag: "--gpu"})
	}
	return p, f.limits(p)
}

func (f *policyFlags) network(p *policy.Policy) error {
	switch f.net {
	case "":
	case "none":
		p.SetPos(policy.KeyNetMode, flagPos("net", f.net))
	case "egress-allowlist":
		p.Net.Mode = policy.Allowlist
		p.SetPos(policy.KeyNetMode, flagPos("net", f.net))
	case "egress-any":
		p.Net.Mode = policy.Any
		p.SetPos(policy.KeyNetMode, flagPos("net", f.net))
	default:
		return flagError("net", f.net, "no such mode", "one of none, egress-allowlist, egress-any")
	}
	for _, s := range f.allow {
		h, err := policy.ParseHost(s)
		if err != nil {
			return err
		}
		h.Pos = flagPos("allow", s)
		p.Net.Allow = append(p.Net.Allow, h)
	}
	if len(f.allow) > 0 && p.Net.Mode != policy.Allowlist && f.file == "" {
		return flagError("allow", f.allow[0], "names a host without egress-allowlist", "add --net egress-allowlist")
	}
	if f.proxyPort != 0 {
		if f.proxyPort < 1 || f.proxyPort > 65535 {
			return flagError("proxy-port", strconv.Itoa(f.proxyPort), "no TCP port", "1 to 65535")
		}
		p.Net.ProxyPort = uint16(f.proxyPort)
		p.SetPos(policy.KeyProxyPort, flagPos("proxy-port", strconv.Itoa(f.proxyPort)))
	}
	if p.Net.Mode == policy.Allowlist && p.Net.ProxyPort == 0 && f.file == "" {
		return flagError("net", f.net, "needs the proxy's port", "add --proxy-port PORT, the port on 127.0.0.1 at which the proxy listens")
	}
	if f.proxyPort != 0 && p.Net.Mode != policy.Allowlist && f.file == "" {
		return flagError("proxy-port", strconv.Itoa(f.proxyPort), "has a meaning with egress-allowlist only", "add --net egress-allowlist")
	}
	for _, g := range []struct {
		name string
		in   list
		deny bool
	}{{"allow-cidr", f.allowCIDR, false}, {"deny-cidr", f.denyCIDR, true}} {
		for _, s := range g.in {
			r, err := policy.ParseRule(s, g.deny)
			if err != nil {
				return err
			}
			r.Pos = flagPos(g.name, s)
			p.Net.Rules = append(p.Net.Rules, r)
		}
	}
	if f.audit {
		p.Net.Audit = true
		p.SetPos(policy.KeyAudit, policy.Pos{Flag: "--audit"})
	}
	return nil
}

func (f *policyFlags) limits(p *policy.Policy) error {
	for _, g := range []struct {
		name, value, key string
		scale, max       float64
		out              *uint64
	}{
		{"mem-gb", f.memGB, policy.KeyMemory, 1 << 30, 1 << 20, &p.Limits.MemoryBytes},
		{"cpus", f.cpus, policy.KeyCPU, 1000, 1 << 16, &p.Limits.MilliCPU},
	} {
		if g.value == "" {
			continue
		}
		n, err := strconv.ParseFloat(g.value, 64)
		if err != nil || math.IsNaN(n) || n <= 0 || n > g.max || n*g.scale < 1 {
			return flagError(g.name, g.value, "not a positive number", "a decimal such as 1.5")
		}
		*g.out = uint64(n * g.scale)
		p.SetPos(g.key, flagPos(g.name, g.value))
	}
	if f.pids < 0 {
		return flagError("pids", strconv.Itoa(f.pids), "not a positive number", "")
	}
	if f.pids > 0 {
		p.Limits.Pids = uint64(f.pids)
		p.SetPos(policy.KeyPids, flagPos("pids", strconv.Itoa(f.pids)))
	}
	return nil
}

// accepted returns the capabilities of --accept.
func (f *policyFlags) accepted() ([]platform.Capability, error) {
	var out []platform.Capability
	for _, s := range f.accept {
		known := false
		for _, c := range platform.Capabilities() {
			known = known || string(c) == s
		}
		if !known {
			return nil, flagError("accept", s, "no such capability", "thole doctor lists them")
		}
		out = append(out, platform.Capability(s))
	}
	return out, nil
}
