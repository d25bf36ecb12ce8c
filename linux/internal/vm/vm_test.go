// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const dep = `kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_pci_modern_dev.ko kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_pci_modern_dev.ko:
kernel/drivers/block/virtio-blk.ko.xz: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/fs/virtio_blkfs.ko:
`

func TestLoadOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"needs first", []string{"virtio_pci"}, "virtio_ring.ko virtio.ko virtio_pci_modern_dev.ko virtio_pci.ko"},
		{"once, compressed, dash", []string{"virtio_pci", "virtio_blk"}, "virtio_ring.ko virtio.ko virtio_pci_modern_dev.ko virtio_pci.ko virtio-blk.ko.xz"},
		{"part of the kernel", []string{"ext4"}, ""},
		{"nothing", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range loadOrder(dep, c.names) {
				got = append(got, filepath.Base(m))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func FuzzLoadOrder(f *testing.F) {
	f.Add(dep, "virtio_blk")
	f.Add(": a b", "")
	f.Add("x.ko: x.ko x.ko", "x")
	f.Fuzz(func(t *testing.T, text, name string) {
		got := loadOrder(text, []string{name, name})
		for i, m := range got {
			if slices.Contains(got[:i], m) || !strings.Contains(text, m) {
				t.Fatalf("%q in %q", m, got)
			}
		}
	})
}

// entry is one of an archive as a reader sees it.
type entry struct {
	name string
	mode uint64
	data string
}

// readArchive is the format's definition, read field by field.
func readArchive(t *testing.T, b []byte) []entry {
	t.Helper()
	var out []entry
	at := 0
	pad := func() { at = (at + 3) &^ 3 }
	for {
		head := string(b[at : at+110])
		if head[:6] != "070701" {
			t.Fatalf("magic %q at %d", head[:6], at)
		}
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(head[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		size, name := int(field(6)), int(field(11))
		at += 110
		e := entry{name: strings.TrimSuffix(string(b[at:at+name]), "\x00"), mode: field(1)}
		at += name
		pad()
		e.data = string(b[at : at+size])
		at += size
		pad()
		if e.name == "TRAILER!!!" {
			if at != len(b) {
				t.Fatalf("%d bytes after the trailer", len(b)-at)
			}
			return out
		}
		out = append(out, e)
	}
}

func TestArchive(t *testing.T) {
	var a archive
	a.char("dev/console", 5, 1)
	a.file("init", 0o755, []byte("abcde"))
	a.file("a/b/c", 0o600, nil)
	a.file("a/b/d", 0o600, []byte("x"))
	got := fmt.Sprint(readArchive(t, a.bytes()))
	want := fmt.Sprint([]entry{{"dev", 0o40755, ""}, {"dev/console", 0o20600, ""}, {"init", 0o100755, "abcde"},
		{"a", 0o40755, ""}, {"a/b", 0o40755, ""}, {"a/b/c", 0o100600, ""}, {"a/b/d", 0o100600, "x"}})
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCollect(t *testing.T) {
	steps := []Step{{Name: "a"}, {Name: "b"}}
	const end = `{"Step":"a","End":{"Code":3,"Took":5}}`
	for _, c := range []struct {
		name, text string
		want       string // outputs and codes
		err        error
	}{
		{"whole", `{"Step":"a","Out":"1"}{"Step":"b","Err":"e"}` + end + `{"Step":"a","Out":"2"}{"Last":true}`, "a=12 b= ", nil},
		{"crash", `{"Step":"a","Out":"1"}`, "a=1 b= ", io.ErrUnexpectedEOF},
		{"nothing", "", "a= b= ", io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := 0
			res, err := collect(strings.NewReader(c.text), steps, func(Frame) { seen++ })
			var got string
			for _, r := range res {
				got += r.Name + "=" + r.Out + " "
			}
			if got != c.want || !errors.Is(err, c.err) || seen != strings.Count(c.text, "Step") {
				t.Errorf("%q, %v, %d frames", got, err, seen)
			}
			if strings.Contains(c.text, end) && (res[0].End == nil || res[0].End.Code != 3 || res[0].OK() || res[1].Err != "e" || res[1].OK()) {
				t.Errorf("%+v", res)
			}
		})
	}
	for _, text := range []string{"no json", `{"Step":"c"}`, `{"Step":"a","Out":1}`} {
		if _, err := collect(strings.NewReader(text), steps, nil); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := collect(strings.NewReader(""), []Step{{Name: "a"}, {Name: "a"}}, nil); err == nil {
		t.Error("two steps of one name")
	}
}

func FuzzCollect(f *testing.F) {
	f.Add([]byte(`{"Step":"a","Out":"x"}{"Step":"a","End":{"Code":0}}{"Last":true}`))
	f.Add([]byte(`{"Step":"","Out":"x"}`))
	f.Add([]byte(`{"Last":true`))
	f.Fuzz(func(t *testing.T, b []byte) {
		res, err := collect(bytes.NewReader(b), []Step{{Name: "a"}}, nil)
		if len(res) != 1 || err == nil && !bytes.Contains(b, []byte("rue")) {
			t.Fatal(res, err)
		}
	})
}

// TestBootFails: what is wrong before the guest runs is told at once, and not
// taken for the guest's fault.
func TestBootFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, "6.1"); err == nil || !strings.Contains(err.Error(), ".ci/vm 6.1") {
		t.Errorf("no kernel: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "6.1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "6.1", "release"), []byte("6.1.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := Open(dir, "6.1")
	if err != nil || k.Release != "6.1.0" {
		t.Fatal(k, err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Boot(t.Context(), Machine{Kernel: k, Init: script}); err == nil || errors.Is(err, ErrGuest) {
		t.Errorf("an init that is no program: %v", err)
	}
}

// TestJob: what the host writes the guest reads.
func TestJob(t *testing.T) {
	in := job{Modules: []string{"/m"}, Steps: []Step{{Name: "a", Argv: []string{"x", "y"}, Dir: "/d", Env: []string{"K=V"}, User: 7, Timeout: 9}}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out job
	if err := json.Unmarshal(b, &out); err != nil || fmt.Sprint(out) != fmt.Sprint(in) {
		t.Errorf("%+v, %v", out, err)
	}
}
