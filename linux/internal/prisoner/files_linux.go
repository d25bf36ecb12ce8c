// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"read":       read,
		"list":       list,
		"write":      onPath(func(p string) error { return openClose(p, unix.O_WRONLY) }),
		"append":     onPath(func(p string) error { return openClose(p, unix.O_WRONLY|unix.O_APPEND) }),
		"open-rdwr":  onPath(func(p string) error { return openClose(p, unix.O_RDWR) }),
		"truncate":   onPath(func(p string) error { return unix.Truncate(p, 0) }),
		"open-trunc": onPath(func(p string) error { return openClose(p, unix.O_WRONLY|unix.O_TRUNC) }),
		"create":     onPath(func(p string) error { return openClose(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }),
		"fill":       fill,
		"tmpfile":    onPath(func(p string) error { return openClose(p, unix.O_RDWR|unix.O_TMPFILE) }),
		"unlink":     onPath(func(p string) error { return unix.Unlink(p) }),
		"rmdir":      onPath(func(p string) error { return unix.Rmdir(p) }),
		"mkdir":      onPath(func(p string) error { return unix.Mkdir(p, 0o755) }),
		"chdir":      onPath(func(p string) error { return unix.Access(p, unix.X_OK) }),
		"readlink":   onPath(func(p string) error { _, err := unix.Readlink(p, make([]byte, 256)); return err }),
		"mkfifo":     onPath(func(p string) error { return unix.Mkfifo(p, 0o644) }),
		"rename":     onTwo(unix.Rename),
		"exchange": onTwo(func(a, b string) error {
			return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		}),
		"link":    onTwo(unix.Link),
		"symlink": onTwo(unix.Symlink),
		"mknod":   mknod,
		"handle":  openByHandle,
		"link-fd": linkFD,
		"find":    find,
		"meet":    meet,
		"same":    same,
		"stat":    onPath(func(p string) error { return unix.Access(p, unix.F_OK) }),
		"watch":   onPath(watch),
	})
}

func onPath(f func(string) error) act {
	return func(a []string) (string, error) { return "", f(a[0]) }
}

func onTwo(f func(a, b string) error) act {
	return func(a []string) (string, error) { return "", f(a[0], a[1]) }
}

// openClose never blocks and never takes a terminal.
func openClose(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// read opens and reads a byte: some files of /proc refuse only that.
func read(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	_, err = unix.Read(fd, make([]byte, 1))
	if err == unix.EISDIR {
		err = nil
	}
	return "", at("read", err)
}

func list(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	_, err = unix.Getdents(fd, make([]byte, 4096))
	return "", at("getdents", err)
}

// fill creates a file and writes to it.
func fill(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return "", at("write", err)
}

func mknod(a []string) (string, error) {
	dev := map[string]struct {
		mode uint32
		dev  uint64
	}{"null": {unix.S_IFCHR, unix.Mkdev(1, 3)}, "mem": {unix.S_IFCHR, unix.Mkdev(1, 1)}, "disk": {unix.S_IFBLK, unix.Mkdev(254, 0)}, "whiteout": {unix.S_IFCHR, 0}}[a[1]]
	err := unix.Mknod(a[0], dev.mode|0o666, int(dev.dev))
	if err == nil {
		unix.Unlink(a[0])
	}
	return "", err
}

func openByHandle(a []string) (string, error) {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
	if err != nil {
		return "", at("name_to_handle_at", err)
	}
	dir, err := unix.Open(a[1], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, h, unix.O_RDONLY)
	if err == nil {
		unix.Close(fd)
	}
	return "", err
}

// linkFD opens the second path's file for reading by a name of its
// descriptor: a path-only descriptor gives no more than the path does.
func linkFD(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", at("open", err)
	}
	defer unix.Close(fd)
	return "", openClose("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY)
}

// find counts the files with a name below a directory, unreadable parts left
// out.
func find(a []string) (string, error) {
	n := 0
	err := fs.WalkDir(os.DirFS(a[0]), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == a[1] {
			n++
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return "found " + strconv.Itoa(n), nil
}

// meet leaves a file in a directory and says what it found there of others.
func meet(a []string) (string, error) {
	names, err := os.ReadDir(a[0])
	if err != nil {
		return "", errors.Unwrap(err)
	}
	var seen []string
	for _, n := range names {
		seen = append(seen, n.Name())
	}
	sort.Strings(seen)
	f, err := os.Create(a[0] + "/" + a[1])
	if err != nil {
		return "", errors.Unwrap(err)
	}
	f.Close()
	return "seen [" + strings.Join(seen, " ") + "]", nil
}

// same says whether two directories are one, by what the kernel numbers them.
func same(a []string) (string, error) {
	var x, y unix.Stat_t
	if err := unix.Stat(a[0], &x); err != nil {
		return "", err
	}
	if err := unix.Stat(a[1], &y); err != nil {
		return "", err
	}
	return strconv.FormatBool(x.Dev == y.Dev && x.Ino == y.Ino), nil
}

// watch asks to be told of what happens to a file or in a directory
// (inotify(7)).
func watch(p string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return at("inotify_init1", err)
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, p, unix.IN_ALL_EVENTS)
	return err
}
