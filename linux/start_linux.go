// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/kernfile"
	"github.com/tholehq/thole/linux/launch"
	"github.com/tholehq/thole/linux/rlimit"
	"github.com/tholehq/thole/linux/verify"
	"golang.org/x/sys/unix"
)

// hangLimit ends a launch whose child neither reports nor ends. It guards
// against a hung launcher only; a launch takes milliseconds.
const hangLimit = 60 * time.Second

// launcher holds what one start opens; close undoes it all.
type launcher struct {
	plan    *Plan
	m       *machine
	leaf    *cgroup.Leaf
	handles map[string]int // by the names that the list uses
	own     []string       // those that close ends
	std     [3]bool
	given   bool // the leaf is somebody else's
	// outside are the starter's mount and IPC namespaces, read before a
	// launch: a launcher's own first thread may be the one that leaves them.
	outside [2]string
	// filters are the starter's own seccomp filters: a job inherits them, and
	// must have its own as well.
	filters int
}

// open names a descriptor that belongs to the start.
func (l *launcher) open(name string, fd int) {
	l.handles[name] = fd
	l.own = append(l.own, name)
}

// drop closes one of them early.
func (l *launcher) drop(name string) {
	if fd, ok := l.handles[name]; ok {
		_ = unix.Close(fd)
		delete(l.handles, name)
	}
}

func (l *launcher) close() {
	for _, name := range l.own {
		l.drop(name)
	}
}

// confineErr wraps err as a failure of the confinement.
func confineErr(c platform.Capability, remedy string, err error) error {
	return &platform.Error{Kind: platform.ErrConfine, Capability: c, Err: err, Remedy: remedy}
}

// Start makes the leaf, puts the rules in the kernel, clones the process into
// the leaf, verifies it and lets it go.
func (p *Plan) Start(ctx context.Context) (platform.Process, error) {
	if err := p.refuse(); err != nil {
		return nil, err
	}
	if !p.Leaf && p.start.OwnsChildren {
		// What the program leaves behind becomes this process's child.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, confineErr(platform.Children, "", fmt.Errorf("become subreaper: %w", err))
		}
	}
	l := &launcher{plan: p, m: p.m, handles: map[string]int{}}
	proc, err := l.start(ctx)
	l.close()
	return proc, err
}

