// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"slices"
	"strconv"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/landlock"
)

// The children of a probe, by what their policy grants. The last one is the
// probe itself.
const (
	runNone      = "none"      // no network; the granted paths
	runAllowlist = "allowlist" // net = egress-allowlist
	runAny       = "any"       // net = egress-any
	runBroker    = "broker"    // a broker socket
	runExecRW    = "exec_rw"
	runGPU       = "gpu"
	runMemory    = "memory"
	runCPU       = "cpu"
	runPids      = "pids"
	runSelf      = "self"
)

// What the limits of those children are.
const (
	probeMemory = 64 << 20
	probeCPU    = 200
	probePids   = 40
)

// places are the names and numbers of what a probe's children try.
type places struct {
	base                        string // the probe's directory
	abstract                    string // its abstract socket, with the "@"
	gpu                         string // a device node; empty: none here
	pid                         int    // the probe's process
	tcp, proxy, tcp6, udp, free int    // its ports on loopback; free: none listens
}

func (p places) at(rel string) string { return p.base + "/" + rel }

// A public address of each family, those of a root name server: to connect a
// UDP socket to it sends nothing.
const (
	public4 = "198.41.0.4:443"
	public6 = "[2001:503:ba3e::2:30]:443"
)

// Facts that the probe itself reports.
const (
	factUID, factOwner         = "uid", "owner"
	factCgroup                 = "cgroup"
	factFrozen, factThawed     = "frozen", "thawed"
	factEvent, factNoEvent     = "event", "no event"
	factConfined, factFreeSeen = "confined", "unconfined"
	factOOM, factThrottled     = "oom", "throttled"
)

// checks returns what decides about each capability, in the order of reports.
func checks(h Host, p places) []check {
	t := table{h: h, p: p}
	all := [][]check{t.files(), t.ipc(), t.network(), t.listening(), t.processes(), t.limits(), t.kernel(), t.missing()}
	var out []check
	for _, c := range platform.Capabilities() {
		for _, group := range all {
			for _, k := range group {
				if k.capability == c {
					out = append(out, k)
				}
			}
		}
	}
	return out
}

// acts returns what the child of this name has to do, each act once.
func acts(cs []check, run string) []act {
	var out []act
	var seen []string
	for _, c := range cs {
		for _, t := range c.tries {
			if t.run == run && !t.reported && t.act.Op != opFact && !slices.Contains(seen, t.act.ID) {
				seen = append(seen, t.act.ID)
				out = append(out, t.act)
			}
		}
	}
	for _, c := range cs {
		if c.last != nil && c.tries[0].run == run {
			out = append(out, *c.last)
		}
	}
	return out
}

type table struct {
	h Host
	p places
}

// on makes an act's id of what it does and to what, so that two checks that
// want the same act share it.
func (t table) on(op, rel string) act { return t.path(op, t.p.at(rel)) }

func (t table) path(op, path string) act { return act{ID: op + " " + path, Op: op, Path: path} }

func (t table) addr(op, addr string) act { return act{ID: op + " " + addr, Op: op, Addr: addr} }

func (t table) loopback(op string, port int) act {
	return t.addr(op, "127.0.0.1:"+strconv.Itoa(port))
}

func fact(id string) act { return act{ID: id, Op: opFact} }

