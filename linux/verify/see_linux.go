// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strconv"

	"github.com/tholehq/thole/linux/kernfile"
	"golang.org/x/sys/unix"
)

// See reads what the kernel shows of a thread. Everything is read through one
// handle of its /proc directory, so that a pid that is used again cannot mix
// two processes.
func See(pid, tid int) (Seen, error) {
	path := "/proc/" + strconv.Itoa(pid)
	if tid != pid {
		path += "/task/" + strconv.Itoa(tid)
	}
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Seen{}, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(dir)
	var s Seen
	for name, to := range map[string]*string{"status": &s.Status, "cgroup": &s.Cgroup, "mountinfo": &s.Mounts} {
		if *to, err = kernfile.ReadAt(dir, name); err != nil {
			return Seen{}, fmt.Errorf("look at %s: %w", path, err)
		}
	}
	// Not readable without privilege once the child has changed its ids; then
	// the check that needs them fails, or was not asked for.
	s.Mount = link(dir, "ns/mnt")
	s.IPC = link(dir, "ns/ipc")
	for i := range s.Std {
		s.Std[i] = link(dir, "fd/"+strconv.Itoa(i))
	}
	return s, nil
}

func link(dir int, name string) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
