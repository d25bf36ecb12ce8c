// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strconv"
	"strings"

	"github.com/tholehq/thole/linux/launch"
)

func itoa(n int) string { return strconv.Itoa(n) }

func octal(n uint64) string { return "0" + strconv.FormatUint(n, 8) }

func id(n int) launch.Arg { return launch.Num(int64(n)) }

func attrs(set uint64) launch.Arg { return launch.Named(set, attrText(set)) }

func attrText(set uint64) string {
	var s []string
	for _, a := range []struct {
		bit  uint64
		name string
	}{{attrRdonly, "rdonly"}, {attrNosuid, "nosuid"}, {attrNodev, "nodev"}, {attrNoexec, "noexec"}, {attrIDMap, "idmap"}} {
		if set&a.bit != 0 {
			s = append(s, a.name)
		}
	}
	return strings.Join(s, "|")
}