// refuse returns the gaps that keep the plan from starting.
func (p *Plan) refuse() error {
	var errs []error
	for _, g := range p.Missing {
		if g.Required || p.start.Strict {
			errs = append(errs, &platform.Error{Kind: platform.ErrConfine, Capability: g.Capability, Pos: g.Pos, Err: errors.New(g.Reason), Remedy: g.Remedy})
		} else if p.start.OnGap != nil {
			p.start.OnGap(g)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (l *launcher) start(ctx context.Context) (_ platform.Process, err error) {
	p := l.plan
	proc := &process{plan: p, m: l.m, began: time.Now(), done: make(chan struct{})}
	defer func() {
		if err != nil {
			proc.discard()
		}
	}()
	if p.Leaf {
		if l.leaf, err = l.m.parent.NewLeaf(); err != nil {
			return nil, confineErr("", "run where the cgroup v2 mount is writable", err)
		}
		proc.leaf = l.leaf
		if err = l.limits(); err != nil {
			return nil, err
		}
	}
	if p.Net != nil {
		if err = proc.putRules(l.leaf.ID); err != nil {
			return nil, confineErr("", "", err)
		}
	}
	if err = l.prepare(false); err != nil {
		return nil, err
	}
	s := steps{std: l.std}
	if l.leaf != nil {
		s.uid = l.leaf.UID
	}
	s.nofileSoft, s.nofileHard = nofile()
	list, err := p.calls(s)
	if err != nil {
		return nil, confineErr("", "", err)
	}
	if p.tamper != nil {
		list = p.tamper(list)
	}
	status, gate, list, err := l.clone(proc, list)
	if err != nil {
		return nil, confineErr("", "", err)
	}
	defer status.Close()
	defer gate.Close()
	pid := proc.pid
	_ = status.SetReadDeadline(time.Now().Add(hangLimit))
	stop := context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if p.UserNS {
		uid, gid := os.Geteuid(), os.Getegid()
		if err = writeMaps(pid, fmt.Sprintf("%d %d 1\n", uid, uid), fmt.Sprintf("%d %d 1\n", gid, gid), true); err != nil {
			return nil, l.reported(proc, status, list, confineErr(platform.FSMetadata, "", err))
		}
		if _, err = gate.Write([]byte{1}); err != nil {
			return nil, l.reported(proc, status, list, confineErr("", "", fmt.Errorf("open gate: %w", err)))
		}
	}
	if err = l.await(status, list); err != nil {
		return nil, abandoned(ctx, err)
	}
	if err = l.verify(pid, pid); err != nil {
		return nil, l.reported(proc, status, list, err)
	}
	if _, err = gate.Write([]byte{1}); err != nil {
		return nil, l.reported(proc, status, list, notAtGate(fmt.Errorf("open gate: %w", err)))
	}
	if err = l.executed(status, list); err != nil {
		return nil, abandoned(ctx, err)
	}
	// What the child did not read it did not wait for (FIONREAD, pipe(7)).
	if n, err := unix.IoctlGetInt(int(gate.Fd()), unix.TIOCINQ); err != nil || n != 0 {
		return nil, notAtGate(fmt.Errorf("%d bytes unread", n))
	}
	proc.image.Free()
	proc.run()
	return proc, nil
}

// clone makes the child, which runs the list that is returned: before all else
// it closes what is none of its business. A copy of another start's gate or of
// its leaf's lock would outlive that start in a child that waits.
func (l *launcher) clone(proc *process, list launch.List) (status, gate *os.File, whole launch.List, err error) {
	cloning.Lock()
	defer cloning.Unlock()
	if status, gate, err = l.gate(); err != nil {
		return nil, nil, nil, err
	}
	whole = append(closeOthers(l.handles), list...)
	defer func() {
		// The child's ends: its copies alone must hold the pipes open.
		l.drop(hStatus)
		l.drop(hGate)
		if err != nil {
			status.Close()
			gate.Close()
		}
	}()
	if proc.image, err = whole.Assemble(l.handles, l.handles[hStatus]); err != nil {
		return status, gate, whole, err
	}
	cgroupFD := -1
	if l.leaf != nil {
		cgroupFD = l.leaf.FD()
	}
	ns, _ := l.plan.namespaces()
	pid, pidfd, err := proc.image.Clone(ns, cgroupFD)
	if err != nil {
		return status, gate, whole, err
	}
	proc.pid, proc.pidfd = pid, pidfd
	return status, gate, whole, nil
}

// abandoned names the end of the context where that ended the wait.
func abandoned(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return confineErr("", "", fmt.Errorf("wait for child: %w", context.Cause(ctx)))
	}
	return err
}

// reported ends a child with which something is wrong, and returns what it
// said itself, if it did: that is the cause.
func (l *launcher) reported(proc *process, status *os.File, list launch.List, err error) error {
	_ = unix.PidfdSendSignal(proc.pidfd, unix.SIGKILL, nil, 0)
	said := l.await(status, list)
	var oe *launch.OpError
	var pe *platform.Error
	if errors.As(said, &oe) || errors.As(said, &pe) && pe.Kind == platform.ErrStart {
		return said
	}
	return err
}

// notAtGate: the program was let run before it was verified. It is killed.
func notAtGate(err error) error {
	return &platform.Error{Kind: platform.ErrVerify, Err: fmt.Errorf("check gate: the child did not wait: %w", err)}
}

// limits writes the leaf's limits.
func (l *launcher) limits() error {
	for _, s := range l.plan.Limits.Settings() {
		if !slices.Contains(l.plan.host.Controllers, s.Controller) {
			continue // bounded otherwise, or a gap that was accepted
		}
		c, _ := limitOf(s.Controller)
		if err := l.m.parent.Enable(s.Controller); err != nil {
			return confineErr(c, "enable the controller for the hierarchy's root", err)
		}
		// A kernel without swap accounting has no memory.swap.max: then there
		// is nothing to bound.
		if err := l.leaf.Set(s); err != nil && !(s.File == "memory.swap.max" && errors.Is(err, cgroup.ErrNoController)) {
			return confineErr(c, "", err)
		}
	}
	return nil
}

// prepare opens what the child's calls refer to: the ruleset, the user
// namespaces of id maps, the standard descriptors.
func (l *launcher) prepare(self bool) error {
	p := l.plan
	var err error
	status, err := kernfile.Read("/proc/thread-self/status")
	if err != nil {
		return &platform.Error{Kind: platform.ErrVerify, Err: err}
	}
	l.filters = verify.Filters(status)
	if l.outside, err = ownNamespaces(); err != nil {
		return &platform.Error{Kind: platform.ErrVerify, Err: err}
	}
	for name, fd := range p.opened.fds {
		l.handles[name] = fd
	}
	rules, err := p.Landlock.Build(func(h string) (int, bool) { fd, ok := p.opened.fds[h]; return fd, ok })
	if err != nil {
		return confineErr(platform.FS, "", err)
	}
	l.open(hRules, rules)
	for _, o := range p.Owners {
		fd, err := userNamespace(swapMap(o.UID, l.leaf.UID), swapMap(o.GID, l.leaf.UID))
		if err != nil {
			return confineErr(platform.Identity, "allow user namespaces (user.max_user_namespaces>0), or pass --accept identity", err)
		}
		l.open(o.Handle, fd)
	}
	if self {
		return nil
	}
	for i, f := range []*os.File{p.start.Stdin, p.start.Stdout, p.start.Stderr} {
		if err := l.stdio(i, f); err != nil {
			return confineErr("", "", err)
		}
	}
	return nil
}

// stdio gives the child f, or /dev/null, as its descriptor i.
func (l *launcher) stdio(i int, f *os.File) error {
	if f == nil {
		fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
		l.open(hStd[i], fd)
		l.std[i] = true
		return nil
	}
	if err := checkStdio(hStd[i], int(f.Fd())); err != nil {
		return err
	}
	if l.plan.Ephemeral {
		openPipe(int(f.Fd()), i)
	}
	if int(f.Fd()) == i {
		return nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("duplicate %s: %w", hStd[i], err)
	}
	l.open(hStd[i], fd)
	l.std[i] = true
	return nil
}

// openPipe lets the job's uid, which does not own the pipe, open it again by
// the name of its descriptor, as scripts do with /dev/stderr: an input to read,
// an output to write, never the other way. Only who may look into a process
// that holds an unnamed pipe can open it at all (proc_pid_fd(5)); a pipe with a
// name is left alone. Nothing is lost where it fails.
func openPipe(fd, i int) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO || unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PIPEFS_MAGIC {
		return
	}
	mode := st.Mode&0o777 | 0o002
	if i == 0 {
		mode = st.Mode&0o777 | 0o004
	}
	_ = unix.Fchmod(fd, mode)
}

// gate makes the two pipes between parent and child.
func (l *launcher) gate() (status, gate *os.File, err error) {
	var s, g [2]int
	if err := unix.Pipe2(s[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	if err := unix.Pipe2(g[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(s[0])
		_ = unix.Close(s[1])
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	l.open(hStatus, s[1])
	l.open(hGate, g[0])
	// For deadlines the parent's end is polled; the child blocks on its own.
	_ = unix.SetNonblock(s[0], true)
	status, gate = os.NewFile(uintptr(s[0]), "status"), os.NewFile(uintptr(g[1]), "gate")
	// Numbers for the child to close; here the files own them.
	l.handles[hStatusRead], l.handles[hGateWrite] = s[0], g[1]
	return status, gate, nil
}

// await reads the child's report that it is confined.
func (l *launcher) await(status *os.File, list launch.List) error {
	buf := make([]byte, launch.ReportSize)
	_, err := io.ReadFull(status, buf)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return confineErr("", "", fmt.Errorf("child did not report within %v", hangLimit))
	case err != nil:
		return confineErr("", "", fmt.Errorf("child ended before it was confined: %w", err))
	}
	r, err := launch.ParseReport(buf, len(list))
	if err != nil {
		return confineErr("", "", err)
	}
	if !r.Ready {
		return l.opError(&launch.OpError{Op: list[r.Index], Result: r.Result})
	}
	return nil
}

// opError says what a failed call of the launch means.
func (l *launcher) opError(e *launch.OpError) error {
	switch e.Op.Step {
	case "exec":
		return &platform.Error{Kind: platform.ErrStart, Err: fmt.Errorf("execute %s: %w", l.plan.Spec.Path, errnoOf(e)), Remedy: l.plan.execHint(e)}
	case "workdir":
		return &platform.Error{Kind: platform.ErrStart, Err: fmt.Errorf("enter working directory %s: %w", l.plan.Spec.Dir, errnoOf(e)),
			Remedy: "choose one inside a granted path: --workdir DIR with --rw DIR or --ro DIR"}
	case "landlock":
		return confineErr(platform.FS, "", e)
	case "view":
		if e.Op.Call == launch.MountSetattr && errors.Is(e, unix.EINVAL) && strings.Contains(e.Op.String(), "idmap") {
			return confineErr(platform.Identity, "move the path to ext4, xfs, btrfs or tmpfs, or pass --accept identity", fmt.Errorf("a granted path is on a file system without id-mapped mounts: %w", e))
		}
		return confineErr(platform.FSMetadata, "", e)
	case "identity":
		return confineErr(platform.Identity, "", e)
	}
	return confineErr("", "", e)
}

func errnoOf(e *launch.OpError) error {
	if err := e.Unwrap(); err != nil {
		return err
	}
	return e
}

// executed waits for the status pipe to close, which execve does.
func (l *launcher) executed(status *os.File, list launch.List) error {
	buf := make([]byte, launch.ReportSize)
	n, err := io.ReadFull(status, buf)
	if n == 0 && err == io.EOF {
		return nil
	}
	if err != nil {
		return confineErr("", "", fmt.Errorf("wait for program: %w", err))
	}
	r, err := launch.ParseReport(buf, len(list))
	if err != nil {
		return confineErr("", "", err)
	}
	return l.opError(&launch.OpError{Op: list[r.Index], Result: r.Result})
}

// verify asks the kernel what the child is.
func (l *launcher) verify(pid, tid int) error {
	seen, err := verify.See(pid, tid)
	if err != nil {
		return &platform.Error{Kind: platform.ErrVerify, Err: err}
	}
	uid, path := -1, ""
	if l.leaf != nil {
		uid, path = l.leaf.UID, strings.TrimPrefix(l.leaf.Path, l.m.cgroupMount)
	}
	e := l.plan.expect(uid, path, l.outside[0], l.outside[1])
	e.Filters += l.filters
	for i, std := range l.std {
		if !std {
			continue
		}
		if e.Std[i], err = os.Readlink("/proc/self/fd/" + strconv.Itoa(l.handles[hStd[i]])); err != nil {
			return &platform.Error{Kind: platform.ErrVerify, Err: fmt.Errorf("read own descriptors: %w", cause(err))}
		}
	}
	if err := verify.Check(e, seen); err != nil {
		return &platform.Error{Kind: platform.ErrVerify, Err: err}
	}
	if l.plan.Net != nil {
		check := func() error { return l.m.enforcer.Verify(l.leaf.ID) }
		if l.given {
			check = func() error { return l.m.enforcer.VerifyAt(l.leaf.FD(), l.leaf.ID) }
		}
		if err := check(); err != nil {
			return &platform.Error{Kind: platform.ErrVerify, Err: fmt.Errorf("check cgroup programs: %w", err)}
		}
	}
	return nil
}

// ownNamespaces returns the mount and IPC namespaces of this process.
func ownNamespaces() (ns [2]string, err error) {
	for i, name := range []string{"mnt", "ipc"} {
		if ns[i], err = os.Readlink("/proc/self/ns/" + name); err != nil {
			return ns, fmt.Errorf("read own namespaces: %w", cause(err))
		}
	}
	return ns, nil
}

// nofile returns the limits on open files to restore in the child, or zeros.
func nofile() (soft, hard uint64) {
	was, _, ok := rlimit.Nofile()
	var now syscall.Rlimit
	if !ok || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now) != nil || now.Cur == was {
		return 0, 0
	}
	return was, now.Max
}
