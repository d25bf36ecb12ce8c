// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A schema is the part of JSON Schema that schema.json uses. Reading it is
// strict, so a keyword that this test does not check cannot slip in.
type schema struct {
	Schema     string                     `json:"$schema"`
	Title      string                     `json:"title"`
	Text       string                     `json:"description"`
	Ref        string                     `json:"$ref"`
	Type       string                     `json:"type"`
	Format     string                     `json:"format"`
	Enum       []string                   `json:"enum"`
	MinLength  int                        `json:"minLength"`
	Minimum    *uint64                    `json:"minimum"`
	Maximum    *uint64                    `json:"maximum"`
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
	Names      *schema                    `json:"propertyNames"`
	Additional json.RawMessage            `json:"additionalProperties"`
	AllOf      []*schema                  `json:"allOf"`
	If         *schema                    `json:"if"`
	Then       *schema                    `json:"then"`
	Else       *schema                    `json:"else"`
	Defs       map[string]*schema         `json:"$defs"`
}

func readSchema(t *testing.T, raw []byte) *schema {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	s := new(schema)
	if err := d.Decode(s); err != nil {
		t.Fatalf("schema.json: %v", err)
	}
	return s
}

// allows validates v, as encoding/json with UseNumber reads it.
func (s *schema) allows(t *testing.T, root *schema, v any) bool {
	if s.Ref != "" {
		def := root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if def == nil {
			t.Fatalf("no definition %s", s.Ref)
		}
		return def.allows(t, root, v)
	}
	switch s.Type {
	case "string":
		if x, ok := v.(string); !ok || len(x) < s.MinLength || s.Format == "date-time" && !isTime(x) {
			return false
		}
	case "integer":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		var u uint64
		if json.Unmarshal([]byte(n), &u) != nil || u < *s.Minimum || u > *s.Maximum {
			return false
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return false
		}
	case "object":
		if _, ok := v.(map[string]any); !ok {
			return false
		}
	case "":
	default:
		t.Fatalf("unknown type %q", s.Type)
	}
	if x, ok := v.(string); s.Enum != nil && (!ok || !slices.Contains(s.Enum, x)) {
		return false
	}
	if m, ok := v.(map[string]any); ok && !s.allowsMembers(t, root, m) {
		return false
	}
	for _, sub := range s.AllOf {
		if !sub.allows(t, root, v) {
			return false
		}
	}
	if s.If != nil {
		branch := s.Else
		if s.If.allows(t, root, v) {
			branch = s.Then
		}
		return branch.allows(t, root, v)
	}
	return true
}

func (s *schema) allowsMembers(t *testing.T, root *schema, m map[string]any) bool {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	for name, v := range m {
		if s.Names != nil && !s.Names.allows(t, root, name) {
			return false
		}
		raw, ok := s.Properties[name]
		if !ok {
			raw = s.Additional
		}
		switch string(raw) {
		case "", "true":
		case "false":
			return false
		default:
			if !readSchema(t, raw).allows(t, root, v) {
				return false
			}
		}
	}
	return true
}

func isTime(s string) bool {
	v, err := time.Parse(time.RFC3339Nano, s)
	return err == nil && !v.IsZero()
}

func TestSchemaHasEveryField(t *testing.T) {
	s := readSchema(t, []byte(Schema))
	same(t, "fields", keys(s.Properties), tags(reflect.TypeFor[Event]()))
	same(t, "totals", keys(readSchema(t, s.Properties["totals"]).Properties), tags(reflect.TypeFor[Totals]()))
	same(t, "types", readSchema(t, s.Properties["type"]).Enum, texts(Types()))
	same(t, "capabilities", s.Defs["capability"].Enum, texts(Capabilities()))
	same(t, "enforcers", readSchema(t, s.Properties["enforcer"]).Enum, texts(Enforcers()))
	same(t, "stages", readSchema(t, s.Properties["where"]).Enum, texts(Wheres()))
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: schema.json has %q, Go has %q", what, got, want)
	}
}

func keys(m map[string]json.RawMessage) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// TestSchemaAgreesWithParse mixes fields of all types and values, right and
// wrong, and expects the schema and Parse to answer alike.
func TestSchemaAgreesWithParse(t *testing.T) {
	root := readSchema(t, []byte(Schema))
	pool := map[string][]string{"stray": {`1`}}
	for _, e := range samples() {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(e.AppendJSON(nil), &m); err != nil {
			t.Fatal(err)
		}
		for name, v := range m {
			pool[name] = append(pool[name], string(v))
		}
	}
	for name := range pool {
		if name == "until" { // that until follows since is beyond a schema
			continue
		}
		pool[name] = append(pool[name], `""`, `"x"`, `0`, `-1`, `true`, `null`, `{}`, `[]`)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range pool {
			if !yield(n) {
				return
			}
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 20000 {
		base := samples()[rng.IntN(len(samples()))]
		var m map[string]json.RawMessage
		if err := json.Unmarshal(base.AppendJSON(nil), &m); err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(3) {
			name := names[rng.IntN(len(names))]
			if rng.IntN(3) == 0 {
				delete(m, name)
			} else {
				m[name] = json.RawMessage(pool[name][rng.IntN(len(pool[name]))])
			}
		}
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(line)
		if err != nil && err.Error() == "until: before since" {
			continue
		}
		if err == nil {
			accepted++
		}
		d := json.NewDecoder(strings.NewReader(string(line)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if allowed := root.allows(t, root, v); allowed != (err == nil) {
			t.Fatalf("%s\nthe schema says %v, Parse %v", line, allowed, err)
		}
	}
	if accepted < 5000 || accepted > 15000 {
		t.Errorf("%d of 20000 were good: the mix proves little", accepted)
	}
}
