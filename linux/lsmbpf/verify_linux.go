// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package lsmbpf

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf"
)

// ErrNoTask is the answer about a task that does not exist.
var ErrNoTask = errors.New("no such task")

// Task is what the kernel holds of one thread.
type Task struct {
	Cgroup uint64 // id of its cgroup in the v2 hierarchy

	UID, EUID, SUID, FSUID uint32 // of the initial user namespace

	// Capability sets, bit n is capability n.
	Inheritable, Permitted, Effective, Bounding, Ambient uint64

	SeccompMode    uint32 // 0 none, 1 strict, 2 filter
	SeccompFilters uint32
	NoNewPrivs     bool

	// Landlock is false where nothing could be learnt of Landlock; the other
	// fields mean nothing then.
	Landlock        bool
	LandlockLayers  uint32 // 0: not restricted
	LandlockID      uint64 // of the innermost domain; 0 where the kernel numbers none
	LandlockDenials uint64
	LandlockRules   uint32
}

// Verifier reads tasks' confinement. It may be used by several goroutines.
type Verifier struct {
	prog *ebpf.Program
	off  int32 // see bpf/include/abi.h, landlock_off

	mu  sync.Mutex
	ctx bpf.VerifyTholeTask
}

// NewVerifier loads the program; it needs a kernel with BTF and the function
// bpf_task_from_pid (6.2), and CAP_BPF and CAP_PERFMON. Where Landlock is
// there, it is found in the credentials by restricting a thread of this
// process, which then ends, and looking what changed.
func NewVerifier() (*Verifier, error) {
	spec, err := bpf.LoadVerify()
	if err != nil {
		return nil, fmt.Errorf("read verify object: %w", err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load verify object: %w", err)
	}
	defer coll.Close()
	v := &Verifier{prog: coll.DetachProgram(bpf.VerifyProgTholeVerify), off: -1}
	if v.off, err = v.findLandlock(); err != nil {
		v.Close()
		return nil, fmt.Errorf("find landlock's credentials: %w", err)
	}
	return v, nil
}

// Close releases the program.
func (v *Verifier) Close() error { return v.prog.Close() }

func (v *Verifier) run(tid int) (bpf.VerifyTholeTask, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ctx = bpf.VerifyTholeTask{Pid: uint32(tid), LandlockOff: v.off}
	if _, err := v.prog.Run(&ebpf.RunOptions{Context: &v.ctx, ContextOut: &v.ctx}); err != nil {
		return bpf.VerifyTholeTask{}, fmt.Errorf("run verify program: %w", err)
	}
	if v.ctx.Found == 0 {
		return bpf.VerifyTholeTask{}, fmt.Errorf("verify thread %d: %w", tid, ErrNoTask)
	}
	return v.ctx, nil
}

// Task reads the thread with this id in the initial pid namespace.
func (v *Verifier) Task(tid int) (Task, error) {
	t, err := v.run(tid)
	if err != nil {
		return Task{}, err
	}
	return Task{
		Cgroup: t.Cgroup, UID: t.Uid, EUID: t.Euid, SUID: t.Suid, FSUID: t.Fsuid,
		Inheritable: t.CapInheritable, Permitted: t.CapPermitted, Effective: t.CapEffective, Bounding: t.CapBset, Ambient: t.CapAmbient,
		SeccompMode: t.SeccompMode, SeccompFilters: t.SeccompFilters, NoNewPrivs: t.NoNewPrivs != 0,
		Landlock: t.LandlockKnown != 0, LandlockLayers: t.LandlockLayers, LandlockID: t.LandlockId,
		LandlockDenials: t.LandlockDenials, LandlockRules: t.LandlockRules,
	}, nil
}

// findLandlock returns the offset of Landlock's domain in the security blob,
// or -1 where Landlock is not to be had or the program cannot read its blob.
func (v *Verifier) findLandlock() (int32, error) {
	type result struct {
		off int32
		err error
	}
	done := make(chan result)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and with it the
		// restriction.
		runtime.LockOSThread()
		off, err := v.restrictAndLook()
		done <- result{off, err}
	}()
	r := <-done
	return r.off, r.err
}

func (v *Verifier) restrictAndLook() (int32, error) {
	before, err := v.run(unix.Gettid())
	if err != nil {
		return -1, err
	}
	err = restrict()
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.E2BIG) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	after, err := v.run(unix.Gettid())
	if err != nil {
		return -1, err
	}
	// The domain is the first of Landlock's words, and a pointer where it was
	// null, or another one where this thread was restricted before.
	for i := range after.Blob {
		if after.Blob[i] != before.Blob[i] && after.Blob[i]>>63 != 0 {
			return int32(8 * i), nil
		}
	}
	return -1, nil
}

// restrict puts the calling thread under a Landlock domain that refuses it to
// make block devices.
func restrict() error {
	const makeBlock = 1 << 11 // LANDLOCK_ACCESS_FS_MAKE_BLOCK
	handled := uint64(makeBlock)
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if e != 0 {
		return e
	}
	defer unix.Close(int(fd))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return e
	}
	return nil
}
