// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	register(map[string]act{
		"chmod":      chmod,
		"fchmod":     onFD(func(fd int) error { return unix.Fchmod(fd, 0o600) }),
		"fchmodat2":  fchmodat2,
		"chown":      onPath(func(p string) error { return unix.Chown(p, unix.Getuid(), unix.Getgid()) }),
		"chown-root": onPath(func(p string) error { return unix.Chown(p, 0, 0) }),
		"lchown":     onPath(func(p string) error { return unix.Lchown(p, unix.Getuid(), unix.Getgid()) }),
		"utimes": onPath(func(p string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		}),
		"utimes-now": onPath(func(p string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, p, nil, 0) }),
		"futimes":    onFD(func(fd int) error { return unix.Futimes(fd, []unix.Timeval{{Sec: 1}, {Sec: 1}}) }),
		"setxattr":   onPath(func(p string) error { return unix.Setxattr(p, "user.thole", []byte("x"), 0) }),
		"setxattr-trusted": onPath(func(p string) error {
			return unix.Setxattr(p, "trusted.thole", []byte("x"), 0)
		}),
		"setcap":      onPath(setcap),
		"removexattr": onPath(func(p string) error { return unix.Removexattr(p, "user.kept") }),
		"setflags":    onFD(setflags),
		"setacl":      onPath(setACL),
		"setuid-open": onPath(func(p string) error {
			fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, unix.S_ISUID|0o755)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}),
		"setuid-openat2": onPath(func(p string) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_CLOEXEC, Mode: unix.S_ISUID | 0o755})
			if err == nil {
				unix.Close(fd)
			}
			return err
		}),
		"owner": owner,
	})
}

// chmod takes an octal mode.
func chmod(a []string) (string, error) {
	mode, err := strconv.ParseUint(a[1], 8, 32)
	if err != nil {
		return "", err
	}
	return "", unix.Chmod(a[0], uint32(mode))
}

// fchmodat2 takes an octal mode (Linux 6.6).
func fchmodat2(a []string) (string, error) {
	mode, err := strconv.ParseUint(a[1], 8, 32)
	if err != nil {
		return "", err
	}
	path, err := unix.BytePtrFromString(a[0])
	if err != nil {
		return "", err
	}
	cwd := unix.AT_FDCWD
	_, _, e := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(cwd), uintptr(unsafe.Pointer(path)), uintptr(mode), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	return "", errno(e)
}

// onFD acts on a file that is open for reading.
func onFD(f func(fd int) error) act {
	return func(a []string) (string, error) {
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return "", at("open", err)
		}
		defer unix.Close(fd)
		return "", f(fd)
	}
}

// setflags sets the "no dump" attribute, which needs no privilege
// (FS_IOC_SETFLAGS, linux/fs.h).
func setflags(fd int) error {
	const nodump = 0x40
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return at("get", err)
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags^nodump)
}

// setcap gives a file CAP_SYS_ADMIN (struct vfs_cap_data, revision 2).
func setcap(p string) error {
	data := make([]byte, 20)
	data[0], data[3] = 1, 2
	data[6] = 1 << (unix.CAP_SYS_ADMIN - 16)
	return unix.Setxattr(p, "security.capability", data, 0)
}

// setACL opens a file to everyone by an access control list (acl(5), version
// 2: owner, group, other, each with all rights).
func setACL(p string) error {
	acl := []byte{2, 0, 0, 0}
	for _, tag := range []byte{0x01, 0x04, 0x20} {
		acl = append(acl, tag, 0, 7, 0, 0xff, 0xff, 0xff, 0xff)
	}
	return unix.Setxattr(p, "system.posix_acl_access", acl, 0)
}

// owner says who owns a file, in the job's eyes.
func owner(a []string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(a[0], &st); err != nil {
		return "", err
	}
	switch int(st.Uid) {
	case unix.Getuid():
		return "mine", nil
	case 0:
		return "root's", nil
	}
	return "uid " + strconv.Itoa(int(st.Uid)), nil
}
