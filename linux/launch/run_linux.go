// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cloneRun and selfRun are assembly: the child runs no Go.
func cloneRun(args unsafe.Pointer, size uintptr, header unsafe.Pointer) uintptr
func selfRun(header unsafe.Pointer)

// entersyscall tells the scheduler that this thread is gone for a while, so
// that the goroutine that opens the gate can run even where there is one
// processor.
//
//go:linkname entersyscall runtime.entersyscall
func entersyscall()

// cloneArgs is struct clone_args of the kernel's sched.h, version 2.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal uint64
	stack, stackSize, tls, setTID, setTIDSize     uint64
	cgroup                                        uint64
}

const (
	cloneVM           = 0x100
	clonePidfd        = 0x1000
	cloneIntoCgroup   = 0x200000000
	cloneClearSighand = 0x100000000
)

// Clone runs the list in a new process and returns its pid and a pidfd.
//
// namespaces are CLONE_NEW* flags; cgroup is an open cgroup v2 directory that
// the process is born in, or -1. The child shares the parent's memory until it
// executes its program (no page table is copied, so the cost does not grow
// with the parent's heap), has no signal handler, and its own descriptors.
// The image must stay until the child has executed or ended.
func (i *Image) Clone(namespaces uint64, cgroup int) (pid, pidfd int, err error) {
	i.put(hdrPidfd, 0)
	args := cloneArgs{
		flags:      namespaces | cloneVM | clonePidfd | cloneClearSighand,
		pidfd:      uint64(uintptr(i.header())) + hdrPidfd,
		exitSignal: uint64(unix.SIGCHLD),
	}
	if cgroup >= 0 {
		args.flags |= cloneIntoCgroup
		args.cgroup = uint64(cgroup)
	}
	i.put(hdrExitNr, unix.SYS_EXIT_GROUP)
	r := cloneRun(unsafe.Pointer(&args), unsafe.Sizeof(args), i.header())
	if int64(r) < 0 {
		return 0, -1, fmt.Errorf("clone process: %w", syscall.Errno(-int64(r)))
	}
	return int(r), int(binary.NativeEndian.Uint32(i.mem[hdrPidfd:])), nil
}

// Self runs the list on the calling thread, which must be locked to its
// goroutine, and does not return: the last call of the list replaces the
// process, or the thread ends after its report.
//
//go:nosplit
func (i *Image) Self() {
	h := i.header()
	i.put(hdrExitNr, unix.SYS_EXIT)
	entersyscall()
	selfRun(h)
}
