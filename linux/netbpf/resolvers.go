// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"bytes"
	"net/netip"
)

// maxResolvers bounds what is taken of a resolv.conf; the C library asks the
// first three (MAXNS), others take a few more.
const maxResolvers = 16

// Resolvers returns the name servers of a resolv.conf(5), each once, without
// zones. What is not an address is skipped, as the C library does. A file
// that names none means the server on 127.0.0.1.
func Resolvers(conf []byte) []netip.Addr {
	var out []netip.Addr
	for line := range bytes.Lines(conf) {
		f := bytes.Fields(line)
		// The keyword starts the line; a comment may follow the value.
		if len(f) < 2 || string(f[0]) != "nameserver" || line[0] != 'n' || len(f[1]) > 64 {
			continue
		}
		a, err := netip.ParseAddr(string(f[1]))
		if err != nil {
			continue
		}
		a = a.WithZone("").Unmap()
		known := false
		for _, o := range out {
			known = known || o == a
		}
		if !known {
			out = append(out, a)
		}
		if len(out) == maxResolvers {
			break
		}
	}
	if len(out) == 0 {
		out = append(out, loopback4)
	}
	return out
}
