// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/verify"
	"golang.org/x/sys/unix"
)

// probeLimit ends a child that does not end by itself; one takes milliseconds.
const probeLimit = 20 * time.Second

// probe tries every capability in confined children of this program; see
// probeinit_linux.go for how they answer.
func (p *Platform) probe(ctx context.Context) (platform.Report, error) {
	s, err := newSite(p.m.Root)
	if err != nil {
		return platform.Report{}, fmt.Errorf("probe host: %w", err)
	}
	defer s.remove()
	return p.probeAt(ctx, s)
}

func (p *Platform) probeAt(ctx context.Context, s *site) (platform.Report, error) {
	cs := checks(p.m.Host, s.places)
	self := answer{outcomes: map[string]outcome{}}
	for _, a := range acts(cs, runSelf) {
		for _, o := range do(a) {
			self.outcomes[o.ID] = o
		}
	}
	runs := s.policies()
	children := make([]child, len(runs))
	var wg sync.WaitGroup
	start := func(i int) { children[i] = p.run(ctx, s, runs[i].name, runs[i].policy, acts(cs, runs[i].name)) }
	for i, r := range runs {
		if r.name != runCPU {
			wg.Go(func() { start(i) })
		}
	}
	wg.Wait()
	for i, r := range runs {
		if r.name == runCPU {
			start(i) // alone: beside the others it might never reach its limit
		}
	}
	answers := map[string]answer{}
	for i, r := range runs {
		answers[r.name] = children[i].answer
		for _, o := range children[i].facts {
			self.outcomes[o.ID] = o
		}
	}
	for _, o := range s.facts(p.m, answers) {
		self.outcomes[o.ID] = o
	}
	answers[runSelf] = self
	report := platform.Report{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernelRelease(), User: userName()}
	for _, c := range cs {
		report.Findings = append(report.Findings, judge(c, answers))
	}
	return report, ctx.Err()
}

// probePolicy is what one child is confined by.
type probePolicy struct {
	name   string
	policy *policy.Policy
}

// policies returns those of all children.
func (s *site) policies() []probePolicy {
	grant := func(rel string) []policy.Path {
		return []policy.Path{{Path: s.at(rel), Pos: policy.Pos{Flag: "the probe's " + rel}}}
	}
	var l []probePolicy
	add := func(name string, set func(*policy.Policy)) {
		p := &policy.Policy{Kind: "probe", FS: policy.FS{RO: grant("ro"), RW: grant("rw"), RD: grant("rd"), WO: grant("wo")}}
		if exe, err := os.Readlink("/proc/self/exe"); err == nil && exists(exe) {
			p.FS.RO = append(p.FS.RO, policy.Path{Path: exe, Pos: policy.Pos{Flag: "this program"}})
		}
		set(p)
		l = append(l, probePolicy{name, p})
	}
	add(runNone, func(*policy.Policy) {})
	add(runAllowlist, func(p *policy.Policy) { p.Net.Mode, p.Net.ProxyPort = policy.Allowlist, uint16(s.proxy) })
	add(runAny, func(p *policy.Policy) { p.Net.Mode = policy.Any })
	add(runBroker, func(p *policy.Policy) { p.Broker = s.at("broker/sock") })
	add(runExecRW, func(p *policy.Policy) { p.ExecRW = true })
	add(runMemory, func(p *policy.Policy) { p.Limits.MemoryBytes = probeMemory })
	add(runCPU, func(p *policy.Policy) { p.Limits.MilliCPU = probeCPU })
	add(runPids, func(p *policy.Policy) { p.Limits.Pids = probePids })
	if s.gpu != "" {
		add(runGPU, func(p *policy.Policy) { p.GPU = true })
	}
	return l
}

// child is what came of one: its answer, and what was seen of it.
type child struct {
	answer
	facts []outcome
}

// refuse records why a child was not started.
func (c *child) refuse(err error) {
	c.refusal = "the probe's child was not started: " + err.Error()
	var pe *platform.Error
	if errors.As(err, &pe) {
		c.remedy = pe.Remedy
	}
}

