// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// errLayout says that a pinned map is not of this build's layout.
var errLayout = errors.New("the map has the layout of another version")

// layout returns the sizes of a pinned map's key and value.
func layout(name string) (key, value uint32) {
	switch name {
	case "meta":
		return 4, flat.MetaSize
	case "policies":
		return 8, flat.PolicySize
	case "stats":
		return 8, flat.StatsSize
	case "slots":
		return 8, 4
	case "rings":
		return 4, 4
	case "rules":
		return flat.RuleKeySize, flat.NodeSize
	case "special":
		return flat.AddrKeySize, flat.SpecialSize
	case "own", "resolvers":
		return flat.NsAddrSize, 4
	}
	return 0, 0
}

// renew makes way for this build's maps where others are pinned that have
// another layout. It is refused while a sandbox lives whose policy is in
// them. The links stay: they are given programs with the new maps in place,
// and until then they know no new sandbox, which refuses it everything.
func (e *Enforcer) renew(im *flat.Image) error {
	missing, stale := false, ""
	for i := range im.Maps {
		m := &im.Maps[i]
		if m.Contents != nil {
			continue
		}
		path := e.pins + "/" + m.Name
		fd, err := objGet(path)
		if err == unix.ENOENT {
			missing = true
			continue
		}
		if err != nil {
			return &Error{Step: "open pinned map", Object: path, Err: err, Hint: hint(err)}
		}
		var info mapInfo
		err = objInfo(fd, &info)
		unix.Close(fd)
		if err != nil {
			return &Error{Step: "inspect pinned map", Object: path, Err: err}
		}
		if info.Type != m.Type || info.Key != m.KeySize || info.Value != m.ValueSize || info.Flags&^unix.BPF_F_RDONLY != m.Flags {
			stale = path
		}
	}
	if stale == "" {
		if missing {
			// They would look for policies in the map that is gone.
			return e.dropForeign(func(string) bool { return true })
		}
		return nil
	}
	who, err := e.busy()
	if err != nil {
		return err
	}
	if who != "" {
		return &Error{Step: "renew pinned map", Object: stale, Err: errLayout,
			Hint: who + " is still under the rules of that version: end it, then try again"}
	}
	// First what tells others that the rest is whole.
	if err := unix.Unlink(e.pins + "/meta"); err != nil && err != unix.ENOENT {
		return &Error{Step: "remove pin", Object: e.pins + "/meta", Err: err, Hint: hint(err)}
	}
	if err := e.dropForeign(func(string) bool { return true }); err != nil {
		return err
	}
	pins, err := os.ReadDir(e.pins)
	if err != nil {
		return &Error{Step: "list pins", Object: e.pins, Err: err}
	}
	for _, pin := range pins {
		if known, ok := strings.CutPrefix(pin.Name(), "link_"); ok && isProgram(known) {
			continue
		}
		if err := unix.Unlink(e.pins + "/" + pin.Name()); err != nil {
			return &Error{Step: "remove pin", Object: e.pins + "/" + pin.Name(), Err: err, Hint: hint(err)}
		}
	}
	return nil
}

func isProgram(name string) bool {
	for hook := range hooks {
		if hooks[hook].program == name {
			return name != ""
		}
	}
	return false
}

// busy names something that lives under the pinned policies, or returns "".
// The caller holds the lock, so that no sandbox comes into being meanwhile.
func (e *Enforcer) busy() (string, error) {
	if populated(e.parentFD) {
		return "a process in " + e.parentPath, nil
	}
	leaves, err := os.ReadDir(e.parentPath)
	if err != nil {
		return "", &Error{Step: "list cgroups", Object: e.parentPath, Err: err}
	}
	for _, leaf := range leaves {
		if !leaf.IsDir() {
			continue
		}
		// Its owner may be about to start the first process in it.
		path := e.parentPath + "/" + leaf.Name()
		if owned(path) {
			return "the owner of " + path, nil
		}
	}
	// Cgroups of others, by the policies, if these can be read at all.
	fd, err := objGet(e.pins + "/policies")
	if err == unix.ENOENT {
		return "", nil
	}
	if err != nil {
		return "", &Error{Step: "open pinned map", Object: e.pins + "/policies", Err: err, Hint: hint(err)}
	}
	defer unix.Close(fd)
	var info mapInfo
	if err := objInfo(fd, &info); err != nil || info.Key != 8 {
		return "", nil
	}
	ids, err := mapKeys[uint64](fd)
	if err != nil {
		return "", &Error{Step: "list map", Object: "policies", Err: err}
	}
	for _, id := range ids {
		cg, err := e.openCgroup(id)
		if err != nil {
			continue
		}
		live := populated(cg)
		unix.Close(cg)
		if live {
			return "a process in the cgroup with the id " + utoa(id), nil
		}
	}
	return "", nil
}

// owned reports whether somebody holds the lock of a sandbox's directory.
func owned(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// populated reports whether a process is in a cgroup or below it.
func populated(cgroup int) bool {
	fd, err := unix.Openat(cgroup, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var buf [256]byte
	n, _ := unix.Read(fd, buf[:])
	return bytes.Contains(buf[:max(n, 0)], []byte("populated 1"))
}

// openCgroup opens a cgroup's directory by its id, which is its file handle
// (FILEID_KERNFS of include/linux/exportfs.h). ESTALE: it is gone.
func (e *Enforcer) openCgroup(id uint64) (int, error) {
	const fileidKernfs = 0xfe
	var h [8]byte
	binary.NativeEndian.PutUint64(h[:], id)
	return unix.OpenByHandleAt(e.parentFD, unix.NewFileHandle(fileidKernfs, h[:]), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
}