func (t table) files() []check {
	by := "landlock"
	if t.h.Root || t.h.UserNS {
		by += ", read-only mount view"
	}
	exec := "landlock"
	if t.h.Root || t.h.UserNS {
		exec += ", noexec mount"
	}
	progRO := t.program()
	return []check{
		{capability: platform.FS, by: by, remedy: "boot a kernel with Landlock enabled (landlock in lsm=)", tries: []try{
			{run: runNone, act: t.on(opRead, "outside/open"), want: refused, what: "reading and listing outside the granted paths"},
			{run: runNone, act: t.path(opList, "/"), want: refused, what: "reading and listing outside the granted paths"},
			{run: runNone, act: t.on(opRead, "outside/secret"), want: refused, what: "a 0600 file"},
			{run: runNone, act: t.on(opOpenWrite, "outside/open"), want: refused, what: "writing there"},
			{run: runNone, act: t.on(opCreate, "outside/new"), want: refused, what: "writing there"},
			{run: runNone, act: t.on(opUnlink, "outside/open"), want: refused, what: "removing there"},
			{run: runNone, act: t.on(opOpenWrite, "ro/file"), want: refused, what: "writing to a read-only root"},
			{run: runNone, act: t.on(opRead, "ro/file"), want: permitted, what: "reading there"},
			{run: runNone, act: t.on(opRead, "rw/own"), want: permitted, what: "reading and writing in a writable root"},
			{run: runNone, act: t.on(opCreate, "rw/new"), want: permitted, what: "reading and writing in a writable root"},
		}},
		{capability: platform.FSMetadata, by: "read-only mount view", remedy: "run as root", tries: []try{
			{run: runNone, act: t.on(opChmod, "outside/open"), want: refused, what: "chmod outside the writable roots"},
			{run: runNone, act: t.on(opChmod, "ro/file"), want: refused, what: "chmod outside the writable roots"},
			{run: runNone, act: t.on(opTouch, "outside/open"), want: refused, what: "setting times there"},
			{run: runNone, act: t.on(opChmod, "rw/own"), want: permitted, what: "both inside one"},
			{run: runNone, act: t.on(opTouch, "rw/own"), want: permitted, what: "both inside one"},
		}},
		{capability: platform.Identity, by: "ephemeral uid, id-mapped mounts, its own /proc", remedy: "run as root", tries: t.identity()},
		{capability: platform.ExecWritable, by: exec, remedy: "boot a kernel with Landlock enabled (landlock in lsm=)", tries: []try{
			{run: runNone, act: t.on(opExec, "rw/prog"), want: refused, what: "a program in a writable root"},
			{run: runNone, act: progRO, want: permitted, what: "the same file in a read-only root"},
			{run: runExecRW, act: t.on(opExec, "rw/prog"), want: permitted, what: "the first where the policy says exec_rw"},
		}},
		{capability: platform.FoldersRead, by: by, remedy: "boot a kernel with Landlock enabled (landlock in lsm=)", tries: []try{
			{run: runNone, act: t.on(opExec, "rd/prog"), want: refused, what: "executing"},
			{run: runNone, act: t.on(opOpenWrite, "rd/file"), want: refused, what: "writing"},
			{run: runNone, act: t.on(opCreate, "rd/new"), want: refused, what: "creating"},
			{run: runNone, act: t.on(opRead, "rd/file"), want: permitted, what: "reading"},
			{run: runNone, act: t.on(opList, "rd"), want: permitted, what: "listing"},
		}},
		{capability: platform.FoldersWrite, by: "landlock", remedy: "boot a kernel with Landlock enabled (landlock in lsm=)", tries: []try{
			{run: runNone, act: t.on(opRead, "wo/old"), want: refused, what: "reading"},
			{run: runNone, act: t.on(opList, "wo"), want: refused, what: "listing"},
			{run: runNone, act: t.on(opUnlink, "wo/old"), want: refused, what: "removing"},
			{run: runNone, act: t.on(opRename, "wo/old"), want: refused, what: "renaming"},
			{run: runNone, act: t.on(opCreate, "wo/new"), want: permitted, what: "creating and writing"},
		}},
	}
}

// program is the probe's program started inside, with the acts that its
// children must be refused, too.
func (t table) program() act {
	a := t.on(opExec, "ro/prog")
	a.Nested = []act{t.loopback(opTCP, t.p.tcp), t.on(opRead, "outside/open"), t.on(opRead, "ro/file"), {ID: opCgroup, Op: opCgroup}}
	return a
}

// inChild is an outcome of the program that program starts.
func (t table) inChild(a act) act {
	a.ID = t.program().ID + "." + a.ID
	return a
}

// identity is the job's own uid, where the caller can give it one; where not,
// the plan's gap says so.
func (t table) identity() []try {
	tries := []try{{run: runNone, act: act{ID: opIDs, Op: opIDs}, want: permitted}}
	if !t.h.Root {
		return tries
	}
	return append(tries,
		try{run: runSelf, act: fact(factUID), want: permitted, what: "a uid of the job's own"},
		try{run: runSelf, act: fact(factOwner), want: permitted, what: "files that belong to the root's owner on disk"},
		try{run: runNone, act: t.on(opRead, "rw/own"), want: permitted, what: "reading the owner's 0600 files"},
		try{run: runNone, act: t.on(opRead, "ro/alien"), want: refused, what: "a stranger's 0600 file in a granted path"},
		try{run: runNone, act: t.path(opStat, "/proc/"+strconv.Itoa(t.p.pid)+"/status"), want: hidden, what: "seeing the caller's process"})
}

// scope names Landlock's scopes, as one more layer, where the kernel has them.
func (t table) scope() string {
	if landlock.Of(t.h.Landlock).Scope == 0 {
		return ""
	}
	return ", landlock scope"
}

func (t table) ipc() []check {
	by := "seccomp (no unix sockets)"
	if t.h.BPF && t.h.UnixHooks {
		by = "cgroup-bpf" + t.scope()
	}
	return []check{{capability: platform.IPC, by: by, remedy: "run as root on Linux 6.7 or later", tries: []try{
		{run: runNone, act: t.on(opUnix, "outside/sock"), want: refused, what: "connecting to unix sockets by path"},
		{run: runNone, act: t.on(opUnix, "rw/sock"), want: refused, what: "connecting to unix sockets by path"},
		{run: runNone, act: t.on(opUnixDgram, "outside/dgram"), want: refused, what: "connecting to unix sockets by path"},
		{run: runNone, act: t.path(opUnix, t.p.abstract), want: refused, what: "by abstract name"},
		{run: runBroker, act: t.on(opUnix, "outside/sock"), want: refused, what: "connecting to unix sockets by path", ifStarts: true},
		{run: runNone, act: act{ID: opSocketpair, Op: opSocketpair}, want: permitted, what: "socketpair"},
		{run: runBroker, act: t.on(opUnix, "broker/sock"), want: permitted, what: "the broker's socket", ifStarts: true},
	}}}
}
