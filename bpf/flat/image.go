// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package flat

import (
	_ "embed"
	"encoding/binary"
	"errors"
)

// Map describes one map to create.
type Map struct {
	Name       string
	Type       uint32
	KeySize    uint32
	ValueSize  uint32
	MaxEntries uint32
	Flags      uint32
	// Inner is the template of what a map of maps holds, or nil.
	Inner *Map
	// Contents is the value of key 0 of a frozen array (read-only data), or
	// nil. Such a map belongs to one load and is never pinned.
	Contents []byte
}

// RelocKind says what a Reloc puts into an instruction.
type RelocKind uint8

// The kinds of relocation.
const (
	RelocMap   RelocKind = iota + 1 // a map's descriptor
	RelocValue                      // the address of a value of a map's key 0
	RelocKfunc                      // the BTF id of a kernel function
)

// Reloc says that the instruction at index Insn refers to Name.
type Reloc struct {
	Insn uint32
	Kind RelocKind
	Name string
}

// Program is one program to load.
type Program struct {
	Name       string
	Type       uint32
	AttachType uint32
	Insns      []byte // 8 bytes each, little-endian
	Relocs     []Reloc
}

// Image is everything that one load creates.
type Image struct {
	Maps     []Map
	Programs []Program
}

//go:embed net.img
var net string

// Net decodes the image of the network programs.
func Net() (*Image, error) { return Decode([]byte(net)) }

// magic starts every image; its last byte is the format's version.
const magic = "THOLEIM\x01"

var errImage = errors.New("decode bpf image: truncated or malformed")

// Encode returns the image's bytes: the magic, then every field in order,
// numbers as 32 bits little-endian, strings and lists after their length.
func (im *Image) Encode() []byte {
	w := writer(magic)
	w.num(len(im.Maps))
	for i := range im.Maps {
		w.mapping(&im.Maps[i])
	}
	w.num(len(im.Programs))
	for _, p := range im.Programs {
		w.text(p.Name)
		w.num(int(p.Type))
		w.num(int(p.AttachType))
		w.text(string(p.Insns))
		w.num(len(p.Relocs))
		for _, r := range p.Relocs {
			w.num(int(r.Insn))
			w.num(int(r.Kind))
			w.text(r.Name)
		}
	}
	return w
}

// Decode parses an image. The result refers to b.
func Decode(b []byte) (*Image, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, errImage
	}
	r := reader{b: b[len(magic):]}
	im := &Image{}
	for n := r.count(); n > 0; n-- {
		im.Maps = append(im.Maps, r.mapping(true))
	}
	for n := r.count(); n > 0; n-- {
		p := Program{Name: string(r.bytes()), Type: r.num(), AttachType: r.num(), Insns: r.bytes()}
		for k := r.count(); k > 0; k-- {
			p.Relocs = append(p.Relocs, r.reloc())
		}
		if len(p.Insns)%8 != 0 {
			r.bad = true
		}
		for _, rel := range p.Relocs {
			if uint64(rel.Insn)*8+8 > uint64(len(p.Insns)) {
				r.bad = true
			}
		}
		im.Programs = append(im.Programs, p)
	}
	if r.bad || len(r.b) != 0 {
		return nil, errImage
	}
	return im, nil
}

type writer []byte

func (w *writer) num(n int)     { *w = binary.LittleEndian.AppendUint32(*w, uint32(n)) }
func (w *writer) text(s string) { w.num(len(s)); *w = append(*w, s...) }

func (w *writer) mapping(m *Map) {
	w.text(m.Name)
	for _, n := range []uint32{m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags} {
		w.num(int(n))
	}
	w.text(string(m.Contents))
	if m.Inner == nil {
		w.num(0)
		return
	}
	w.num(1)
	w.mapping(m.Inner)
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) num() uint32 {
	if len(r.b) < 4 {
		r.bad, r.b = true, nil
		return 0
	}
	n := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return n
}

// count is a number of things of which each takes at least one byte.
func (r *reader) count() uint32 {
	n := r.num()
	if uint64(n) > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

func (r *reader) bytes() []byte {
	n := r.count()
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) reloc() Reloc {
	rel := Reloc{Insn: r.num()}
	// Compared before it is narrowed: 257 is no kind, not kind 1.
	switch kind := r.num(); kind {
	case uint32(RelocMap), uint32(RelocValue), uint32(RelocKfunc):
		rel.Kind = RelocKind(kind)
	default:
		r.bad, r.b = true, nil
	}
	rel.Name = string(r.bytes())
	return rel
}

func (r *reader) mapping(outer bool) Map {
	m := Map{Name: string(r.bytes()), Type: r.num(), KeySize: r.num(), ValueSize: r.num(), MaxEntries: r.num(), Flags: r.num()}
	if c := r.bytes(); len(c) > 0 {
		m.Contents = c
	}
	switch n := r.num(); {
	case n == 1 && outer:
		in := r.mapping(false)
		m.Inner = &in
	case n != 0:
		r.bad, r.b = true, nil
	}
	return m
}
