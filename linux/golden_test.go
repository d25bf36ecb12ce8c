// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/seccomp"
	"github.com/tholehq/thole/linux/view"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden compares got with a file of testdata and names the first line that
// differs.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var wl, gl string
		if i < len(w) {
			wl = w[i]
		}
		if i < len(g) {
			gl = g[i]
		}
		if wl != gl {
			t.Fatalf("%s:%d differs; run with -update and review:\n got %q\nwant %q", file, i+1, gl, wl)
		}
	}
}

// namedHost is a host of the tables.
type namedHost struct {
	name string
	Host
}

// fullHost is a host on which everything can be had, to a root caller.
func fullHost() Host {
	return Host{Arch: seccomp.AMD64, Root: true, Landlock: 9, BPF: true, UnixHooks: true, Proc: true,
		// Few capabilities keep the goldens short; TestProperties has a real
		// number of them.
		Controllers: []string{"cpu", "memory", "pids"}, LastCap: 2, Why: map[string]string{}, Remedy: map[string]string{}}
}

// hosts returns the machines that plans are compiled for.
func hosts() []namedHost {
	root := func(name string, change func(*Host)) namedHost {
		h := fullHost()
		change(&h)
		return namedHost{name, h}
	}
	user := func(h *Host) {
		h.Root, h.Proc, h.BPF, h.UnixHooks, h.Controllers = false, false, false, false, nil
		h.UID, h.GID = 1000, 1000
		h.Why["bpf"], h.Remedy["bpf"] = "cgroup programs need root", "run as root"
	}
	list := []namedHost{
		root("root", func(*Host) {}),
		root("root-nobpf", func(h *Host) {
			h.BPF, h.UnixHooks = false, false
			h.Why["bpf"], h.Remedy["bpf"] = "bpf(2): operation not permitted", "boot without lockdown=confidentiality"
		}),
		root("root-nounixhooks", func(h *Host) { h.UnixHooks = false }),
		root("root-noproc", func(h *Host) { h.Proc = false }),
		root("root-arm64", func(h *Host) { h.Arch = seccomp.ARM64 }),
		root("user-userns", func(h *Host) { user(h); h.UserNS = true }),
		root("user", func(h *Host) {
			user(h)
			h.Why["userns"], h.Remedy["userns"] = "user namespaces are not allowed to this user", "allow user namespaces"
		}),
	}
	for _, abi := range []struct {
		name string
		n    int
	}{{"root-landlock0", 0}, {"root-landlock1", 1}, {"root-landlock2", 2}, {"root-landlock3", 3}, {"root-landlock4", 4}, {"root-landlock6", 6}, {"root-landlock7", 7}} {
		list = append(list, root(abi.name, func(h *Host) { h.Landlock = abi.n }))
	}
	for _, abi := range []struct {
		name string
		n    int
	}{{"user-landlock2", 2}, {"user-landlock3", 3}, {"user-landlock4", 4}, {"user-landlock6", 6}} {
		list = append(list, root(abi.name, func(h *Host) { user(h); h.Landlock = abi.n }))
	}
	return list
}

func pos(flag string) policy.Pos { return policy.Pos{Flag: flag} }

// planCase is a resolved policy of the tables.
type planCase struct {
	name string
	Resolved
	o Options
}

func root(g Grant, path string, uid int, blocked string) Root {
	return Root{Grant: g, Path: path, Pos: pos("--" + g.String() + " " + path), UID: uid, GID: uid, Blocked: blocked, Handle: "root." + g.String() + "." + path}
}

