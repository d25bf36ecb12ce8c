// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/tholehq/thole/bpf/flat"
)

func flatten(object string) (*flat.Image, *ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return nil, nil, err
	}
	im := &flat.Image{}
	used := map[string]bool{}
	for _, name := range sortedKeys(spec.Programs) {
		p, err := program(spec.Programs[name])
		if err != nil {
			return nil, nil, fmt.Errorf("program %s: %w", name, err)
		}
		for _, r := range p.Relocs {
			used[r.Name] = true
		}
		im.Programs = append(im.Programs, *p)
	}
	for _, name := range sortedKeys(spec.Maps) {
		m := spec.Maps[name]
		// The variables that only carry types for BTF: no program uses them.
		if name == ".bss" && !used[name] {
			continue
		}
		if name[0] == '.' && name != ".rodata" {
			return nil, nil, fmt.Errorf("map %s: only read-only data has a place in an image", name)
		}
		fm, err := mapping(m)
		if err != nil {
			return nil, nil, err
		}
		im.Maps = append(im.Maps, *fm)
	}
	return im, spec, nil
}

func mapping(m *ebpf.MapSpec) (*flat.Map, error) {
	out := &flat.Map{Name: m.Name, Type: uint32(m.Type), KeySize: m.KeySize, ValueSize: m.ValueSize,
		MaxEntries: m.MaxEntries, Flags: m.Flags}
	if m.InnerMap != nil {
		in, err := mapping(m.InnerMap)
		if err != nil {
			return nil, err
		}
		in.Name = m.Name + "_inner"
		out.Inner = in
	}
	for _, kv := range m.Contents {
		b, ok := kv.Value.([]byte)
		if !ok || len(m.Contents) != 1 {
			return nil, fmt.Errorf("map %s: contents are not one run of bytes", m.Name)
		}
		out.Contents = b
	}
	return out, nil
}

func program(p *ebpf.ProgramSpec) (*flat.Program, error) {
	if p.License != "GPL" {
		return nil, fmt.Errorf("licence %q, want GPL", p.License)
	}
	out := &flat.Program{Name: p.Name, Type: uint32(p.Type), AttachType: uint32(p.AttachType)}
	insns := make(asm.Instructions, len(p.Instructions))
	copy(insns, p.Instructions)
	for it := insns.Iterate(); it.Next(); {
		ins := it.Ins
		if btf.CORERelocationMetadata(ins) != nil {
			return nil, fmt.Errorf("instruction %d needs CO-RE", it.Offset)
		}
		if ins.IsFunctionCall() || ins.IsLoadOfFunctionPointer() {
			return nil, fmt.Errorf("instruction %d calls another function", it.Offset)
		}
		r := flat.Reloc{Insn: uint32(it.Offset), Name: ins.Reference()}
		switch {
		case ins.IsKfuncCall():
			r.Kind = flat.RelocKfunc
			ins.Constant = 0
			ins.Offset = 0
		case ins.IsLoadFromMap() && ins.Src == asm.PseudoMapFD:
			r.Kind = flat.RelocMap
			ins.Constant = 0
		case ins.IsLoadFromMap() && ins.Src == asm.PseudoMapValue:
			r.Kind = flat.RelocValue
			// The offset inside the value stays in the upper half.
			ins.Constant &= ^int64(0xffffffff)
		default:
			continue
		}
		if r.Name == "" {
			return nil, fmt.Errorf("instruction %d refers to nothing", it.Offset)
		}
		out.Relocs = append(out.Relocs, r)
		*ins = ins.WithReference("")
	}
	var buf bytes.Buffer
	for i := range insns {
		if _, err := insns[i].Marshal(&buf, binary.LittleEndian); err != nil {
			return nil, fmt.Errorf("instruction %d: %w", i, err)
		}
	}
	out.Insns = buf.Bytes()
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
