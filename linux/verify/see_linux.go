// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"os"
	"strconv"

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
	for name, to := range map[string]*string{"status": &s.Status, "cgroup": &s.Cgroup} {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return Seen{}, fmt.Errorf("open %s/%s: %w", path, name, err)
		}
		f := os.NewFile(uintptr(fd), name)
		b, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return Seen{}, fmt.Errorf("read %s/%s: %w", path, name, err)
		}
		*to = string(b)
	}
	// Not readable without privilege once the child has changed its ids; then
	// the check that needs them fails, or was not asked for.
	s.Mount = link(dir, "ns/mnt")
	s.IPC = link(dir, "ns/ipc")
	return s, nil
}

func link(dir int, name string) string {
	buf := make([]byte, 64)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
