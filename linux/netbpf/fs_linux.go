// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// bpfFS returns the first of places that is on a bpf file system, or mounts
// one on the first that takes it. The caller holds the lock.
func bpfFS(places []string) (string, error) {
	for _, p := range places {
		if isBPFFS(p) {
			return p, nil
		}
	}
	var first error
	for _, p := range places {
		err := mountBPF(p)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = &Error{Step: "mount bpf file system on", Object: p, Err: err,
				Hint: "mount one there: mount -t bpf bpf " + p}
		}
	}
	return "", first
}

func isBPFFS(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && uint32(st.Type) == unix.BPF_FS_MAGIC
}

func mountBPF(path string) error {
	// sysfs takes no directories, and needs none: it has /sys/fs/bpf.
	for i := 1; i <= len(path); i++ {
		if i == len(path) || path[i] == '/' {
			if err := unix.Mkdir(path[:i], 0o755); err != nil && err != unix.EEXIST && err != unix.EPERM && err != unix.EROFS {
				return err
			}
		}
	}
	return unix.Mount("bpf", path, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700")
}

// readFile returns what can be read of a file.
func readFile(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	size := 64 << 10
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Size > 0 {
		size = int(st.Size) + 1
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return buf
		}
		buf = buf[:len(buf)+n]
	}
}

// hint is what an operator can do about err.
func hint(err error) string {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN in the initial user namespace, and no lockdown=confidentiality"
	case errors.Is(err, unix.ENOSYS):
		return "the kernel has no bpf(2): CONFIG_BPF_SYSCALL"
	case errors.Is(err, unix.EROFS):
		return "the file system is mounted read-only"
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return "the kernel lacks this: CONFIG_CGROUP_BPF, CONFIG_DEBUG_INFO_BTF"
	case errors.Is(err, unix.ENOSPC):
		return "the map or the cgroup's list of programs is full"
	case errors.Is(err, unix.ENOENT):
		return "is the cgroup v2 hierarchy mounted there?"
	}
	return ""
}
