// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// contractVersion is the contract of the [sandbox] table that is understood.
const contractVersion = "1"

// ParseSandbox reads the document that a module ships: the table [sandbox] of
// contract 1, in TOML, and nothing else. An empty document is the closed
// contract: no network, nothing beyond the process's own directories. name is
// what errors call the document.
func ParseSandbox(name string, data []byte) (*Policy, error) {
	return parseTOML(name, data, func(t *tomlPolicy) []field {
		return []field{{"sandbox", t.sandbox}}
	})
}

// tomlPolicy fills a Policy from a TOML document.
type tomlPolicy struct {
	*document
	p *Policy
}

func parseTOML(name string, data []byte, fields func(*tomlPolicy) []field) (*Policy, error) {
	d, err := openDocument(name, data)
	if err != nil {
		return nil, err
	}
	root, err := readTOML(d)
	if err != nil {
		return nil, err
	}
	t := &tomlPolicy{document: d, p: &Policy{Kind: defaultKind}}
	if err := d.table(root, "", fields(t)); err != nil {
		return nil, err
	}
	return t.p, nil
}

func (t *tomlPolicy) sandbox(n *node, key string) error {
	return t.table(n, key, []field{
		{"contract", t.contract},
		{"net", t.sandboxNet},
		{"tools", t.tools},
		{"devices", t.devices},
		{"containers", t.containers},
		{"exec_writable", t.execWritable},
	})
}

func (t *tomlPolicy) contract(n *node, key string) error {
	if n.kind != kindInt {
		return t.wrong(n, key, kindInt)
	}
	if n.text != contractVersion {
		return t.err(n.off, key, "this version understands contract "+contractVersion, "contract %s is not known", n.text)
	}
	return nil
}

func (t *tomlPolicy) sandboxNet(n *node, key string) error {
	err := t.table(n, key, []field{
		{"mode", t.netMode},
		{"allow", t.netAllow},
	})
	if err != nil {
		return err
	}
	allow := n.get("allow")
	switch allowlist := t.p.Net.Mode == Allowlist; {
	case allow != nil && !allowlist:
		return t.err(allow.off, join(key, "allow"), `write mode = "egress-allowlist", or leave the list out`,
			"a list of hosts has no use with mode = %q", t.p.Net.Mode)
	case allowlist && allow == nil:
		return t.err(n.get("mode").value.off, join(key, "allow"), "list the hosts that may be reached",
			"mode = %q needs a list of hosts", t.p.Net.Mode)
	case allowlist && len(allow.value.list) == 0:
		return t.err(allow.value.off, join(key, "allow"), `list the hosts that may be reached, or write mode = "none"`,
			"mode = %q needs a list of hosts, this one is empty", t.p.Net.Mode)
	}
	return nil
}

func (t *tomlPolicy) netMode(n *node, key string) error {
	i, err := t.choice(n, key, netModes[:]...)
	if err != nil {
		return err
	}
	t.p.Net.Mode = NetMode(i)
	t.p.SetPos(KeyNetMode, t.pos(n.off))
	return nil
}

func (t *tomlPolicy) netAllow(n *node, key string) error {
	seen := make(map[HostPort]bool, len(n.list))
	return t.list(n, key, func(n *node, key string) error {
		s, err := t.str(n, key)
		if err != nil {
			return err
		}
		h, herr := parseHost(s)
		if herr != nil {
			return t.at(n.off, key, herr)
		}
		if !seen[h] {
			seen[h] = true
			h.Pos = t.pos(n.off)
			t.p.Net.Allow = append(t.p.Net.Allow, h)
		}
		return nil
	})
}

func (t *tomlPolicy) tools(n *node, key string) error {
	seen := make(map[string]bool, len(n.list))
	return t.list(n, key, func(n *node, key string) error {
		tool := Tool{Pos: t.pos(n.off)}
		err := t.table(n, key, []field{
			{"id", func(n *node, key string) (err error) {
				tool.ID, err = t.toolID(n, key)
				return err
			}},
			{"trust", func(n *node, key string) error {
				_, err := t.choice(n, key, "code-exec")
				tool.CodeExec = true
				return err
			}},
		})
		switch {
		case err != nil:
			return err
		case tool.ID == "":
			return t.err(n.off, key, `write { id = "..." }`, "a tool needs an id")
		case seen[tool.ID]:
			return t.err(n.off, key, "keep one of the two", "tool %q is listed twice", tool.ID)
		}
		seen[tool.ID] = true
		t.p.Tools = append(t.p.Tools, tool)
		return nil
	})
}

func (t *tomlPolicy) devices(n *node, key string) error {
	return t.table(n, key, []field{
		{"gpu", func(n *node, key string) error {
			_, err := t.choice(n, key, "compute")
			t.p.GPU = err == nil
			t.p.SetPos(KeyGPU, t.pos(n.off))
			return err
		}},
	})
}

func (t *tomlPolicy) containers(n *node, key string) error {
	type image struct{ ref, platform string }
	seen := make(map[image]bool, len(n.list))
	return t.list(n, key, func(n *node, key string) error {
		c := Container{Pos: t.pos(n.off)}
		err := t.table(n, key, []field{
			{"image", func(n *node, key string) (err error) {
				c.Image, err = t.image(n, key)
				return err
			}},
			{"platform", func(n *node, key string) error {
				i, err := t.choice(n, key, platforms[:]...)
				c.Platform = platforms[i]
				return err
			}},
		})
		switch {
		case err != nil:
			return err
		case c.Image == "":
			return t.err(n.off, key, `write { image = "...@sha256:...", platform = "linux/amd64" }`, "a container needs an image")
		case c.Platform == "":
			return t.err(n.off, key, `add platform = "linux/amd64" or "linux/arm64"`, "a container needs a platform")
		case seen[image{c.Image, c.Platform}]:
			return t.err(n.off, key, "keep one of the two", "image %q is listed twice for %s", c.Image, c.Platform)
		}
		seen[image{c.Image, c.Platform}] = true
		t.p.Containers = append(t.p.Containers, c)
		return nil
	})
}

func (t *tomlPolicy) execWritable(n *node, key string) (err error) {
	t.p.ExecRW, err = t.boolean(n, key)
	t.p.SetPos(KeyExecRW, t.pos(n.off))
	return err
}
