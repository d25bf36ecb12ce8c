// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
)

const fullOperator = `
[sandbox]
net = { mode = "egress-allowlist", allow = ["*.example.org:8443"] }
tools = [{ id = "java17", trust = "code-exec" }]
containers = [{ image = "a@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", platform = "linux/amd64" }]
[fs]
rd = ["/in"]
wo = ["/out"]
[limits]
mem_gb = 1
cpus = 1
pids = 1
[net]
deny = ["10.0.0.0/8:80-81/tcp"]
default = "allow"
mode = "audit"
`

const fullJSON = `{"module": "m", "kind": "probe", "ro": ["/a"], "rw": ["/b"], "net": "egress-allowlist", "proxy_port": 1,
	"broker_socket": "/s", "gpu": true, "exec_rw": true, "exe": "/e"}`

// full returns a policy in which the documents set whatever they can.
func full(t *testing.T) *Policy {
	t.Helper()
	posixOnly(t)
	a, err := ParseJSON("POLICY.json", []byte(fullJSON))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseOperator("policy.toml", []byte(fullOperator))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Combine(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// leaves calls f for each exported field under v that is no struct, an
// element of each list included. Positions are left out.
func leaves(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[Pos]():
	case v.Kind() == reflect.Struct && v.NumField() > 0 && v.Type().Field(0).IsExported():
		for i := range v.NumField() {
			if sf := v.Type().Field(i); sf.IsExported() {
				leaves(v.Field(i), name+"."+sf.Name, f)
			}
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		leaves(v.Index(0), name+"[0]", f)
		f(name, v)
	default:
		f(name, v)
	}
}

// TestNoFieldForgotten: each field of Policy can be set by a document, is
// printed, and survives Combine.
func TestNoFieldForgotten(t *testing.T) {
	// PortLo and PortHi of 0 are written as no port; Text is not meaning.
	notPrinted := []string{".Net.Rules[0].Text"}
	p := full(t)
	leaves(reflect.ValueOf(p).Elem(), "", func(name string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("no document of the test sets Policy%s", name)
		}
	})
	names := 0
	leaves(reflect.ValueOf(full(t)).Elem(), "", func(name string, _ reflect.Value) {
		names++
		q := full(t)
		leaves(reflect.ValueOf(q).Elem(), "", func(n string, v reflect.Value) {
			if n == name {
				v.SetZero()
			}
		})
		if q.String() == p.String() && !slices.Contains(notPrinted, name) {
			t.Errorf("String does not show Policy%s", name)
		}
	})
	if names < 30 {
		t.Errorf("only %d fields seen", names)
	}
	c, err := Combine(p, nil)
	if err != nil || !reflect.DeepEqual(p, c) {
		t.Errorf("Combine loses a field: %v\n%s\n%s", err, p, c)
	}
	if c, err = Combine(nil, p); err != nil || c.String() != p.String() {
		t.Errorf("Combine loses a field of its second policy: %v\n%s\n%s", err, p, c)
	}
}

// TestSchema holds schema.json against the parser: same fields, same values.
func TestSchema(t *testing.T) {
	data, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Type                 any
		AdditionalProperties *bool
		Properties           map[string]struct {
			Description      string
			Type             any
			Enum             []string
			Ref              string `json:"$ref"`
			OneOf            []map[string]any
			Minimum, Maximum int
			MaxLength        int
			Default          any
		}
		Defs map[string]map[string]any `json:"$defs"`
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if s.AdditionalProperties == nil || *s.AdditionalProperties || s.Type != "object" {
		t.Error("the schema admits unknown fields")
	}
	fields := (&jsonPolicy{document: &document{}, p: &Policy{}}).fields()
	for _, f := range fields {
		if _, ok := s.Properties[f.name]; !ok {
			t.Errorf("the schema lacks %q", f.name)
		}
	}
	// One value of each type for each property: the parser takes it exactly
	// where the schema's type does.
	samples := map[string]string{"string": `"/a"`, "integer": "8080", "null": "null", "boolean": "true", "array": `["/a"]`, "object": "{}", "number": "1.5"}
	for name, prop := range s.Properties {
		if find(fields, name) == nil {
			t.Errorf("the parser does not know %q", name)
			continue
		}
		if prop.Description == "" {
			t.Errorf("%q has no description", name)
		}
		var types []string
		switch v := prop.Type.(type) {
		case string:
			types = []string{v}
		case []any:
			for _, e := range v {
				types = append(types, e.(string))
			}
		default:
			switch {
			case prop.Ref == "#/$defs/paths":
				types = []string{"array"}
			case prop.OneOf != nil:
				types = []string{"string", "null"}
			}
		}
		for _, v := range prop.Enum {
			doc := `{"proxy_port": 1, "net": "egress-allowlist", "` + name + `": "` + v + `"}`
			if name == "net" {
				doc = `{"net": "` + v + `"}`
				if v == "egress-allowlist" {
					doc = `{"proxy_port": 1, "net": "` + v + `"}`
				}
			}
			if _, err := ParseJSON("POLICY.json", []byte(doc)); err != nil {
				t.Errorf("the parser refuses %s = %q: %v", name, v, err)
			}
		}
		if prop.Enum != nil {
			continue
		}
		if hostStyle() != posix {
			continue // the samples hold POSIX paths
		}
		for typ, sample := range samples {
			doc := `{"` + name + `": ` + sample + `}`
			if name == "proxy_port" && sample != "null" {
				doc = `{"net": "egress-allowlist", "` + name + `": ` + sample + `}`
			}
			_, err := ParseJSON("POLICY.json", []byte(doc))
			if want := slices.Contains(types, typ); (err == nil) != want {
				t.Errorf("%s of type %s: schema %v, parser %v", name, typ, want, err)
			}
		}
	}
	if e := s.Properties["net"].Enum; !slices.Equal(e, netModes[:]) {
		t.Errorf("net: schema has %v, parser %v", e, netModes)
	}
	if e := s.Properties["kind"].Enum; !slices.Equal(e, Kinds()) {
		t.Errorf("kind: schema has %v, parser %v", e, Kinds())
	}
	if s.Properties["module"].MaxLength != maxModule || s.Properties["proxy_port"].Minimum != 1 || s.Properties["proxy_port"].Maximum != 65535 {
		t.Error("bounds of the schema differ from the parser's")
	}
	for m := None; m <= Any; m++ {
		if netModes[m] != m.String() {
			t.Errorf("mode %d is %q and %q", m, netModes[m], m)
		}
	}
}

// TestPosOf: a scalar that was written is known to be, whatever its value.
func TestPosOf(t *testing.T) {
	p, err := ParseJSON("POLICY.json", []byte("{\"gpu\": false,\n \"net\": \"none\"}"))
	if err != nil {
		t.Fatal(err)
	}
	if pos, ok := p.PosOf(KeyNetMode); !ok || pos.String() != "POLICY.json:2:9" {
		t.Errorf("net.mode at %v, %v", pos, ok)
	}
	if pos, ok := p.PosOf(KeyGPU); !ok || pos != (Pos{File: "POLICY.json", Line: 1, Column: 9}) {
		t.Errorf("gpu at %v, %v", pos, ok)
	}
	if pos, ok := p.PosOf(KeyExe); ok || pos != (Pos{}) {
		t.Errorf("exe at %v, %v", pos, ok)
	}
	p.SetPos(KeyGPU, Pos{Flag: "--gpu"})
	p.SetPos(KeyExe, Pos{Flag: "--exe /x"})
	if pos, ok := p.PosOf(KeyGPU); !ok || pos.String() != "--gpu" {
		t.Errorf("gpu at %v, %v", pos, ok)
	}
	if pos, ok := p.PosOf(KeyExe); !ok || pos.String() != "--exe /x" {
		t.Errorf("exe at %v, %v", pos, ok)
	}
	if got := (Pos{File: "f"}).String(); got != "f" {
		t.Errorf("a position without a line is %q", got)
	}
}
