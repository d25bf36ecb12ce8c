// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

var goodJSON = []input{
	{"empty object", "{}"},
	{"space around", " \r\n\t{ } \n"},
	{"everything", `{
  "module": "org.example/tool", "kind": "service",
  "ro": ["/usr/lib/jvm/", "/opt//tool"], "rw": ["/srv/b", "/srv/a", "/srv/a/"],
  "rd": ["/in/./x"], "wo": ["/out"],
  "net": "egress-allowlist", "proxy_port": 3128,
  "broker_socket": "/run/broker.sock",
  "gpu": true, "exec_rw": true,
  "exe": "/usr/lib/../bin//python3"
}`},
	{"nulls and defaults", `{"module": "", "kind": "runner", "ro": [], "rw": [], "rd": [], "wo": [], "net": "none",
		"proxy_port": null, "broker_socket": null, "gpu": false, "exec_rw": false, "exe": null}`},
	{"port first", `{"proxy_port": 1, "net": "egress-allowlist"}`},
	{"any", `{"net": "egress-any"}`},
	{"escapes", `{"module": "\"\\\/\u00e9\ud83d\ude00é"}`},
	{"paths with odd characters", `{"ro": ["/a b", "/\u00fc", "/q\"", "/tab\t", "/..."]}`},
}

var goodSandbox = []input{
	{"empty", ""},
	{"comment alone", "# closed\n"},
	{"empty table", "[sandbox]\n"},
	{"contract alone", "[sandbox]\ncontract = 1"},
	{"everything", `
[sandbox]
contract = 1
net = { mode = "egress-allowlist", allow = ["api.example.org", "*.files.Example.org.:8443", "api.example.org:443"] }
tools = [{ id = "java17", trust = "code-exec" }, { id = "git" }]
devices = { gpu = "compute" }
containers = [{ image = "docker.io/org/tool:1.2@sha256:` + hex64 + `", platform = "linux/amd64" }]
exec_writable = true
`},
	{"other spellings", `
[sandbox.net]
mode = 'egress-allowlist'
allow = [ # hosts
  "b.example", # b

  """a.example""",
]
[[sandbox.tools]]
id = "x"
[[sandbox.tools]]
id = "y"
trust = "code-exec"
[sandbox.devices]
"gpu" = "compute"
[[sandbox.containers]]
platform = "linux/arm64"
image = "registry.example:5000/a/b__c-d.e@sha256:` + hex64 + `"
[sandbox]
exec_writable = false
`},
	{"dotted keys", "sandbox.net.mode = \"egress-any\"\nsandbox.devices.gpu = \"compute\"\n"},
	{"dotted keys in inline tables", "sandbox = { net.mode = \"none\", devices = { gpu = \"compute\" } }\r\n"},
	{"closed by words", "[sandbox]\nnet = { mode = \"none\" }\ntools = []\ndevices = {}\ncontainers = []\nexec_writable = false\n"},
	{"images", "[sandbox]\ncontainers = [\n" +
		"{ image = \"alpine@sha256:" + hex64 + "\", platform = \"linux/amd64\" },\n" +
		"{ image = \"alpine@sha256:" + hex64 + "\", platform = \"linux/arm64\" },\n" +
		"{ image = \"localhost/a:latest@sha256:" + hex64 + "\", platform = \"linux/amd64\" },\n" +
		"{ image = \"ghcr.io/a/b/c:V1.2_3-x@sha256:" + hex64 + "\", platform = \"linux/amd64\" },\n]\n"},
}

