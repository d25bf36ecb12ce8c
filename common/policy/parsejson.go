// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Kinds lists the values of POLICY.json's "kind".
func Kinds() []string { return []string{"coordinator", "runner", "service", "probe", "doctor"} }

// defaultKind is what a document means that names no kind.
const defaultKind = "runner"

// maxModule bounds a module's id, in bytes.
const maxModule = 255

// netModes are the spellings of NetMode, in the order of its constants.
var netModes = [...]string{"none", "egress-allowlist", "egress-any"}

// ParseJSON reads POLICY.json, the launcher's document. name is what errors
// call the document. The syntax of paths is that of this host. The file
// schema.json describes the same fields; a test holds the two together.
func ParseJSON(name string, data []byte) (*Policy, error) {
	d, err := openDocument(name, data)
	if err != nil {
		return nil, err
	}
	root, err := readJSON(d)
	if err != nil {
		return nil, err
	}
	r := &jsonPolicy{document: d, p: &Policy{Kind: defaultKind}}
	if err := d.table(root, "", r.fields()); err != nil {
		return nil, err
	}
	if err := r.check(root); err != nil {
		return nil, err
	}
	return r.p, nil
}

// jsonPolicy fills a Policy from POLICY.json.
type jsonPolicy struct {
	*document
	p *Policy
}

func (r *jsonPolicy) fields() []field {
	p := r.p
	return []field{
		{"module", r.module},
		{"kind", r.kind},
		{"ro", r.roots(&p.FS.RO)},
		{"rw", r.roots(&p.FS.RW)},
		{"rd", r.roots(&p.FS.RD)},
		{"wo", r.roots(&p.FS.WO)},
		{"net", r.net},
		{"proxy_port", r.proxyPort},
		{"broker_socket", r.broker},
		{"gpu", r.flag(&p.GPU, KeyGPU)},
		{"exec_rw", r.flag(&p.ExecRW, KeyExecRW)},
		{"exe", r.exe},
	}
}

func (r *jsonPolicy) roots(to *[]Path) func(*node, string) error {
	return func(n *node, key string) error { return r.rootPaths(n, key, to) }
}

func (r *jsonPolicy) flag(to *bool, set string) func(*node, string) error {
	return func(n *node, key string) (err error) {
		*to, err = r.boolean(n, key)
		r.p.SetPos(set, r.pos(n.off))
		return err
	}
}

func (r *jsonPolicy) module(n *node, key string) error {
	s, err := r.str(n, key)
	if err != nil {
		return err
	}
	if len(s) > maxModule {
		return r.err(n.off, key, "", "the id is %d bytes long, the limit is %d", len(s), maxModule)
	}
	for _, c := range s {
		if c < 0x20 || c == 0x7f {
			return r.err(n.off, key, "", "the id %q holds a control character", s)
		}
	}
	r.p.Module = s
	r.p.SetPos(KeyModule, r.pos(n.off))
	return nil
}

func (r *jsonPolicy) kind(n *node, key string) error {
	i, err := r.choice(n, key, Kinds()...)
	if err != nil {
		return err
	}
	r.p.Kind = Kinds()[i]
	r.p.SetPos(KeyKind, r.pos(n.off))
	return nil
}

func (r *jsonPolicy) net(n *node, key string) error {
	i, err := r.choice(n, key, netModes[:]...)
	if err != nil {
		return err
	}
	r.p.Net.Mode = NetMode(i)
	r.p.SetPos(KeyNetMode, r.pos(n.off))
	return nil
}

func (r *jsonPolicy) proxyPort(n *node, key string) error {
	if n.kind == kindNull {
		return nil
	}
	v, err := r.integer(n, key, 1, 65535)
	if err != nil {
		return err
	}
	r.p.Net.ProxyPort = uint16(v)
	r.p.SetPos(KeyProxyPort, r.pos(n.off))
	return nil
}

func (r *jsonPolicy) broker(n *node, key string) error {
	if n.kind == kindNull {
		return nil
	}
	s, err := r.str(n, key)
	if err != nil {
		return err
	}
	p, perr := cleanBroker(hostStyle(), s)
	if perr != nil {
		return r.at(n.off, key, perr)
	}
	r.p.Broker = p
	r.p.SetPos(KeyBroker, r.pos(n.off))
	return nil
}

// exe keeps the path as given: the launcher compares it with argv[0].
func (r *jsonPolicy) exe(n *node, key string) error {
	if n.kind == kindNull {
		return nil
	}
	s, err := r.str(n, key)
	if err != nil {
		return err
	}
	if perr := checkPath(hostStyle(), s); perr != nil {
		return r.at(n.off, key, perr)
	}
	r.p.Exe = s
	r.p.SetPos(KeyExe, r.pos(n.off))
	return nil
}

// check holds the rules that concern two fields.
func (r *jsonPolicy) check(root *node) error {
	port := root.get("proxy_port")
	switch mode := r.p.Net.Mode; {
	case mode == Allowlist && r.p.Net.ProxyPort == 0:
		return r.err(root.get("net").value.off, "proxy_port", "give the port that the local proxy listens on",
			"net = %q needs a proxy_port", mode)
	case mode != Allowlist && r.p.Net.ProxyPort != 0:
		return r.err(port.value.off, "proxy_port", "leave it out, or ask for egress-allowlist",
			"a proxy_port has no use with net = %q", mode)
	}
	return nil
}
