// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"unix-connect":  onUnix(func(fd int, a unix.Sockaddr) error { return unix.Connect(fd, a) }),
		"unix-sendto":   onUnix(func(fd int, a unix.Sockaddr) error { return unix.Sendto(fd, []byte("x"), 0, a) }),
		"unix-sendmsg":  onUnix(func(fd int, a unix.Sockaddr) error { return unix.Sendmsg(fd, []byte("x"), nil, a, 0) }),
		"unix-bind":     onUnix(func(fd int, a unix.Sockaddr) error { return unix.Bind(fd, a) }),
		"unix-relative": unixRelative,
		"unix-link":     unixLink,
		"unix-listen":   unixListen,
		"unix-autobind": unixAutobind,
		"pair":          pair,
		"pair-escape":   pairEscape,
		"pair-rights":   pairRights,
	})
}

// unixAddress is a path, or an abstract name after "@".
func unixAddress(name string) unix.Sockaddr { return &unix.SockaddrUnix{Name: name} }

func onUnix(f func(int, unix.Sockaddr) error) act {
	return func(a []string) (string, error) {
		fd, err := open(a[0])
		if err != nil {
			return "", at("socket", err)
		}
		defer unix.Close(fd)
		return "", f(fd, unixAddress(a[1]))
	}
}

// unixRelative connects by a path that is relative to a directory nearby.
func unixRelative(a []string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(here, a[1])
	if err != nil {
		return "", err
	}
	return acts["unix-connect"]([]string{a[0], rel})
}

// unixLink connects through a symbolic link that it makes.
func unixLink(a []string) (string, error) {
	if err := unix.Symlink(a[1], a[2]); err != nil {
		return "", at("symlink", err)
	}
	defer unix.Unlink(a[2])
	return acts["unix-connect"]([]string{a[0], a[2]})
}

func unixListen(a []string) (string, error) {
	fd, err := open(a[0])
	if err != nil {
		return "", at("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, unixAddress(a[1])); err != nil {
		return "", at("bind", err)
	}
	return "", unix.Listen(fd, 1)
}

// unixAutobind lets the kernel choose an abstract name (unix(7)), where a
// peer outside could find it.
func unixAutobind(a []string) (string, error) {
	fd, err := open(a[0])
	if err != nil {
		return "", at("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{}); err != nil {
		return "", at("bind", err)
	}
	return "", unix.Listen(fd, 1)
}

func pair(a []string) (string, error) {
	k := kinds[a[0]]
	fds, err := unix.Socketpair(k[0], k[1]|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return "", err
}

// pairEscape turns an end of a datagram pair to another socket.
func pairEscape(a []string) (string, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", at("socketpair", err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return "", unix.Sendto(fds[0], []byte("x"), 0, unixAddress(a[0]))
}

// pairRights passes a descriptor within the sandbox: nobody outside is there
// to pass one in, and this is what programs do among themselves.
func pairRights([]string) (string, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", at("socketpair", err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if err := unix.Sendmsg(fds[0], []byte("x"), unix.UnixRights(1), nil, 0); err != nil {
		return "", at("send", err)
	}
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(fds[1], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return "", err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return strings.TrimSpace("no rights arrived"), nil
	}
	got, err := unix.ParseUnixRights(&msgs[0])
	for _, fd := range got {
		unix.Close(fd)
	}
	return "", err
}
