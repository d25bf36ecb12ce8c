// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// TestFresh makes the image and the types from the committed object again.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	img, src := filepath.Join(dir, "net.img"), filepath.Join(dir, "abi_gen.go")
	if err := run("../../net_bpfel.o", img, src); err != nil {
		t.Fatal(err)
	}
	same(t, img, "../../flat/net.img")
	same(t, src, "../../flat/abi_gen.go")
}

// compiler is the version of clang that made the committed objects.
const compiler = "14."

// TestCompiled compiles the source again. Another compiler makes other code,
// so the committed object is compared only with the version that made it.
func TestCompiled(t *testing.T) {
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Skip("no clang: ", err)
	}
	if !bytes.Contains(version, []byte("clang version "+compiler)) {
		line, _, _ := bytes.Cut(version, []byte("\n"))
		t.Skipf("%s did not make the committed objects, clang %s did", line, compiler)
	}
	for _, name := range []string{"net", "lsm", "verify"} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), name+".o")
			cmd := exec.Command("clang", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-mcpu=v3", "-target", "bpfel", "-c", name+".bpf.c", "-o", out)
			cmd.Dir = "../.."
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
			now, committed := listing(t, out), listing(t, "../../"+name+"_bpfel.o")
			if len(now) != len(committed) {
				t.Fatalf("%d programs, the committed object has %d: run go generate ./bpf", len(now), len(committed))
			}
			for prog := range now {
				if now[prog] != committed[prog] {
					t.Errorf("%s is not fresh: run go generate ./bpf", prog)
				}
			}
		})
	}
}

// listing returns each program's instructions as text, without source lines,
// which hold the path of the source.
func listing(t *testing.T, object string) map[string]string {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, p := range spec.Programs {
		var b strings.Builder
		for _, ins := range p.Instructions {
			fmt.Fprintf(&b, "%v\n", ins.WithSource(nil))
		}
		out[name] = b.String()
	}
	return out
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s is not fresh: run go generate ./bpf", b)
	}
}
