// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/netbpf"
	"golang.org/x/sys/unix"
)

// ringSize is the size in bytes of one sandbox's ring of events.
const ringSize = 256 << 10

// process is one confined process and its container.
type process struct {
	plan  *Plan
	m     *machine
	leaf  *cgroup.Leaf
	image *launch.Image
	ring  *netbpf.Ring
	netns uint64 // cookie of the network namespace, where addresses matter
	pid   int
	pidfd int
	began time.Time

	events   chan event.Event
	done     chan struct{} // closed when result is set
	result   platform.Result
	err      error
	timer    *time.Timer
	mu       sync.Mutex // guards reaped, timedOut
	reaped   bool
	timedOut bool
	seq      uint64

	unwatch  context.CancelFunc
	watching sync.WaitGroup
}

// PID is the program's process.
func (p *process) PID() int { return p.pid }

// Events delivers denials; see platform.Process.
func (p *process) Events() <-chan event.Event { return p.events }

// putRules writes the policy and makes the ring, before the process exists.
func (p *process) putRules(id uint64) error {
	ring, err := p.m.enforcer.NewRing(ringSize)
	if err != nil {
		return err
	}
	p.ring = ring
	if err := ring.Attach(id); err != nil {
		return err
	}
	p.netns, err = p.plan.putPolicy(id)
	return err
}

// putPolicy writes the policy and, where it looks at addresses, those of this
// process's network namespace, whose cookie it returns.
func (p *Plan) putPolicy(id uint64) (netns uint64, err error) {
	if !p.Addresses {
		return 0, p.m.enforcer.Put(id, p.Net)
	}
	if netns, err = netbpf.NetnsCookie(); err != nil {
		return 0, err
	}
	// The policy first: it keeps the namespace listed.
	if err := p.m.enforcer.Put(id, p.Net.InNetns(netns)); err != nil {
		return 0, err
	}
	return netns, p.m.putAddresses(netns)
}

// putAddresses brings the kernel's tables of the host's own addresses and of
// its resolvers up to date, as seen from this network namespace.
func (m *machine) putAddresses(netns uint64) error {
	own, err := netbpf.OwnAddrs()
	if err != nil {
		return err
	}
	if err := m.syncOwn(netns, own); err != nil {
		return err
	}
	// No file means no resolver: then none is reachable.
	conf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read resolvers: %w", err)
	}
	return m.enforcer.SyncResolvers(netns, netbpf.Resolvers(conf))
}

// syncOwn writes the host's own addresses. Loopback is a class of its own,
// which a rule may open as a range.
func (m *machine) syncOwn(netns uint64, own []netip.Addr) error {
	return m.enforcer.SyncOwn(netns, slices.DeleteFunc(slices.Clone(own), netip.Addr.IsLoopback))
}

// run starts the watchers of a process that was let go.
func (p *process) run() {
	if p.plan.Addresses {
		ctx, cancel := context.WithCancel(context.Background())
		p.unwatch = cancel
		p.watching.Go(func() {
			_ = netbpf.WatchOwn(ctx, func(own []netip.Addr) { _ = p.m.syncOwn(p.netns, own) })
		})
	}
	p.events = make(chan event.Event, 256)
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.readEvents()
	}()
	if t := p.plan.start.Timeout; t > 0 {
		p.timer = time.AfterFunc(t, func() {
			p.mu.Lock()
			p.timedOut = !p.reaped
			p.mu.Unlock()
			_ = p.Kill()
		})
	}
	go func() {
		ws, ru := reap(p.pid)
		p.mu.Lock()
		p.reaped = true
		timedOut := p.timedOut
		p.mu.Unlock()
		p.finish(ws, ru, timedOut, read)
		close(p.done)
	}()
}

// finish ends what is left of the tree, takes the container away and fills
// the result.
func (p *process) finish(ws syscall.WaitStatus, ru syscall.Rusage, timedOut bool, read <-chan struct{}) {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.unwatch != nil {
		p.unwatch()
		p.watching.Wait()
	}
	r := platform.Result{TimedOut: timedOut, Wall: time.Since(p.began), PeakMemory: uint64(ru.Maxrss) << 10,
		CPU: time.Duration(ru.Utime.Nano() + ru.Stime.Nano())}
	switch {
	case ws.Signaled():
		r.Signal = int(ws.Signal())
		r.Code = 128 + r.Signal
	default:
		r.Code = ws.ExitStatus()
	}
	var errs []error
	if p.leaf != nil {
		// Before the usage is read: what still runs belongs to the job.
		if cgroup.Populated(p.leaf.Path) {
			errs = append(errs, p.leaf.Kill())
		}
		u := p.leaf.Usage()
		r.OOM = u.OOMKills > 0
		r.CPU = max(r.CPU, u.CPU)
		r.PeakMemory = max(r.PeakMemory, u.PeakBytes)
		errs = append(errs, p.leaf.Remove())
	} else if p.plan.start.OwnsChildren {
		killDescendants()
	}
	if p.ring != nil {
		p.ring.Stop() // the reader drains what is left and ends
		<-read
		if st, err := p.m.enforcer.Stats(p.leaf.ID); err == nil {
			r.Lost = st.Lost
		}
		errs = append(errs, p.m.enforcer.Remove(p.leaf.ID), p.ring.Close())
	} else {
		<-read
	}
	close(p.events)
	_ = unix.Close(p.pidfd)
	p.result, p.err = r, errors.Join(errs...)
}

// Wait returns when the program has ended and its container is gone.
func (p *process) Wait() (platform.Result, error) {
	<-p.done
	return p.result, p.err
}

// Signal sends a signal to the program.
func (p *process) Signal(s os.Signal) error {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal process: %v is not a signal of this system", s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	if err := unix.PidfdSendSignal(p.pidfd, unix.Signal(sig), nil, 0); err != nil {
		return fmt.Errorf("signal process: %w", err)
	}
	return nil
}

// Kill ends the whole tree.
func (p *process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if p.leaf != nil {
		return p.leaf.Kill()
	}
	return unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
}

// discard undoes a start that failed: the program did not run, and nothing of
// it stays.
func (p *process) discard() {
	if p.pid > 0 {
		if p.leaf != nil {
			_ = p.leaf.Kill()
		}
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
		reap(p.pid)
		_ = unix.Close(p.pidfd)
	}
	if p.image != nil {
		p.image.Free()
	}
	if p.leaf != nil {
		_ = p.leaf.Remove()
		if p.m.enforcer != nil {
			_ = p.m.enforcer.Remove(p.leaf.ID)
		}
	}
	if p.ring != nil {
		p.ring.Stop()
		_ = p.ring.Close()
	}
}

// killDescendants ends the processes that the job left behind, where there is
// no cgroup to do it: this process is their subreaper, so that they are its
// children (PR_SET_CHILD_SUBREAPER, prctl(2)).
func killDescendants() error {
	for {
		kids, err := children()
		if err != nil || len(kids) == 0 {
			return err
		}
		for _, pid := range kids {
			_ = unix.Kill(pid, unix.SIGKILL)
			reap(pid)
		}
	}
}

// children returns the pids of this process's children.
func children() ([]int, error) {
	var pids []int
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("find what the program left: %w", err)
	}
	for _, t := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids, nil
}
