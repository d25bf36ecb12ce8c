// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysv makes one object of each kind of System V IPC, open to everyone.
func (s *surroundings) sysv() error {
	const key = 0x74686f6c
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		return fmt.Errorf("make shared memory: %w", err)
	}
	s.close = append(s.close, func() { unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	msg, _, e := unix.Syscall(unix.SYS_MSGGET, key, unix.IPC_CREAT|0o666, 0)
	if e != 0 {
		return fmt.Errorf("make message queue: %w", e)
	}
	s.close = append(s.close, func() { unix.Syscall(unix.SYS_MSGCTL, msg, unix.IPC_RMID, 0) })
	sem, _, e := unix.Syscall(unix.SYS_SEMGET, key, 1, unix.IPC_CREAT|0o666)
	if e != 0 {
		return fmt.Errorf("make semaphore: %w", e)
	}
	s.close = append(s.close, func() { unix.Syscall(unix.SYS_SEMCTL, sem, 0, unix.IPC_RMID) })
	s.words["shm"], s.words["key"] = strconv.Itoa(shm), strconv.Itoa(key)
	s.words["msg"], s.words["sem"] = strconv.Itoa(int(msg)), strconv.Itoa(int(sem))
	return nil
}

// queue makes a POSIX message queue, open to everyone.
func (s *surroundings) queue() error {
	name := "thole-prison-" + strconv.Itoa(os.Getpid())
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	old := unix.Umask(0)
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o666, 0, 0, 0)
	unix.Umask(old)
	if e != 0 {
		return fmt.Errorf("make message queue: %w", e)
	}
	s.close = append(s.close, func() {
		unix.Close(int(fd))
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	})
	s.words["mqueue"] = name
	return nil
}

// files lie where sandboxes have directories of their own.
func (s *surroundings) files() error {
	for _, f := range []string{"/dev/shm/thole-host", "/tmp/thole-host"} {
		if err := os.WriteFile(f, []byte("x"), 0o644); err != nil {
			return err
		}
		s.close = append(s.close, func() { os.Remove(f) })
	}
	return nil
}

// terminal opens a pseudo-terminal. Reads of its master do not wait.
func terminal() (master, slave *os.File, err error) {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("find terminal: %w", err)
	}
	sl, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	if err := unix.SetNonblock(m, true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(m), "master"), os.NewFile(uintptr(sl), "slave"), nil
}
