// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

var hex64 = strings.Repeat("a", 64)

var badSandbox = []input{
	{"too large", "# " + strings.Repeat("x", MaxDocument)},
	{"byte order mark", "\ufeff[sandbox]\n"},
	{"invalid UTF-8", "[sandbox]\n# caf\xe9\n"},
	{"not TOML", "{\"sandbox\": {}}"},
	{"unclosed table", "[sandbox\n"},
	{"unclosed string", "[sandbox]\nnet = { mode = \"none }\n"},
	{"unclosed list", "[sandbox]\ntools = [\n"},
	{"unclosed inline table", "[sandbox]\nnet = {"},
	{"missing value", "[sandbox]\nexec_writable =\n"},
	{"unquoted value", "[sandbox]\nexec_writable = yes\n"},
	{"two values on a line", "[sandbox]\nexec_writable = true contract = 1\n"},
	{"carriage return alone", "[sandbox]\rcontract = 1\n"},
	{"unknown top-level table", "[sandbox]\n\n[fs]\nrw = [\"/a\"]\n"},
	{"unknown top-level key", "contract = 1\n"},
	{"unknown key", "[sandbox]\n  exec_writeable = true\n"},
	{"unknown dotted key", "[sandbox]\nnet.modes = \"none\"\n"},
	{"unknown sub-table", "[sandbox.network]\nmode = \"none\"\n"},
	{"sandbox is a value", "sandbox = true\n"},
	{"sandbox is a list of tables", "[[sandbox]]\ncontract = 1\n"},
	{"repeated key", "[sandbox]\ncontract = 1\ncontract = 1\n"},
	{"repeated key in quotes", "[sandbox]\ncontract = 1\n\"contract\" = 1\n"},
	{"repeated table", "[sandbox]\ncontract = 1\n[sandbox]\n"},
	{"table over dotted key", "[sandbox]\nnet.mode = \"none\"\n[sandbox.net]\nmode = \"egress-any\"\n"},
	{"dotted key into a table", "[sandbox.net]\nmode = \"none\"\n[sandbox]\nnet.allow = []\n"},
	{"key into an inline table", "[sandbox]\nnet = { mode = \"none\" }\nnet.allow = [\"a.example\"]\n"},
	{"table over an inline table", "[sandbox]\nnet = { mode = \"none\" }\n[sandbox.net.x]\n"},
	{"table over a value", "[sandbox]\ncontract = 1\n[sandbox.contract]\n"},
	{"list of tables over a list", "[sandbox]\ntools = []\n[[sandbox.tools]]\nid = \"a\"\n"},
	{"list of tables over a table", "[sandbox.net]\n[[sandbox.net]]\n"},
	{"table over a list of tables", "[[sandbox.tools]]\nid = \"a\"\n[sandbox.tools]\n"},
	{"repeated key in an inline table", "[sandbox]\nnet = { mode = \"none\", mode = \"egress-any\" }\n"},
	{"many keys", "[sandbox]\n" + manyKeys(65)},
	{"deep nesting", "[sandbox]\ntools = " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n"},
	{"deep dotted key", "[sandbox]\n" + strings.Repeat("a.", 400000) + "a = 1\n"},
	{"deep table", "[" + strings.Repeat("a.", 400000) + "a]\n"},
	{"deep lists, deeper than the library reads", "a = " + strings.Repeat("[", 500000) + "\n"},
	{"long key", "[sandbox]\n" + strings.Repeat("é", 100000) + " = 1\n\"" + strings.Repeat("é", 100000) + "\" = 1\n"},
	{"long quoted key", "[sandbox]\n\"" + strings.Repeat("é", 100000) + "\" = [" + strings.Repeat("1,", 100000) + "]\n"},
	{"contract 2", "[sandbox]\ncontract = 2\n"},
	{"contract is a string", "[sandbox]\ncontract = \"1\"\n"},
	{"contract is a decimal", "[sandbox]\ncontract = 1.0\n"},
	{"contract is a date", "[sandbox]\ncontract = 2026-01-01\n"},
	{"net is a string", "[sandbox]\nnet = \"none\"\n"},
	{"mode unknown", "[sandbox]\nnet = { mode = \"all\" }\n"},
	{"mode is a boolean", "[sandbox]\nnet = { mode = true }\n"},
	{"allow without mode", "[sandbox]\nnet = { allow = [\"a.example\"] }\n"},
	{"allow with none", "[sandbox.net]\nmode = \"none\"\nallow = [\"a.example\"]\n"},
	{"allow with any", "[sandbox.net]\nallow = [\"a.example\"]\nmode = \"egress-any\"\n"},
	{"empty allow with any", "[sandbox.net]\nmode = \"egress-any\"\nallow = []\n"},
	{"allowlist without allow", "[sandbox]\nnet = { mode = \"egress-allowlist\" }\n"},
	{"allowlist with empty allow", "[sandbox]\nnet = { mode = \"egress-allowlist\", allow = [ ] }\n"},
	{"allow is a string", "[sandbox.net]\nmode = \"egress-allowlist\"\nallow = \"a.example\"\n"},
	{"allow holds a number", "[sandbox.net]\nmode = \"egress-allowlist\"\nallow = [\"a.example\", 443]\n"},
	{"allow holds an address", "[sandbox.net]\nmode = \"egress-allowlist\"\nallow = [\n  \"a.example\",\n  # the mirror\n  \"10.0.0.1:443\",\n]\n"},
	{"allow holds a table", "[sandbox.net]\nmode = \"egress-allowlist\"\nallow = [\"a.example\", # first\n  { host = \"b\" }]\n"},
	{"allow holds a list", "[sandbox.net]\nmode = \"egress-allowlist\"\nallow = [\"é.example\",   [\"b\"]]\n"},
	{"tools is a table", "[sandbox]\ntools = { id = \"a\" }\n"},
	{"tool is a string", "[sandbox]\ntools = [\"java17\"]\n"},
	{"tool without id", "[sandbox]\ntools = [{ trust = \"code-exec\" }]\n"},
	{"tool with empty id", "[sandbox]\ntools = [{ id = \"\" }]\n"},
	{"tool id in capitals", "[sandbox]\ntools = [{ id = \"Java17\" }]\n"},
	{"tool id starts with a dot", "[sandbox]\ntools = [{ id = \"..\" }]\n"},
	{"tool id is a path", "[sandbox]\ntools = [{ id = \"usr/bin\" }]\n"},
	{"tool id too long", "[sandbox]\ntools = [{ id = \"" + strings.Repeat("x", 129) + "\" }]\n"},
	{"tool trust unknown", "[sandbox]\ntools = [{ id = \"a\", trust = \"full\" }]\n"},
	{"tool with unknown key", "[sandbox]\n[[sandbox.tools]]\nid = \"a\"\n[[sandbox.tools]]\nid = \"b\"\nversion = 2\n"},
	{"tool twice", "[sandbox]\ntools = [{ id = \"a\" },\n  { id = \"b\" }, { id = \"a\" }]\n"},
	{"gpu is a boolean", "[sandbox]\ndevices = { gpu = true }\n"},
	{"gpu unknown", "[sandbox]\ndevices.gpu = \"display\"\n"},
	{"device unknown", "[sandbox]\ndevices = { usb = \"all\" }\n"},
	{"container is a string", "[sandbox]\ncontainers = [\"alpine\"]\n"},
	{"container without image", "[sandbox]\ncontainers = [{ platform = \"linux/amd64\" }]\n"},
	{"container without platform", "[sandbox]\ncontainers = [{ image = \"alpine@sha256:" + hex64 + "\" }]\n"},
	{"container without digest", "[sandbox]\ncontainers = [{ image = \"docker.io/org/tool:1.2\", platform = \"linux/amd64\" }]\n"},
	{"container with short digest", "[sandbox]\ncontainers = [{ image = \"a@sha256:" + hex64[1:] + "\", platform = \"linux/amd64\" }]\n"},
	{"container with capital digest", "[sandbox]\ncontainers = [{ image = \"a@sha256:A" + hex64[1:] + "\", platform = \"linux/amd64\" }]\n"},
	{"container with sha512", "[sandbox]\ncontainers = [{ image = \"a@sha512:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container with two digests", "[sandbox]\ncontainers = [{ image = \"a@sha256:" + hex64 + "@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container in capitals", "[sandbox]\ncontainers = [{ image = \"Alpine@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container with empty name", "[sandbox]\ncontainers = [{ image = \"@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container with empty tag", "[sandbox]\ncontainers = [{ image = \"a:@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container with bad port", "[sandbox]\ncontainers = [{ image = \"r.example:0/a@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container with a scheme", "[sandbox]\ncontainers = [{ image = \"docker://a@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"container platform unknown", "[sandbox]\ncontainers = [{ image = \"a@sha256:" + hex64 + "\", platform = \"linux/386\" }]\n"},
	{"container twice", "[sandbox]\ncontainers = [{ image = \"a@sha256:" + hex64 + "\", platform = \"linux/amd64\" },\n{ image = \"a@sha256:" + hex64 + "\", platform = \"linux/amd64\" }]\n"},
	{"exec_writable is a string", "[sandbox]\nexec_writable = \"false\"\n"},
}

var badOperator = []input{
	{"unknown table", "[fs]\nrw = [\"/a\"]\n[limit]\npids = 1\n"},
	{"unknown list", "[fs]\nrwx = [\"/a\"]\n"},
	{"fs is a list", "fs = [\"/a\"]\n"},
	{"rw is a string", "[fs]\nrw = \"/a\"\n"},
	{"rw relative", "[fs]\nrw = [\"/a\", \"b\"]\n"},
	{"rw of a home", "[fs]\nrw = [\"~/work\"]\n"},
	{"rw root", "[fs]\nrw = [\"//\"]\n"},
	{"rw with dots", "[fs]\nrw = [\"/srv/../etc\"]\n"},
	{"rw with line break", "[fs]\nrw = [\"\"\"/a\nb\"\"\"]\n"},
	{"rw with NUL", "[fs]\nrw = [\"/a\\u0000\"]\n"},
	{"mem_gb zero", "[limits]\nmem_gb = 0\n"},
	{"mem_gb negative", "[limits]\nmem_gb = -1.5\n"},
	{"mem_gb nan", "[limits]\nmem_gb = nan\n"},
	{"mem_gb inf", "[limits]\nmem_gb = inf\n"},
	{"mem_gb minus inf", "[limits]\nmem_gb = -inf\n"},
	{"mem_gb absurd", "[limits]\nmem_gb = 1e9\n"},
	{"mem_gb overflow", "[limits]\nmem_gb = 1e400\n"},
	{"mem_gb tiny", "[limits]\nmem_gb = 0.0000001\n"},
	{"mem_gb is a string", "[limits]\nmem_gb = \"4\"\n"},
	{"mem_gb with unit", "[limits]\nmem_gb = 4g\n"},
	{"cpus zero", "[limits]\ncpus = 0.0\n"},
	{"cpus absurd", "[limits]\ncpus = 1_000_000\n"},
	{"cpus is a boolean", "[limits]\ncpus = true\n"},
	{"pids zero", "[limits]\npids = 0\n"},
	{"pids negative", "[limits]\npids = -5\n"},
	{"pids decimal", "[limits]\npids = 10.5\n"},
	{"pids absurd", "[limits]\npids = 4194305\n"},
	{"pids overflow", "[limits]\npids = 99999999999999999999\n"},
	{"limit unknown", "[limits]\nmem = 4\n"},
	{"net.default unknown", "[net]\ndefault = \"drop\"\n"},
	{"net.default is a boolean", "[net]\ndefault = true\n"},
	{"net.mode unknown", "[net]\nmode = \"egress-any\"\n"},
	{"net unknown", "[net]\nallowed = []\n"},
	{"rules are a string", "[net]\nallow = \"10.0.0.0/8\"\n"},
	{"rule is a number", "[net]\ndeny = [10]\n"},
	{"rule with host bits", "[net]\nallow = [\"192.0.2.0/24\",\n  \"10.1.2.3/8:443/tcp\"]\n"},
	{"rule with a name", "[net]\ndeny = [\"example.org:443\"]\n"},
	{"sandbox is wrong, too", "[sandbox]\ncontract = 3\n"},
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k")
		b.WriteString(strings.Repeat("x", i))
		b.WriteString(" = 1\n")
	}
	return b.String()
}

func TestParseSandboxBad(t *testing.T) {
	badGolden(t, "bad-sandbox.golden", badSandbox, func(s string) (any, error) { return ParseSandbox("sandbox.toml", []byte(s)) })
}

func TestParseOperatorBad(t *testing.T) {
	posixOnly(t)
	badGolden(t, "bad-operator.golden", badOperator, func(s string) (any, error) { return ParseOperator("policy.toml", []byte(s)) })
}
