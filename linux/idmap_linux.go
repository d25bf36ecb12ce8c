// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tholehq/thole/linux/kernfile"
	"github.com/tholehq/thole/linux/launch"
	"golang.org/x/sys/unix"
)

// cloning is held by a start from making the ends of pipes that its child alone
// must hold until they are closed here, and by every other clone: a child gets
// a copy of all descriptors, and one that waits at its gate with a copy of
// another's status pipe would keep that from ending.
var cloning sync.Mutex

// swapMap maps the id owner on disk to the id job, and every other id to
// itself, but for job, which nobody owns. So the job owns what the owner owns
// and is a stranger to everyone else's files (user_namespaces(7), the lines of
// uid_map).
func swapMap(owner, job int) string {
	const last = math.MaxUint32 - 1 // (uid_t)-1 is no id
	var b strings.Builder
	line := func(from, to, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "%d %d %d\n", from, to, n)
		}
	}
	if owner == job {
		line(0, 0, last+1)
		return b.String()
	}
	lo, hi := min(owner, job), max(owner, job)
	line(0, 0, lo)
	line(lo+1, lo+1, hi-lo-1)
	line(hi+1, hi+1, last-hi)
	line(owner, job, 1)
	return b.String()
}

// userNamespace makes a user namespace with the given maps and returns a
// descriptor of it. Its first process waits while the maps are written, and
// is killed: an end of file on its pipe would not do, because another start's
// child may hold a copy of the other end.
func userNamespace(uidMap, gidMap string) (int, error) {
	var gate [2]int
	if err := unix.Pipe2(gate[:], unix.O_CLOEXEC); err != nil {
		return -1, fmt.Errorf("make pipe: %w", err)
	}
	defer unix.Close(gate[0])
	defer unix.Close(gate[1])
	// It keeps nothing of its starter's: if that is killed, it must neither hold
	// a lock nor the other end of its own pipe, and end.
	handles := map[string]int{hGate: gate[0]}
	list := append(closeOthers(handles), launch.Op{Call: launch.Read, Args: gateArgs(), Want: launch.Any(), Step: "idmap"})
	img, err := list.Assemble(handles, -1)
	if err != nil {
		return -1, err
	}
	defer img.Free()
	cloning.Lock()
	pid, pidfd, err := img.Clone(cloneNewUser, -1)
	cloning.Unlock()
	if err != nil {
		return -1, fmt.Errorf("make user namespace: %w", err)
	}
	defer func() {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		reap(pid)
		_ = unix.Close(pidfd)
	}()
	if err := writeMaps(pid, uidMap, gidMap, false); err != nil {
		return -1, err
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open user namespace: %w", err)
	}
	return fd, nil
}

// writeMaps writes the id maps of a process that was made in a user namespace
// of its own. denyGroups is what an unprivileged writer of gid_map must do
// first (user_namespaces(7)).
func writeMaps(pid int, uidMap, gidMap string, denyGroups bool) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	type file struct{ name, text string }
	files := []file{{"uid_map", uidMap}, {"gid_map", gidMap}}
	if denyGroups {
		files = append([]file{{"setgroups", "deny"}}, files...)
	}
	for _, f := range files {
		if err := kernfile.WriteAt(unix.AT_FDCWD, dir+f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

// reap waits for a child of ours.
func reap(pid int) (syscall.WaitStatus, syscall.Rusage) {
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, &ru); err != syscall.EINTR {
			return ws, ru
		}
	}
}
