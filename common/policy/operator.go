// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Bounds of the limits. Below, no process starts; above, no machine is.
const (
	minMemGB, maxMemGB = 0.001, 1 << 20 // 1 MiB to 1 PiB
	minCPUs, maxCPUs   = 0.01, 1 << 16
	maxPids            = 1 << 22 // the kernel's PID_MAX_LIMIT
)

// ParseOperator reads the file of a host's operator, for `run` and for
// control groups: [sandbox] as a module has it, [fs] with the granted roots,
// [limits], and [net] with rules for addresses. name is what errors call the
// document. Paths are absolute; "~" is not expanded.
func ParseOperator(name string, data []byte) (*Policy, error) {
	return parseTOML(name, data, func(t *tomlPolicy) []field {
		return []field{
			{"sandbox", t.sandbox},
			{"fs", t.fs},
			{"limits", t.limits},
			{"net", t.net},
		}
	})
}

func (t *tomlPolicy) fs(n *node, key string) error {
	roots := func(to *[]Path) func(*node, string) error {
		return func(n *node, key string) error { return t.rootPaths(n, key, to) }
	}
	fs := &t.p.FS
	return t.table(n, key, []field{
		{"ro", roots(&fs.RO)},
		{"rw", roots(&fs.RW)},
		{"rd", roots(&fs.RD)},
		{"wo", roots(&fs.WO)},
	})
}

func (t *tomlPolicy) limits(n *node, key string) error {
	l := &t.p.Limits
	return t.table(n, key, []field{
		// A gigabyte is 2^30 bytes, as container runtimes have it.
		{"mem_gb", func(n *node, key string) (err error) {
			l.MemoryBytes, err = t.decimal(n, key, 1<<30, minMemGB, maxMemGB)
			t.p.SetPos(KeyMemory, t.pos(n.off))
			return err
		}},
		{"cpus", func(n *node, key string) (err error) {
			l.MilliCPU, err = t.decimal(n, key, 1000, minCPUs, maxCPUs)
			t.p.SetPos(KeyCPU, t.pos(n.off))
			return err
		}},
		{"pids", func(n *node, key string) (err error) {
			l.Pids, err = t.integer(n, key, 1, maxPids)
			t.p.SetPos(KeyPids, t.pos(n.off))
			return err
		}},
	})
}

func (t *tomlPolicy) net(n *node, key string) error {
	return t.table(n, key, []field{
		{"allow", t.rules(false)},
		{"deny", t.rules(true)},
		{"default", func(n *node, key string) error {
			i, err := t.choice(n, key, "deny", "allow")
			if err != nil {
				return err
			}
			t.p.Net.Default = Deny + Default(i)
			t.p.SetPos(KeyDefault, t.pos(n.off))
			return nil
		}},
		{"mode", func(n *node, key string) error {
			i, err := t.choice(n, key, "enforce", "audit")
			if err != nil {
				return err
			}
			t.p.Net.Audit = i == 1
			t.p.SetPos(KeyAudit, t.pos(n.off))
			return nil
		}},
	})
}

// rules reads a list of rules; their ids follow the document's order.
func (t *tomlPolicy) rules(deny bool) func(*node, string) error {
	return func(n *node, key string) error {
		return t.list(n, key, func(n *node, key string) error {
			s, err := t.str(n, key)
			if err != nil {
				return err
			}
			r, rerr := parseRule(s)
			if rerr != nil {
				return t.at(n.off, key, rerr)
			}
			r.Deny, r.Pos = deny, t.pos(n.off)
			t.p.Net.Rules = append(t.p.Net.Rules, r)
			return nil
		})
	}
}
