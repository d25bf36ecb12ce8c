// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

func TestNet(t *testing.T) {
	im, err := Net()
	if err != nil {
		t.Fatal(err)
	}
	if got := im.Encode(); string(got) != net {
		t.Error("encoding what was decoded gives other bytes")
	}
	if s := sha256.Sum256([]byte(net)); string(s[:]) != Digest {
		t.Error("Digest is not that of net.img: run go generate ./bpf")
	}
	maps := map[string]bool{}
	for _, m := range im.Maps {
		if maps[m.Name] {
			t.Errorf("two maps %s", m.Name)
		}
		maps[m.Name] = true
	}
	if len(im.Programs) != 9 {
		t.Errorf("%d programs, want one for each of 9 hooks", len(im.Programs))
	}
	for _, p := range im.Programs {
		for _, r := range p.Relocs {
			if r.Kind != RelocKfunc && !maps[r.Name] {
				t.Errorf("%s refers to %s, which is no map", p.Name, r.Name)
			}
			if op := p.Insns[r.Insn*8]; r.Kind == RelocKfunc && op != 0x85 || r.Kind != RelocKfunc && op != 0x18 {
				t.Errorf("%s: relocation at %d is on opcode %#x", p.Name, r.Insn, op)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(net)[:4096])
	f.Add((&Image{Maps: []Map{{Name: "m", Inner: &Map{Name: "i"}, Contents: []byte{1}}},
		Programs: []Program{{Name: "p", Insns: make([]byte, 8), Relocs: []Reloc{{Kind: RelocMap, Name: "m"}}}}}).Encode())
	// A kind that does not fit into a RelocKind must not become one that does.
	f.Add((&Image{Programs: []Program{{Name: "p", Insns: make([]byte, 8), Relocs: []Reloc{{Kind: RelocMap}}}}}).wide())
	f.Fuzz(func(t *testing.T, b []byte) {
		im, err := Decode(b)
		if err == nil && !bytes.Equal(im.Encode(), b) {
			t.Error("decoding and encoding changes the image")
		}
	})
}

// wide returns the image with 256 added to the kind of its last relocation,
// whose name is empty.
func (im *Image) wide() []byte {
	b := im.Encode()
	b[len(b)-7]++
	return b
}
