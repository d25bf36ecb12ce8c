// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stranger owns the second writable root where root starts the sandbox: what
// the job writes there must be the stranger's.
const stranger = 1234

// world is the part of the file system that the tables speak of: the granted
// roots, and what lies beside them with the widest permissions, so that
// nothing but the sandbox refuses it.
type world struct {
	dir   string
	kind  string
	owner int
	wo    bool // there is an outbox
}

func makeWorld(t *testing.T, o *order) *world {
	t.Helper()
	w := &world{dir: o.World, kind: o.Kind, owner: o.uid(), wo: o.Mode != "any"}
	program, err := os.ReadFile(o.Program)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		path string
		mode os.FileMode
		data []byte // nil: a directory
	}{
		{"ro", 0o755, nil}, {"ro/file", 0o666, []byte("ro")}, {"ro/dir", 0o777, nil}, {"ro/tool", 0o755, program}, {"ro/suid", 0o4755, program},
		{"rw", 0o755, nil}, {"rw/mine", 0o644, []byte("rw")}, {"rw/tool", 0o755, program}, {"rw/dir", 0o755, nil}, {"rw/kept", 0o777, nil}, {"rw/kept/file", 0o666, []byte("kept")},
		{"rw/gone", 0o644, []byte("x")}, {"rw/moved", 0o644, []byte("x")}, {"rw/across", 0o644, []byte("x")}, {"rw/flags", 0o644, []byte("x")}, {"rw/other", 0o644, []byte("x")},
		{"rw2", 0o755, nil}, {"rw2/theirs", 0o600, []byte("rw2")},
		{"rd", 0o755, nil}, {"rd/file", 0o666, []byte("rd")}, {"rd/dir", 0o777, nil}, {"rd/tool", 0o755, program},
		{"wo", 0o755, nil}, {"wo/old", 0o666, []byte("wo")}, {"wo/dir", 0o777, nil},
		{"outside", 0o777, nil}, {"outside/file", 0o666, []byte("outside")}, {"outside/dir", 0o777, nil}, {"outside/tool", 0o755, program},
		{"outside/home", 0o755, nil}, {"outside/home/alice", 0o755, nil}, {"outside/home/alice/key", 0o644, []byte("key")},
		{"sock", 0o755, nil}, {"ram", 0o755, nil},
	} {
		p := filepath.Join(w.dir, f.path)
		if f.data == nil {
			err = os.Mkdir(p, 0o755)
		} else {
			err = os.WriteFile(p, f.data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		// The set-user-id file stays root's.
		owner := w.owner
		if f.path == "ro/suid" {
			owner = 0
		}
		if strings.HasPrefix(f.path, "rw2") && w.owner == 0 {
			owner = stranger
		}
		if err := os.Chown(p, owner, owner); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(p, uint32(f.mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range [][2]string{{"../outside/file", "rw/out"}, {"../outside", "rw/outdir"}, {"../ro/file", "rw/in"}} {
		if err := os.Symlink(link[0], filepath.Join(w.dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"outside/file", "rd/file"} {
		if err := unix.Setxattr(filepath.Join(w.dir, f), "user.kept", []byte("x"), 0); err != nil {
			t.Fatalf("%s: the test's directory must be able to hold attributes: %v", w.dir, err)
		}
	}
	return w
}

// snapshot describes everything outside of the writable roots. Without a view
// metadata is not held, which the tables say; then contents alone are told.
func (w *world) snapshot() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, p)
		top, _, _ := strings.Cut(rel, "/")
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", rel, err)
			return nil
		}
		inside := (top == "rw" || top == "rw2") && !strings.HasPrefix(rel, "rw/kept")
		if rel == "." || inside || top == "sock" || strings.HasPrefix(rel, "wo/new") || rel == "wo" || rel == "ro" || strings.HasSuffix(rel, ".json") {
			return nil
		}
		if top == "rw" && w.kind == "bare" {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			fmt.Fprintf(&b, "%s: %v\n", rel, err)
			return nil
		}
		fmt.Fprintf(&b, "%s: %o size %d", rel, st.Mode&unix.S_IFMT, st.Size)
		if st.Size < 100 && st.Mode&unix.S_IFMT == unix.S_IFREG {
			data, _ := os.ReadFile(p)
			fmt.Fprintf(&b, " %q", data)
		}
		if w.kind != "bare" {
			names := make([]byte, 256)
			n, _ := unix.Llistxattr(p, names)
			fmt.Fprintf(&b, " mode %o owner %d:%d links %d modified %d attributes %q", st.Mode, st.Uid, st.Gid, st.Nlink, st.Mtim.Nano(), names[:max(n, 0)])
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String()
}

// checkOwners looks at what the job made: it belongs to the root's owner.
func (w *world) checkOwners(t *testing.T) {
	t.Helper()
	second := w.owner
	if second == 0 {
		second = stranger
	}
	for _, f := range []struct {
		path  string
		owner int
	}{{"rw/made", w.owner}, {"rw2/made", second}, {"wo/new", w.owner}} {
		if f.path == "wo/new" && !w.wo || f.path == "rw2/made" && w.kind == "same" {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(w.dir, f.path), &st); err != nil {
			t.Errorf("%s was not made: %v", f.path, err)
			continue
		}
		if int(st.Uid) != f.owner || int(st.Gid) != f.owner {
			t.Errorf("%s belongs to %d:%d, want %d", f.path, st.Uid, st.Gid, f.owner)
		}
		if st.Size != 1 {
			t.Errorf("%s holds %d bytes", f.path, st.Size)
		}
	}
}
