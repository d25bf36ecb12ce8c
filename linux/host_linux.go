// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/kernfile"
	"github.com/tholehq/thole/linux/landlock"
	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/netbpf"
	"github.com/tholehq/thole/linux/seccomp"
	"golang.org/x/sys/unix"
)

// ParentName is the one directory of the cgroup v2 mount that our leaves live
// in.
const ParentName = "thole"

// machine is a host and the handles that starts on it share.
type machine struct {
	Host
	cgroupMount string
	parent      *cgroup.Parent
	enforcer    *netbpf.Enforcer
}

// look tries what this machine can do for this caller.
func look(parent string) (*machine, error) {
	arch, ok := seccomp.Native()
	if !ok {
		return nil, fmt.Errorf("look at host: no seccomp filter for this processor")
	}
	m := &machine{Host: Host{Arch: arch, UID: os.Geteuid(), GID: os.Getegid(), Why: map[string]string{}, Remedy: map[string]string{}}}
	m.Landlock, m.Why["landlock"] = landlock.Version()
	m.LastCap = lastCap()
	m.Root = privileged()
	mount, err := cgroup.Mount()
	if err != nil {
		m.Why["cgroup"] = err.Error()
		m.Remedy["cgroup"] = "mount it: mount -t cgroup2 none /sys/fs/cgroup"
	}
	m.cgroupMount = mount
	if !m.Root {
		m.Why["bpf"], m.Remedy["bpf"] = "cgroup programs need root (CAP_BPF, CAP_NET_ADMIN, CAP_SYS_ADMIN)", "run as root"
		m.UserNS = m.tryUserNS()
		return m, nil
	}
	m.Proc = true
	if mount == "" {
		return m, nil
	}
	if m.parent, err = cgroup.OpenParent(mount, parent); err != nil {
		m.Why["cgroup"], m.Remedy["cgroup"] = err.Error(), "run where the cgroup v2 mount is writable"
		m.Root = false
		m.UserNS = m.tryUserNS()
		return m, nil
	}
	m.Controllers = m.parent.Available()
	m.enforcer, err = netbpf.Open(netbpf.Options{CgroupRoot: mount, Parent: parent})
	if err != nil {
		m.Why["bpf"] = err.Error()
		m.Remedy["bpf"] = netbpf.Remedy(err)
		return m, nil
	}
	m.BPF = true
	m.UnixHooks = m.enforcer.Features().Unix
	return m, nil
}

func (m *machine) close() {
	if m.enforcer != nil {
		m.enforcer.Close()
	}
	if m.parent != nil {
		m.parent.Close()
	}
}

// privileged reports whether the caller has the capabilities that the full
// launch uses.
func privileged() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return false
	}
	for _, c := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE} {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	// Capabilities over a user namespace only do not count: id-mapped mounts
	// and cgroups need the first one. Its map covers every id (user_namespaces(7)).
	b, err := kernfile.Read("/proc/self/uid_map")
	if err != nil {
		return false
	}
	f := strings.Fields(b)
	return len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

func lastCap() int {
	b, err := kernfile.Read("/proc/sys/kernel/cap_last_cap")
	if err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(b)); err == nil && n >= 0 && n < 64 {
			return n
		}
	}
	// Without the file: up to the first that the kernel does not know.
	n := -1
	for c := 0; c < 64; c++ {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err != nil {
			break
		}
		n = c
	}
	return n
}

// tryUserNS makes a mount namespace in a user namespace and changes a mount
// there: some hosts let the namespace be made and refuse what it is for.
func (m *machine) tryUserNS() bool {
	attr := &launch.Blob{Bytes: make([]byte, 32), Text: "{propagation=private}"}
	attr.Bytes[18] = 0x04 // MS_PRIVATE, 1<<18
	list := launch.List{{Call: launch.MountSetattr, Args: []launch.Arg{launch.Named(^uint64(99), "AT_FDCWD"), launch.Str("/"), launch.Named(0x8000, "AT_RECURSIVE"), launch.Ptr(attr), launch.Num(32)}, Step: "userns"}}
	fix := "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces>0), or run as root"
	img, err := list.Assemble(nil, -1)
	if err != nil {
		return false
	}
	defer img.Free()
	cloning.Lock()
	pid, fd, err := img.Clone(cloneNewUser|cloneNewNS, -1)
	cloning.Unlock()
	if err != nil {
		m.Why["userns"], m.Remedy["userns"] = "user namespaces are not allowed to this user: "+err.Error(), fix
		return false
	}
	_ = unix.Close(fd)
	var ws syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if err != nil || ws.ExitStatus() != 0 {
		m.Why["userns"], m.Remedy["userns"] = "mounts are refused in a user namespace", fix
		return false
	}
	return true
}
