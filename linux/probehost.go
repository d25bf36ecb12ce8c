// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"github.com/tholehq/thole/common/platform"
	"slices"
)

// seen is a fact that the probe saw from outside of its children.
func seen(id, what string) try {
	return try{run: runSelf, act: fact(id), want: holds, what: what, reported: true}
}

const remedyRoot = "run as root"

func (t table) limits() []check {
	const fix = "boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1) and run as root"
	small, big := act{ID: "alloc.small", Op: opAlloc, N: 16}, act{ID: "alloc.big", Op: opAlloc, N: 96}
	few, many := act{ID: "fork.few", Op: opFork, N: 4}, act{ID: "fork.many", Op: opFork, N: 64}
	pidsBy := "cgroup pids.max"
	if !slices.Contains(t.h.Controllers, "pids") {
		pidsBy = "RLIMIT_NPROC of the ephemeral uid"
	}
	freeze := check{capability: platform.Freeze, by: "cgroup.freeze", remedy: remedyRoot, tries: []try{
		{run: runNone, act: act{ID: opCgroup, Op: opCgroup}, want: permitted},
		seen(factFrozen, "cgroup.events says frozen 1"),
		seen(factThawed, "thawed, the job goes on to its end"),
	}}
	if !t.h.Root {
		freeze.known = "there is no cgroup leaf to freeze: " + t.h.why("cgroup", "only root makes them")
		freeze.remedy = remedy(t.h, "cgroup", remedyRoot)
	}
	return []check{
		freeze,
		{capability: platform.Memory, by: "cgroup memory.max", remedy: fix, tries: []try{
			{run: runMemory, act: small, want: permitted, what: "16 MiB of 64"},
			seen(factOOM, "a job that took 96 MiB of 64 was ended by its limit"),
		}, last: &big},
		{capability: platform.CPU, by: "cgroup cpu.max", remedy: fix, tries: []try{
			{run: runCPU, act: act{ID: opBurn, Op: opBurn, N: 60}, want: permitted, what: "computing"},
			seen(factThrottled, "a job of a fifth of a CPU was throttled"),
		}},
		{capability: platform.Pids, by: pidsBy, remedy: fix, tries: []try{
			{run: runPids, act: few, want: permitted, what: "4 processes of 40"},
			{run: runPids, act: many, want: refused, what: "64 processes of 40"},
		}},
	}
}

func (t table) kernel() []check {
	by := "/proc/PID/status, cgroup, ns"
	if t.h.BPF {
		by += "; ids of the attached programs"
	}
	verify := check{capability: platform.VerifyKernel, by: by, tries: []try{
		seen(factConfined, "each child passed the launch's check before it ran"),
		seen(factFreeSeen, "the check turns down this process, which is not confined; Landlock's domain is not in /proc, there the launch tries a forbidden act"),
	}, remedy: "run outside of other sandboxes and containers"}
	events := check{capability: platform.EventsNet, by: "cgroup-bpf", remedy: netRemedy, tries: []try{
		{run: runNone, act: t.loopback(opTCP, t.p.tcp), want: refused, what: "the connect"},
		seen(factEvent, "the refused connect arrived as an event with its target"),
		seen(factNoEvent, "the allowed one to the proxy made none"),
	}}
	gpu := check{capability: platform.GPU, by: "landlock", remedy: "run as root, or in the device's group"}
	if t.p.gpu == "" {
		gpu.known, gpu.remedy = "no GPU device here that this user can open", "install the device and its driver, or join its group (render, video)"
	} else {
		dev := t.path(opDevice, t.p.gpu)
		gpu.tries = []try{
			{run: runNone, act: dev, want: refused, what: t.p.gpu + " without the grant"},
			{run: runGPU, act: dev, want: permitted, what: "it with the grant"},
		}
	}
	return []check{verify, events, gpu}
}

// missing is what no part of this program does.
func (t table) missing() []check {
	return []check{
		{capability: platform.Containers, known: "there is no container broker in this version",
			remedy: "run a broker of your own and let its socket through: --broker SOCKET"},
		{capability: platform.EventsFS, known: "refused file acts are refused silently: nothing here reads Landlock's audit records",
			remedy: "where audit is on and Linux is 6.15 or later, the kernel's log has them: ausearch -m LANDLOCK_ACCESS"},
		{capability: platform.EventsCall, known: "the filter asks the kernel to log what it refuses (audit type 1326); nothing here reads the log",
			remedy: "read it: dmesg, or ausearch -m SECCOMP"},
	}
}
