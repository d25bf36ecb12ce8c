// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tholehq/thole"

// systems are the GOOS values whose rules are checked.
var systems = []string{"linux", "darwin", "windows"}

// A pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath, Name, Doc, Dir               string
	Standard                                 bool
	GoFiles                                  []string
	Imports, TestImports, XTestImports, Deps []string
	Incomplete                               bool
	Error                                    *struct{ Err string }
}

// rel is the package's path below the module's, "." for the root.
func (p *pkg) rel() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// ours says whether an import path lies in this module, and where.
func ours(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

// root is the module's directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("these tests run in the checkout: %v", err)
	}
	return dir
}

var listed struct {
	sync.Mutex
	packages map[string][]*pkg
}

// packages are the module's packages as goos sees them.
func packages(t *testing.T, goos string) []*pkg {
	t.Helper()
	listed.Lock()
	defer listed.Unlock()
	if list, ok := listed.packages[goos]; ok {
		return list
	}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Doc,Dir,Standard,GoFiles,Imports,TestImports,XTestImports,Deps,Incomplete,Error", "./...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("GOOS=%s go list: %v\n%s", goos, err, stderr.Bytes())
	}
	var list []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			list = append(list, p)
		}
	}
	if listed.packages == nil {
		listed.packages = make(map[string][]*pkg)
	}
	listed.packages[goos] = list
	return list
}

// files walks the checkout's own files and calls visit with slash-separated
// paths: not .git, not what is built, no fuzzing corpus.
func files(t *testing.T, visit func(name string, data []byte)) {
	t.Helper()
	dir := root(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			if name == ".git" || name == "bin" || strings.HasSuffix(name, "testdata/fuzz") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(name, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// generated says whether the file's head carries the line that marks generated
// code (https://go.dev/s/generatedcode).
func generated(data []byte) bool {
	for i, line := range bytes.SplitN(data, []byte("\n"), 8) {
		if i < 7 && bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT.")) {
			return true
		}
	}
	return false
}
