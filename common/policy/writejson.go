// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strconv"

// JSON returns the policy as POLICY.json, which ParseJSON reads back. The
// launcher's document has no rules for addresses and no limits: a policy with
// either is an *Error, because leaving them out would widen it. Tools,
// containers and the proxy's hosts are the agent's to serve; they are left
// out, which narrows.
func (p *Policy) JSON() ([]byte, error) {
	switch {
	case len(p.Net.Rules) > 0 || p.Net.Default != Unset || p.Net.Audit:
		return nil, (Pos{}).err("net", "", "POLICY.json cannot carry rules for addresses")
	case p.Limits != Limits{}:
		return nil, (Pos{}).err("limits", "", "POLICY.json cannot carry limits")
	case p.Net.Mode == Allowlist && p.Net.ProxyPort == 0:
		return nil, (Pos{}).err(KeyProxyPort, "", "POLICY.json needs the proxy's port with mode %q", p.Net.Mode)
	}
	b := []byte(`{"module":`)
	b = appendJSON(b, p.Module)
	b = append(b, `,"kind":`...)
	kind := p.Kind
	if kind == "" {
		kind = defaultKind
	}
	b = appendJSON(b, kind)
	b = appendPaths(b, "ro", p.FS.RO)
	b = appendPaths(b, "rw", p.FS.RW)
	b = appendPaths(b, "rd", p.FS.RD)
	b = appendPaths(b, "wo", p.FS.WO)
	b = append(b, `,"net":`...)
	b = appendJSON(b, p.Net.Mode.String())
	b = append(b, `,"proxy_port":`...)
	if p.Net.ProxyPort == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, uint64(p.Net.ProxyPort), 10)
	}
	b = appendOptional(b, "broker_socket", p.Broker)
	b = strconv.AppendBool(append(b, `,"gpu":`...), p.GPU)
	b = strconv.AppendBool(append(b, `,"exec_rw":`...), p.ExecRW)
	b = appendOptional(b, "exe", p.Exe)
	return append(b, "}\n"...), nil
}

func appendOptional(b []byte, key, value string) []byte {
	b = append(b, `,"`+key+`":`...)
	if value == "" {
		return append(b, "null"...)
	}
	return appendJSON(b, value)
}

func appendPaths(b []byte, key string, paths []Path) []byte {
	b = append(b, `,"`+key+`":[`...)
	for i, p := range paths {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, p.Path)
	}
	return append(b, ']')
}

// appendJSON appends s, which is valid UTF-8, as a JSON string.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
