// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"

	"github.com/tholehq/thole/bpf/flat"
)

// Event is one record of a ring, decoded.
type Event struct {
	Hook    flat.Hook
	Verdict flat.Verdict // Deny or WouldDeny
	Family  uint8        // AF_*
	Type    uint8        // SOCK_*
	Proto   uint16       // IPPROTO_*
	Port    uint16
	Errno   uint16 // what the caller saw, or would have
	Rule    uint32 // see Reason
	Time    uint64 // nanoseconds since boot, suspend included (CLOCK_BOOTTIME)
	Cgroup  uint64 // id of the sandbox's cgroup
	PID     uint32 // in the initial pid namespace
	TID     uint32
	UID     uint32 // in the initial user namespace
	Class   uint8  // addr.Class, or flat.ClassOwn
	Addr    netip.Addr

	comm [16]byte
	path [flat.PathMax]byte
	plen uint16
}

// Errors of DecodeEvent.
var (
	ErrEventShort = errors.New("decode event: record is too short")
	ErrEventABI   = errors.New("decode event: record is of another ABI")
	ErrEventField = errors.New("decode event: field out of range")
)

// DecodeEvent reads a record. It keeps no reference to b and allocates nothing.
func DecodeEvent(b []byte) (Event, error) {
	if len(b) < flat.EventSize {
		return Event{}, ErrEventShort
	}
	le := binary.LittleEndian
	if le.Uint16(b) != uint16(flat.Abi) {
		return Event{}, ErrEventABI
	}
	e := Event{
		Hook: flat.Hook(b[2]), Verdict: flat.Verdict(b[3]), Family: b[4], Type: b[5],
		Proto: le.Uint16(b[6:]), Port: le.Uint16(b[8:]), Errno: le.Uint16(b[10:]), Rule: le.Uint32(b[12:]),
		Time: le.Uint64(b[16:]), Cgroup: le.Uint64(b[24:]),
		PID: le.Uint32(b[32:]), TID: le.Uint32(b[36:]), UID: le.Uint32(b[40:]), Class: b[44],
	}
	if e.Verdict != flat.Deny && e.Verdict != flat.WouldDeny || e.Hook == 0 {
		return Event{}, ErrEventField
	}
	e.plen = le.Uint16(b[46:])
	if e.Family == 2 || e.Family == 10 { // AF_INET, AF_INET6
		e.Addr = netip.AddrFrom16([16]byte(b[48:64])).Unmap()
	}
	copy(e.comm[:], b[64:80])
	if e.plen > 0 {
		if int(e.plen) > len(e.path) {
			return Event{}, ErrEventField
		}
		if len(b) < flat.EventSize+int(e.plen) {
			return Event{}, ErrEventShort
		}
		copy(e.path[:], b[flat.EventSize:flat.EventSize+int(e.plen)])
	}
	return e, nil
}

// Comm returns the name of the calling thread.
func (e *Event) Comm() string { return cstring(e.comm[:]) }

// Path returns the path of a unix socket as the caller gave it, and an
// abstract name after an @. It may hold any byte.
func (e *Event) Path() string {
	p := e.path[:e.plen]
	if len(p) > 1 && p[0] == 0 {
		return "@" + string(p[1:])
	}
	return cstring(p)
}

func cstring(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Capability names what was refused, in the words of the event stream.
func (e *Event) Capability() string {
	switch e.Hook {
	case flat.HookConnect4, flat.HookConnect6, flat.HookLsmConnect:
		return "net.connect"
	case flat.HookSendmsg4, flat.HookSendmsg6, flat.HookLsmSendmsg:
		if e.Port == 53 {
			return "net.dns"
		}
		return "net.sendmsg"
	case flat.HookBind4, flat.HookBind6:
		return "net.bind"
	case flat.HookSockCreate:
		if e.Type == 3 { // SOCK_RAW
			return "net.raw"
		}
		return "net.socket"
	case flat.HookLsmListen:
		return "net.listen"
	case flat.HookConnectUnix, flat.HookSendmsgUnix, flat.HookLsmUnixStream, flat.HookLsmUnixDgram:
		return "unix.connect"
	case flat.HookLsmKill:
		return "signal"
	case flat.HookLsmPtrace:
		return "ptrace"
	case flat.HookLsmReceive:
		return "net.socket"
	case flat.HookLsmUserns:
		return "userns"
	}
	return "net.hook" + strconv.Itoa(int(e.Hook))
}

// RuleIndex returns the index in Policy.Rules of the operator's rule that an
// event or a decision names.
func RuleIndex(rule uint32) (int, bool) {
	if rule < uint32(flat.RuleOperator) {
		return 0, false
	}
	return int(rule - uint32(flat.RuleOperator)), true
}

// Reason says in words what a rule id of an event means.
func Reason(rule uint32) string {
	if i, ok := RuleIndex(rule); ok {
		return "operator's rule " + strconv.Itoa(i)
	}
	switch flat.Rule(rule) {
	case flat.RuleNoPolicy:
		return "the cgroup has no policy"
	case flat.RuleNetNone:
		return "the policy grants no network"
	case flat.RuleNotProxy:
		return "only the local proxy may be reached"
	case flat.RuleLoopback:
		return "loopback is never reachable"
	case flat.RuleLinkLocal:
		return "link-local addresses are never reachable"
	case flat.RuleOwnAddress:
		return "the address is this host's own"
	case flat.RuleNotPublic:
		return "the address is not public"
	case flat.RuleSocketType:
		return "only TCP and UDP sockets are allowed"
	case flat.RuleMptcp:
		return "MPTCP is not allowed: use TCP"
	case flat.RuleBind:
		return "a fixed port may not be bound"
	case flat.RuleBindUdp:
		return "a UDP socket that receives is not allowed"
	case flat.RuleUnix:
		return "only the broker's socket may be reached"
	case flat.RuleDefault:
		return "no rule allows it"
	case flat.RuleForeignSocket:
		return "the socket was made outside the sandbox"
	case flat.RuleListen:
		return "listening is never allowed"
	case flat.RuleSignal:
		return "only processes of the same sandbox may be signalled"
	case flat.RulePtrace:
		return "only processes of the same sandbox may be traced"
	case flat.RuleReceive:
		return "a socket was passed in from outside"
	case flat.RuleUserns:
		return "user namespaces are not allowed"
	case flat.RuleNotListed:
		return "the own addresses of this network namespace are not known"
	}
	return "rule " + strconv.FormatUint(uint64(rule), 10)
}
