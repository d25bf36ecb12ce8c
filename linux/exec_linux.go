// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/kernfile"
	"github.com/tholehq/thole/linux/launch"
	"golang.org/x/sys/unix"
)

// PlanExec resolves and compiles spec for a launcher that becomes the program.
func (p *Platform) PlanExec(spec platform.Spec) (*Plan, error) {
	return p.plan(spec, Options{Self: true})
}

// Exec confines this very process and executes the program in its place. It
// returns only with an error.
//
// The thread that will execute the program runs the launch; the others stay
// as they are until then, and verify it from outside before they open its
// gate. confined is called between the two.
func (p *Plan) Exec(confined func() error) error {
	if err := p.refuse(); err != nil {
		return err
	}
	l := &launcher{plan: p, m: p.m, handles: map[string]int{}}
	defer l.close()
	undo := func() {}
	if p.Leaf {
		var err error
		if undo, err = l.ownLeaf(); err != nil {
			return confineErr("", "", err)
		}
		if err := l.limits(); err != nil {
			undo()
			return err
		}
	}
	err := l.exec(confined)
	undo()
	return err
}

func (l *launcher) exec(confined func() error) error {
	p := l.plan
	for i, name := range hStd {
		if err := checkStdio(name, i); err != nil && !errors.Is(err, unix.EBADF) {
			return confineErr("", "", err)
		}
	}
	if err := l.prepare(true); err != nil {
		return err
	}
	status, gate, err := l.gate()
	if err != nil {
		return confineErr("", "", err)
	}
	defer status.Close()
	defer gate.Close()
	s := steps{self: true}
	if l.leaf != nil {
		s.uid = l.leaf.UID
	}
	s.nofileSoft, s.nofileHard = nofile()
	list, err := p.calls(s)
	if err != nil {
		return confineErr("", "", err)
	}
	if p.tamper != nil {
		list = p.tamper(list)
	}
	img, err := list.Assemble(l.handles, l.handles[hStatus])
	if err != nil {
		return confineErr("", "", err)
	}
	if err := l.enter(); err != nil {
		return confineErr("", "", err)
	}
	tid := make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		img.Self()
	}()
	thread := <-tid
	_ = status.SetReadDeadline(time.Now().Add(hangLimit))
	if err := l.await(status, list); err != nil {
		return err
	}
	if err := l.verify(os.Getpid(), thread); err != nil {
		return err
	}
	if err := confined(); err != nil {
		return confineErr("", "", err)
	}
	if _, err := gate.Write([]byte{1}); err != nil {
		return confineErr("", "", fmt.Errorf("open gate: %w", err))
	}
	// The program replaces this process; what comes is a failed execve.
	buf := make([]byte, launch.ReportSize)
	if _, err := io.ReadFull(status, buf); err != nil {
		return confineErr("", "", fmt.Errorf("wait for program: %w", err))
	}
	r, err := launch.ParseReport(buf, len(list))
	if err != nil {
		return confineErr("", "", err)
	}
	return l.opError(&launch.OpError{Op: list[r.Index], Result: r.Result})
}

// enter puts the rules in the kernel and this process under them.
func (l *launcher) enter() error {
	if l.leaf == nil {
		return nil
	}
	if l.plan.Net != nil {
		if _, err := l.plan.putPolicy(l.leaf.ID); err != nil {
			return err
		}
		if l.given {
			// Its maker removes the cgroup and knows nothing of its rules: the
			// next one takes them away.
			if _, err := l.m.sweepRules(); err != nil {
				return err
			}
			return l.m.enforcer.AttachTo(l.leaf.FD())
		}
	}
	if l.given {
		return nil
	}
	return l.leaf.Enter()
}

// ownLeaf takes the cgroup that somebody made for this process, or makes the
// leaf that it enters, and returns how to undo that when the program does not
// start.
func (l *launcher) ownLeaf() (func(), error) {
	p := l.plan
	back, err := selfCgroup(p.m.cgroupMount)
	if err != nil {
		return nil, err
	}
	if back != p.m.cgroupMount+"/" && cgroup.Alone(back) {
		l.given = true
		l.leaf, err = p.m.parent.Given(back)
		return func() {
			if p.m.enforcer != nil {
				_ = p.m.enforcer.Remove(l.leaf.ID)
			}
		}, err
	}
	leaf, err := p.m.parent.NewExecLeaf()
	if err != nil {
		return nil, err
	}
	l.leaf = leaf
	return func() {
		// Out again, so that the leaf can be removed.
		_ = os.WriteFile(back+"/cgroup.procs", []byte("0"), 0)
		_ = leaf.Remove()
		if p.m.enforcer != nil {
			_ = p.m.enforcer.Remove(leaf.ID)
		}
	}, nil
}

func selfCgroup(mount string) (string, error) {
	b, err := kernfile.Read("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find own cgroup: %w", err)
	}
	path, err := cgroup.Self(b)
	if err != nil {
		return "", err
	}
	if strings.Contains(path, "..") {
		return "", fmt.Errorf("own cgroup %s lies outside of this namespace", path)
	}
	return mount + path, nil
}
