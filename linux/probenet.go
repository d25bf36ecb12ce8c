// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"strconv"

	"github.com/tholehq/thole/common/platform"
)

// modes tries an act in every network mode that starts here: no network
// always does.
func modes(a act, what string, optional bool) []try {
	var l []try
	for _, run := range []string{runNone, runAllowlist, runAny} {
		l = append(l, try{run: run, act: a, want: refused, what: what, optional: optional, ifStarts: run != runNone})
	}
	return l
}

// control is an act that the probe itself can do: what refuses it to the
// children is their confinement, not the host.
func control(a act, what string) try {
	return try{run: runSelf, act: a, want: permitted, what: what + " to an unconfined process"}
}

// netBy names what decides about the network.
func (t table) netBy() string {
	if t.h.BPF {
		return "cgroup-bpf, seccomp"
	}
	return "seccomp (no inet sockets)"
}

const netRemedy = "run as root, where cgroup programs decide"

func (t table) network() []check {
	tcp, udp := t.loopback(opTCP, t.p.tcp), t.loopback(opUDP, t.p.udp)
	tcp6 := t.addr(opTCP, "[::1]:"+strconv.Itoa(t.p.tcp6))
	zero := t.addr(opTCP, "0.0.0.0:"+strconv.Itoa(t.p.tcp))
	mapped := t.addr(opTCP, "[::ffff:127.0.0.1]:"+strconv.Itoa(t.p.tcp))
	out4, out6 := t.addr(opUDP, public4), t.addr(opUDP, public6)
	link4, link6 := t.addr(opUDP, "169.254.1.1:9"), t.addr(opUDP, "[fe80::1]:9")
	none := check{capability: platform.NetNone, by: t.netBy(), remedy: netRemedy, tries: []try{
		{run: runNone, act: tcp, want: refused, what: "TCP and UDP to a listener on loopback"},
		{run: runNone, act: udp, want: refused, what: "TCP and UDP to a listener on loopback"},
		{run: runNone, act: tcp6, want: refused, what: "IPv6", optional: true},
		{run: runNone, act: out4, want: refused, what: "a public address"},
		{run: runNone, act: out6, want: refused, what: "a public address", optional: true},
		control(tcp, "the same acts"), control(udp, "the same acts"),
	}}
	allowlist := check{capability: platform.NetAllowlist, by: "cgroup-bpf", remedy: netRemedy, tries: []try{
		{run: runAllowlist, act: tcp, want: refused, what: "another port of loopback"},
		{run: runAllowlist, act: t.loopback(opUDP, t.p.proxy), want: refused, what: "UDP to the proxy's port"},
		{run: runAllowlist, act: t.addr(opUDP, public4), want: refused, what: "a public address"},
		{run: runAllowlist, act: t.loopback(opTCP, t.p.proxy), want: permitted, what: "the proxy's port"},
	}}
	free := check{capability: platform.NetAny, by: "cgroup-bpf", remedy: netRemedy, tries: []try{
		{run: runAny, act: tcp, want: refused, what: "loopback"},
		{run: runAny, act: tcp6, want: refused, what: "loopback", optional: true},
		{run: runAny, act: t.addr(opUDP, "10.255.255.1:9"), want: refused, what: "private and shared networks"},
		{run: runAny, act: t.addr(opUDP, "192.168.255.1:9"), want: refused, what: "private and shared networks"},
		{run: runAny, act: t.addr(opUDP, "100.64.0.1:9"), want: refused, what: "private and shared networks"},
		{run: runAny, act: out4, want: permitted, what: "a public address (nothing was sent)"},
		{run: runAny, act: out6, want: permitted, what: "a public address (nothing was sent)", optional: true},
	}}
	loopback := check{capability: platform.NetLoopback, by: t.netBy(), remedy: netRemedy}
	for _, a := range []act{tcp, udp, zero} {
		loopback.tries = append(loopback.tries, modes(a, "127.0.0.1 and 0.0.0.0 in every mode that starts", false)...)
	}
	for _, a := range []act{tcp6, mapped} {
		loopback.tries = append(loopback.tries, modes(a, "::1 and ::ffff:127.0.0.1", true)...)
	}
	loopback.tries = append(loopback.tries, control(tcp, "the same acts"))
	link := check{capability: platform.NetLinkLocal, by: t.netBy(), remedy: netRemedy}
	link.tries = append(modes(link4, "169.254.1.1 in every mode that starts", false), modes(link6, "fe80::1", true)...)
	link.tries = append(link.tries, control(link4, "the same acts"))
	return []check{none, allowlist, free, loopback, link}
}

func (t table) listening() []check {
	by := "seccomp"
	if t.h.BPF {
		by += ", cgroup-bpf"
	}
	listen, bind := act{ID: opListen, Op: opListen}, t.loopback(opBind, t.p.free)
	c := check{capability: platform.NetListen, by: by, remedy: netRemedy}
	c.tries = append(modes(listen, "listen in every mode that starts", false), modes(bind, "bind to a port", false)...)
	c.tries = append(c.tries, control(listen, "both"), control(bind, "both"))
	return []check{c}
}

func (t table) processes() []check {
	prog := t.program()
	nested := func(n act, w want, what string) try {
		return try{run: runNone, act: t.inChild(n), want: w, what: what, reported: true}
	}
	children := check{capability: platform.Children, by: "inheritance, cgroup leaf", remedy: "run as root", tries: []try{
		{run: runNone, act: prog, want: permitted, what: "starting a program"},
		nested(t.loopback(opTCP, t.p.tcp), refused, "a child of the job what the job is refused"),
		nested(t.on(opRead, "outside/open"), refused, "a child of the job what the job is refused"),
		nested(t.on(opRead, "ro/file"), permitted, "reading in a child what the job may read"),
		{run: runNone, act: act{ID: opCgroup, Op: opCgroup}, want: permitted},
		nested(act{ID: opCgroup, Op: opCgroup}, permitted, ""),
		{run: runSelf, act: fact(factCgroup), want: permitted, what: "both in one cgroup", reported: true},
	}}
	if !t.h.Root {
		children.by = "inheritance"
		children.tries[len(children.tries)-1].what = "both in the caller's cgroup, which holds no tree of the job's own"
	}
	by := "landlock scope"
	if t.h.Root {
		by = "ephemeral uid" + t.scope()
	}
	signals := check{capability: platform.Signals, by: by, remedy: "run as root, or on Linux 6.12 or later", tries: []try{
		{run: runNone, act: act{ID: opKill, Op: opKill, N: t.p.pid}, want: refused, what: "a signal to the caller"},
		{run: runNone, act: prog, want: permitted, what: "starting a program"},
		{run: runNone, act: act{ID: prog.ID + ".kill", Op: opKill}, want: permitted, what: "a signal to it", reported: true},
	}}
	return []check{children, signals}
}