// policies returns the policies that plans are compiled of. change gets a
// closed one.
func policies() []planCase {
	with := func(name string, change func(*Resolved)) planCase {
		r := Resolved{Policy: &policy.Policy{Kind: "runner"}, Tmp: "/tmp", Shm: "/dev/shm", Home: "/tmp/home", Dir: "/tmp/home",
			Program: "/usr/bin/true", Path: "/bin/true", Argv: []string{"true", "an argument"}, Env: []string{"PATH=/usr/bin", "HOME=/tmp/home"}}
		change(&r)
		return planCase{name: name, Resolved: r}
	}
	self := with("self-exec", func(r *Resolved) { r.Roots = []Root{root(RW, "/srv/data", 0, "")} })
	self.o.Self = true
	noid := with("no-idmap", func(r *Resolved) { r.Roots = []Root{root(RW, "/srv/data", 1000, "")} })
	noid.o.NoIDMap, noid.o.Accept = true, accept("identity")
	return []planCase{
		with("closed", func(*Resolved) {}),
		with("rw-ro", func(r *Resolved) {
			file := root(RD, "/srv/key", 0, "")
			file.File = true
			r.Roots = []Root{root(RO, "/srv/tool", 0, ""), root(RW, "/home/u/work", 1000, "/home/u"), root(WO, "/srv/out", 1000, ""), file}
		}),
		with("nested", func(r *Resolved) {
			r.Roots = []Root{root(RW, "/srv/data", 1000, ""), root(RO, "/srv/data/fixed", 0, ""), root(RW, "/tmp/x", 1000, "")}
		}),
		with("broker", func(r *Resolved) {
			r.Policy.Broker = "/run/b/sock"
			r.Policy.SetPos(policy.KeyBroker, pos("--broker /run/b/sock"))
			r.Broker = Root{Path: "/run/b/sock", File: true, Handle: "broker", UID: 1000, GID: 1000, Pos: pos("--broker /run/b/sock"), Blocked: "/run/b"}
		}),
		with("gpu", func(r *Resolved) {
			r.Policy.GPU = true
			r.Devices = []Root{{Path: "/dev/dri", Handle: "gpu./dev/dri"}, {Path: "/dev/kfd", File: true, Handle: "gpu./dev/kfd"}}
			r.DeviceGroups = []int{44, 992}
		}),
		with("allowlist", func(r *Resolved) {
			r.Policy.Net.Mode, r.Policy.Net.ProxyPort = policy.Allowlist, 3128
			r.Policy.SetPos(policy.KeyNetMode, pos("--net egress-allowlist"))
		}),
		with("any", func(r *Resolved) {
			r.Policy.Net.Mode = policy.Any
			r.Policy.SetPos(policy.KeyNetMode, pos("--net egress-any"))
			r.ResolvConf = "/run/systemd/resolve/stub-resolv.conf"
		}),
		with("rules", func(r *Resolved) {
			r.Policy.Net.Audit = true
			r.Policy.Net.Rules = []policy.Rule{
				{Prefix: netip.MustParsePrefix("10.0.0.0/8"), PortLo: 443, PortHi: 443, Proto: policy.TCP, Pos: pos("--allow-cidr 10.0.0.0/8:443/tcp")},
				{Prefix: netip.MustParsePrefix("10.1.0.0/16"), PortLo: 0, PortHi: 65535, Deny: true, Pos: pos("--deny-cidr 10.1.0.0/16")},
			}
		}),
		with("limits", func(r *Resolved) {
			r.Policy.Limits = policy.Limits{MemoryBytes: 1 << 30, MilliCPU: 1500, Pids: 64}
			r.Policy.SetPos(policy.KeyMemory, pos("--mem-gb 1"))
			r.Policy.SetPos(policy.KeyCPU, pos("--cpus 1.5"))
			r.Policy.SetPos(policy.KeyPids, pos("--pids 64"))
		}),
		with("exec-rw", func(r *Resolved) {
			r.Policy.ExecRW = true
			r.Roots = []Root{root(RW, "/srv/data", 0, "")}
		}),
		with("links", func(r *Resolved) {
			r.Roots = []Root{root(RO, "/root/opt/v2", 0, "/root")}
			r.Links = []view.Link{{Path: "/root/opt/current", Target: "v2"}, {Path: "/root/opt/v2/bin/sh", Target: "/bin/sh"}}
			r.Path, r.Program = "/root/opt/current/bin/x", "/root/opt/v2/bin/x"
		}),
		noid,
		self,
	}
}
