// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"
	"strconv"

	"github.com/tholehq/thole/bpf/flat"
)

// Mode says what decides where no operator's rule does.
type Mode uint8

// The modes. The zero value grants nothing.
const (
	None      = Mode(flat.ModeNone)      // no network
	Allowlist = Mode(flat.ModeAllowlist) // TCP to the local proxy
	Any       = Mode(flat.ModeAny)       // public addresses and the resolvers
	Rules     = Mode(flat.ModeRules)     // rules and a default, for cgroups that exist already
)

// String returns the mode as policies spell it.
func (m Mode) String() string {
	switch m {
	case None:
		return "none"
	case Allowlist:
		return "egress-allowlist"
	case Any:
		return "egress-any"
	case Rules:
		return "rules"
	}
	return "mode " + strconv.Itoa(int(m))
}

// Protocols of a Rule, by IANA's numbers.
const (
	AnyProto uint8 = 0
	TCP      uint8 = 6
	UDP      uint8 = 17
)

// Rule is one line of an operator's list. Its index in Policy.Rules is what
// events name, as flat.RuleOperator + index.
type Rule struct {
	// Prefix is the destinations. A prefix of IPv4-mapped addresses is the
	// IPv4 prefix; a shorter IPv6 prefix does not cover IPv4.
	Prefix netip.Prefix
	// PortLo and PortHi bound the ports, both included. PortHi of zero is
	// every port.
	PortLo, PortHi uint16
	// Proto is TCP, UDP or AnyProto. A rule with ports covers TCP and UDP
	// only; one for any port and protocol covers every protocol.
	Proto uint8
	// Deny refuses; otherwise the rule allows.
	Deny bool
}

// String returns the rule as an operator writes it.
func (r Rule) String() string {
	s := "allow "
	if r.Deny {
		s = "deny "
	}
	s += r.Prefix.String()
	if r.PortHi != 0 {
		s += ":" + strconv.Itoa(int(r.PortLo))
		if r.PortHi != r.PortLo {
			s += "-" + strconv.Itoa(int(r.PortHi))
		}
	}
	switch r.Proto {
	case TCP:
		s += "/tcp"
	case UDP:
		s += "/udp"
	}
	return s
}

// Policy is what one sandbox may reach.
type Policy struct {
	Mode Mode
	// Audit reports what would be refused and lets it pass.
	Audit bool
	// DefaultAllow is the answer of Mode Rules where no rule decides.
	DefaultAllow bool
	// ProxyPort is the port of 127.0.0.1 that Allowlist leaves open.
	ProxyPort uint16
	// Broker is the absolute path of the one unix socket that may be reached,
	// or empty. At most 107 bytes.
	Broker string
	// Rules come before the mode. Their order means nothing.
	Rules []Rule
}

// PolicyError says what of a Policy cannot be compiled. Rules are the indices
// of the rules it concerns.
type PolicyError struct {
	Rules []int
	Text  string
}

func (e *PolicyError) Error() string { return "compile network policy: " + e.Text }