// run starts one child, reads what it says, and sees it to its end.
func (p *Platform) run(ctx context.Context, s *site, name string, pol *policy.Policy, list []act) (c child) {
	c.outcomes = map[string]outcome{}
	// Where this program's file is gone, its copy.
	exe := s.at("ro/prog")
	if n := len(pol.FS.RO); n > 1 {
		exe = pol.FS.RO[n-1].Path
	}
	var in, out [2]*os.File
	for _, pipe := range []*[2]*os.File{&in, &out} {
		r, w, err := os.Pipe()
		if err != nil {
			c.refuse(fmt.Errorf("make pipe: %w", err))
			return c
		}
		defer r.Close()
		defer w.Close()
		pipe[0], pipe[1] = r, w
	}
	plan, err := p.Plan(platform.Spec{Policy: pol, Path: exe, Argv: []string{"thole", probeCommand, encodeActs(list)},
		Env: []string{probeVar + "=1"}, Stdin: in[0], Stdout: out[1], Timeout: probeLimit})
	if err != nil {
		c.refuse(err)
		return c
	}
	defer plan.Close()
	for _, g := range plan.Gaps() {
		if g.Required {
			c.refusal, c.remedy = g.Reason, g.Remedy
			return c
		}
	}
	c.gaps, plan.tamper = plan.Gaps(), s.tamper
	started, err := plan.Start(ctx)
	if err != nil {
		c.refuse(err)
		return c
	}
	proc := started.(*process)
	_ = in[0].Close()
	_ = out[1].Close()
	var events []event.Event
	drained := make(chan struct{})
	go func() {
		for e := range proc.Events() {
			events = append(events, e)
		}
		close(drained)
	}()
	text := readAnswer(out[0])
	outcomes, whole, err := parseOutcomes(text)
	c.outcomes = outcomes
	// Now it waits for the end of its input.
	switch {
	case proc.leaf != nil && name == runNone:
		c.facts = append(c.facts, freeze(proc.leaf)...)
		c.facts = append(c.facts, holdsIf(factCgroup, outcomes[opCgroup].Text == proc.leaf.Path[len(p.m.cgroupMount):] && sameCgroup(outcomes), outcomes[opCgroup].Text))
	case name == runNone:
		c.facts = append(c.facts, holdsIf(factCgroup, sameCgroup(outcomes), outcomes[opCgroup].Text))
	case proc.leaf != nil && name == runCPU:
		stat, _ := proc.leaf.Read("cpu.stat") // without the file nothing was throttled
		c.facts = append(c.facts, holdsIf(factThrottled, throttled(stat), ""))
	}
	if name == runNone {
		c.facts = append(c.facts, p.m.turnsDown(proc)...)
	}
	_ = in[1].Close()
	<-drained
	res, waitErr := proc.Wait()
	switch {
	case err != nil:
		c.broken = err.Error()
	case res.TimedOut:
		c.broken = fmt.Sprintf("the probe's child did not end within %v", probeLimit)
	case !whole && res.Signal != 0:
		c.broken = "the probe's child was ended by signal " + strconv.Itoa(res.Signal)
	case !whole:
		c.broken = "the probe's child ended with status " + strconv.Itoa(res.Code) + " before it had answered"
	case waitErr != nil:
		c.broken = waitErr.Error()
	}
	switch name {
	case runNone:
		c.facts = append(c.facts, eventFact(factEvent, events, s.tcp, true), holdsIf(factThawed, res.Code == 0 && res.Signal == 0 && whole, c.broken))
	case runAllowlist:
		c.facts = append(c.facts, eventFact(factNoEvent, events, s.proxy, false))
	case runMemory:
		c.facts = append(c.facts, holdsIf(factOOM, res.OOM && !whole, c.broken))
	}
	return c
}

// holdsIf is a fact as an outcome.
func holdsIf(id string, ok bool, text string) outcome {
	if ok {
		return outcome{ID: id}
	}
	return outcome{ID: id, Errno: "ERANGE", Text: text}
}

// sameCgroup: the child's child is where the child is.
func sameCgroup(outcomes map[string]outcome) bool {
	mine := outcomes[opCgroup].Text
	for id, o := range outcomes {
		if strings.HasSuffix(id, "."+opCgroup) {
			return mine != "" && o.Text == mine
		}
	}
	return false
}

// eventFact: whether there was an event of a TCP connect to that port of
// loopback is as wanted.
func eventFact(id string, events []event.Event, port int, wanted bool) outcome {
	target := "127.0.0.1:" + strconv.Itoa(port) + "/tcp"
	found := false
	for _, e := range events {
		found = found || e.Type == event.Denied && e.Capability == event.NetConnect && e.Target == target
	}
	return holdsIf(id, found == wanted, fmt.Sprintf("%d events", len(events)))
}

func throttled(stat string) bool {
	for line := range strings.Lines(stat) {
		if v, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			return strings.TrimSpace(v) != "0"
		}
	}
	return false
}