var goodOperator = []input{
	{"empty", ""},
	{"everything", `
[sandbox]
net = { mode = "egress-any" }
devices.gpu = "compute"

[fs]
ro = ["/usr/lib/jvm"]
rw = ["/srv/work/", "/srv/data"]
rd = ["/in"]
wo = ["/out"]

[limits]
mem_gb = 1.5
cpus = 2.25
pids = 512

[net]
deny = ["10.0.0.0/8", "[::/0]:25/tcp"]
allow = ["10.1.2.3:8000-8999/udp", "::ffff:192.168.0.0/112", "10.0.0.0/8"]
default = "allow"
mode = "audit"
`},
	{"allow before deny", "[net]\nallow = [\"192.0.2.1\"]\ndeny = [\"192.0.2.2\"]\ndefault = \"deny\"\nmode = \"enforce\"\n"},
	{"limits at the bounds", "[limits]\nmem_gb = 1_048_576\ncpus = 0.01\npids = 4194304\n"},
	{"limits, other spellings", "[limits]\nmem_gb = 0x10\ncpus = 5e-1\npids = +1\n"},
	{"sandbox alone", "[sandbox]\nexec_writable = true\n"},
}

// describe prints a policy with the positions that String leaves out.
func describe(p *Policy) string {
	var b strings.Builder
	b.WriteString(p.String())
	for _, s := range p.set {
		fmt.Fprintf(&b, "  %s at %v\n", s.key, s.pos)
	}
	list := func(what string, pos Pos) { fmt.Fprintf(&b, "  %s at %v\n", what, pos) }
	for _, l := range [][]Path{p.FS.RO, p.FS.RW, p.FS.RD, p.FS.WO} {
		for _, v := range l {
			list(strconv.Quote(v.Path), v.Pos)
		}
	}
	for _, v := range p.Net.Allow {
		list(v.String(), v.Pos)
	}
	for _, v := range p.Net.Rules {
		list(v.Text, v.Pos)
	}
	for _, v := range p.Tools {
		list(v.ID, v.Pos)
	}
	for _, v := range p.Containers {
		list(v.Platform, v.Pos)
	}
	return strings.ReplaceAll(b.String(), hex64, "a{64}")
}

// TestGood compares what valid documents mean with a golden. Each is parsed
// twice and combined with nothing, which changes nothing.
func TestGood(t *testing.T) {
	posixOnly(t)
	docs := []struct {
		file   string
		inputs []input
		parse  func(string, []byte) (*Policy, error)
	}{
		{"good-json.golden", goodJSON, ParseJSON},
		{"good-sandbox.golden", goodSandbox, ParseSandbox},
		{"good-operator.golden", goodOperator, ParseOperator},
	}
	for _, d := range docs {
		var b strings.Builder
		for _, in := range d.inputs {
			p, err := d.parse("doc", []byte(in.text))
			if err != nil {
				t.Errorf("%s: %v", in.name, err)
				continue
			}
			fmt.Fprintf(&b, "# %s\n%s", in.name, describe(p))
			again, err := d.parse("doc", []byte(in.text))
			if err != nil || !reflect.DeepEqual(p, again) {
				t.Errorf("%s: parsed twice differs: %v", in.name, err)
			}
			for _, pair := range [][2]*Policy{{p, nil}, {nil, p}, {p, {}}, {p, again}} {
				c, err := Combine(pair[0], pair[1])
				if err != nil {
					t.Errorf("%s: %v", in.name, err)
				} else if len(p.Net.Rules) == 0 && c.String() != p.String() {
					t.Errorf("%s: combined with nothing:\n%s", in.name, c)
				}
			}
		}
		golden(t, d.file, b.String())
	}
}

// TestJSONAgain prints every valid document as POLICY.json and reads it back.
func TestJSONAgain(t *testing.T) {
	posixOnly(t)
	for _, in := range goodJSON {
		p, err := ParseJSON("POLICY.json", []byte(in.text))
		if err != nil {
			t.Fatalf("%s: %v", in.name, err)
		}
		text, err := p.JSON()
		if err != nil {
			t.Fatalf("%s: %v", in.name, err)
		}
		again, err := ParseJSON("POLICY.json", text)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", in.name, err, text)
		}
		if again.String() != p.String() {
			t.Errorf("%s: read back differs:\n%s\n%s", in.name, p, again)
		}
	}
}

