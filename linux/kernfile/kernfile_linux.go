// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package kernfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Read returns the file's content. Errors unwrap to the errno.
func Read(path string) (string, error) { return ReadAt(unix.AT_FDCWD, path) }

// ReadAt reads a file below the directory dir; its last segment is not
// followed if it is a symbolic link.
func ReadAt(dir int, path string) (string, error) {
	fd, err := openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 4096)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", fmt.Errorf("read %s: %w", path, err)
		case n == 0:
			return string(buf), nil
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

// WriteAt writes value to a file below dir in one call, as the kernel's
// control files take it.
func WriteAt(dir int, path, value string) error {
	fd, err := openat(dir, path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(value))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	}
}

// OpenDir opens a directory.
func OpenDir(path string) (*os.File, error) {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func openat(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