// freeze freezes a leaf and thaws it again.
func freeze(leaf *cgroup.Leaf) []outcome {
	err := setFrozen(leaf, "1")
	if e := setFrozen(leaf, "0"); err == nil {
		err = e
	}
	if err != nil {
		return []outcome{{ID: factFrozen, Errno: errnoName(err), Text: err.Error()}}
	}
	return []outcome{{ID: factFrozen}}
}

// setFrozen writes cgroup.freeze and waits until the kernel says that it is
// so: cgroup.events notifies its pollers (cgroup-v2.rst).
func setFrozen(leaf *cgroup.Leaf, state string) error {
	f, err := os.Open(leaf.Path + "/cgroup.events")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := leaf.Set(cgroup.Setting{File: "cgroup.freeze", Value: state}); err != nil {
		return err
	}
	buf := make([]byte, 256)
	for end := time.Now().Add(probeLimit / 2); ; {
		n, err := unix.Pread(int(f.Fd()), buf, 0)
		if err != nil {
			return err
		}
		if strings.Contains(string(buf[:n]), "frozen "+state+"\n") {
			return nil
		}
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("freeze leaf: not frozen %s after %v", state, probeLimit/2)
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return err
		}
	}
}

// turnsDown asks of this process, which nothing confines, what the launch
// asked of the child.
func (m *machine) turnsDown(proc *process) []outcome {
	own, err := ownNamespaces()
	if err != nil {
		return []outcome{holdsIf(factFreeSeen, false, err.Error())}
	}
	uid, path := -1, ""
	if proc.leaf != nil {
		uid, path = proc.leaf.UID, proc.leaf.Path[len(m.cgroupMount):]
	}
	me, err := verify.See(os.Getpid(), os.Getpid())
	if err != nil {
		return []outcome{holdsIf(factFreeSeen, false, err.Error())}
	}
	return []outcome{{ID: factConfined}, holdsIf(factFreeSeen, verify.Check(proc.plan.expect(uid, path, own[0], own[1]), me) != nil, "it runs in a sandbox itself")}
}

// facts are what is left on disk, and who the job was.
func (s *site) facts(m *machine, answers map[string]answer) []outcome {
	text := answers[runNone].outcomes[opIDs].Text
	uid, err := strconv.Atoi(text)
	l := []outcome{holdsIf(factUID, err == nil && uid >= cgroup.FirstUID && uid <= cgroup.LastUID && uid != m.UID, "uid "+text)}
	var dir, file unix.Stat_t
	if err := errors.Join(unix.Lstat(s.at("rw"), &dir), unix.Lstat(s.at("rw/new"), &file)); err != nil {
		return append(l, holdsIf(factOwner, false, err.Error()))
	}
	return append(l, holdsIf(factOwner, file.Uid == dir.Uid && file.Gid == dir.Gid, fmt.Sprintf("uid %d, gid %d", file.Uid, file.Gid)))
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// userName is the caller's name in /etc/passwd with its uid.
func userName() string {
	uid := strconv.Itoa(os.Geteuid())
	b, err := os.ReadFile("/etc/passwd")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Split(line, ":"); len(f) > 2 && f[2] == uid {
				return f[0] + " (uid " + uid + ")"
			}
		}
	}
	return "uid " + uid
}

// SweepProbes removes the directories of this user's probes that were killed,
// and returns how many there were.
func (p *Platform) SweepProbes() int { return sweepSites(siteDirs()) }

// Facts describe the host for a person, a name and a text each.
func (p *Platform) Facts() [][2]string {
	m := p.m
	abi := "ABI " + strconv.Itoa(m.Landlock)
	if m.Landlock == 0 {
		abi = "none: " + m.why("landlock", "this kernel has none")
	}
	cg := m.cgroupMount
	switch {
	case cg == "":
		cg = "no v2 hierarchy: " + m.why("cgroup", "none is mounted")
	case !m.Root:
		cg += ", no leaf for this user"
	case len(m.Controllers) == 0:
		cg += ", no controllers"
	default:
		cg += ", controllers: " + strings.Join(m.Controllers, " ")
	}
	pins := "none in use: " + m.why("bpf", "no cgroup programs here")
	if m.enforcer != nil {
		pins = m.enforcer.Pins() + ", programs pinned and attached"
		if !m.UnixHooks {
			pins += " (without those for unix sockets)"
		}
	}
	return [][2]string{{"landlock", abi}, {"cgroup v2", cg}, {"bpffs", pins}}
}