// TestJSONRefuses names what POLICY.json cannot carry.
func TestJSONRefuses(t *testing.T) {
	for _, doc := range []string{
		"[net]\ndeny = [\"192.0.2.1\"]\n",
		"[net]\ndefault = \"deny\"\n",
		"[net]\nmode = \"audit\"\n",
		"[limits]\npids = 1\n",
		"[sandbox.net]\nmode = \"egress-allowlist\"\nallow = [\"a.example\"]\n",
	} {
		p, err := ParseOperator("policy.toml", []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := p.JSON(); err == nil {
			t.Errorf("%q became %s", doc, b)
		}
	}
}

// TestOperatorAgain writes a policy of each kind of rule anew from its
// canonical text and reads it back.
func TestOperatorAgain(t *testing.T) {
	posixOnly(t)
	for _, in := range goodOperator {
		p, err := ParseOperator("policy.toml", []byte(in.text))
		if err != nil {
			t.Fatalf("%s: %v", in.name, err)
		}
		doc := operatorTOML(p)
		again, err := ParseOperator("policy.toml", []byte(doc))
		if err != nil {
			t.Fatalf("%s: %v in\n%s", in.name, err, doc)
		}
		if again.String() != p.String() {
			t.Errorf("%s: read back differs:\n%s\n%s", in.name, p, again)
		}
	}
}

// operatorTOML writes a policy that ParseOperator made. Rules of one verdict
// must stand together.
func operatorTOML(p *Policy) string {
	var b strings.Builder
	list := func(key string, n int, item func(int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(&b, "%s = [", key)
		for i := range n {
			fmt.Fprintf(&b, "%s, ", item(i))
		}
		b.WriteString("]\n")
	}
	b.WriteString("[sandbox]\n")
	fmt.Fprintf(&b, "net.mode = %q\n", p.Net.Mode)
	list("net.allow", len(p.Net.Allow), func(i int) string { return strconv.Quote(p.Net.Allow[i].String()) })
	fmt.Fprintf(&b, "exec_writable = %v\n", p.ExecRW)
	if p.GPU {
		b.WriteString("devices.gpu = \"compute\"\n")
	}
	list("tools", len(p.Tools), func(i int) string {
		if p.Tools[i].CodeExec {
			return fmt.Sprintf("{ id = %q, trust = \"code-exec\" }", p.Tools[i].ID)
		}
		return fmt.Sprintf("{ id = %q }", p.Tools[i].ID)
	})
	list("containers", len(p.Containers), func(i int) string {
		return fmt.Sprintf("{ image = %q, platform = %q }", p.Containers[i].Image, p.Containers[i].Platform)
	})
	b.WriteString("[fs]\n")
	for _, l := range []struct {
		key   string
		paths []Path
	}{{"ro", p.FS.RO}, {"rw", p.FS.RW}, {"rd", p.FS.RD}, {"wo", p.FS.WO}} {
		list(l.key, len(l.paths), func(i int) string { return tomlString(l.paths[i].Path) })
	}
	b.WriteString("[limits]\n")
	for _, l := range []struct {
		key   string
		v     uint64
		scale float64
	}{{"mem_gb", p.Limits.MemoryBytes, 1 << 30}, {"cpus", p.Limits.MilliCPU, 1000}, {"pids", p.Limits.Pids, 1}} {
		if l.v != 0 {
			fmt.Fprintf(&b, "%s = %s\n", l.key, number(float64(l.v)/l.scale))
		}
	}
	b.WriteString("[net]\n")
	for rules := p.Net.Rules; len(rules) > 0; {
		n := 1
		for n < len(rules) && rules[n].Deny == rules[0].Deny {
			n++
		}
		key := "allow"
		if rules[0].Deny {
			key = "deny"
		}
		list(key, n, func(i int) string { return strconv.Quote(rules[i].String()) })
		rules = rules[n:]
	}
	if p.Net.Default != Unset {
		fmt.Fprintf(&b, "default = %q\n", p.Net.Default)
	}
	if p.Net.Audit {
		b.WriteString("mode = \"audit\"\n")
	}
	return b.String()
}

// tomlString writes a basic string with every odd character escaped.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < 0x20 || r == '"' || r == '\\' || r == 0x7f {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
