// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/sandtest"
	"golang.org/x/sys/unix"
)

// leaves is where starts make their cgroups.
const leaves = "thole"

// TestPrison carries out the tables, one start for each kind of caller and
// mode.
func TestPrison(t *testing.T) {
	sandtest.Root(t, "the host around the sandbox is made for the test")
	rows := readTables(t)
	if len(rows) < 250 {
		t.Fatalf("the tables hold %d acts: some are missing", len(rows))
	}
	program := sandtest.Build(t, "github.com/tholehq/thole/linux/internal/prisoner")
	for _, kind := range []string{"root", "same", "user", "bare"} {
		for _, mode := range modes[kind] {
			t.Run(kind+"/"+mode, func(t *testing.T) {
				sandtest.Leaks(t, leaves)
				imprison(t, rows, &order{Kind: kind, Mode: mode, Program: program, ProxyPort: freePort(t)})
			})
		}
	}
}

// freePort is only a number that a listener in another namespace can have.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func imprison(t *testing.T, rows []row, o *order) {
	o.World = sandtest.Dir(t)
	w := makeWorld(t, o)
	var mine []row
	for _, r := range rows {
		if r.expected(o.Kind, o.Mode) != "-" {
			mine = append(mine, r)
			o.Acts = append(o.Acts, r.act)
		}
	}
	before := w.snapshot()
	a := stage(t, o)
	if len(a.Outcomes) != len(mine) {
		t.Fatalf("%d acts, %d outcomes", len(mine), len(a.Outcomes))
	}
	for i, r := range mine {
		if want := r.expected(o.Kind, o.Mode); !met(want, a.Outcomes[i], a.Gaps) {
			t.Errorf("%s: %s: %s, want %s", r.where, r.act, a.Outcomes[i], want)
		}
	}
	if t.Failed() {
		for _, g := range a.Gaps {
			t.Logf("gap: %s: %s", g.Capability, g.Reason)
		}
	}
	checkAnswer(t, o, a)
	if after := w.snapshot(); after != before {
		t.Errorf("what lies outside of the writable roots has changed:\n%s", difference(before, after))
	}
	w.checkOwners(t)
}

// checkAnswer looks at what came of the acts outside.
func checkAnswer(t *testing.T, o *order, a *answer) {
	if a.Code != 0 {
		t.Errorf("the prisoner ended with %d", a.Code)
	}
	if a.Signals != 0 {
		t.Errorf("%d signals left the sandbox", a.Signals)
	}
	if a.Typed != "" {
		t.Errorf("the prisoner typed %q", a.Typed)
	}
	var allowed []string
	switch o.Kind + "/" + o.Mode {
	case "root/audit":
		allowed = a.Seen // everything passes, and is reported
	case "root/allow", "user/allow":
		allowed = []string{"proxy"}
	case "user/any":
		allowed = []string{"tcp", "proxy", "udp"} // a gap, as the table says
	case "root/broker":
		allowed = []string{filepath.Join(o.World, "sock/broker")}
	case "user/broker":
		for _, n := range []string{"stream", "broker", "seq", "dgram"} {
			allowed = append(allowed, filepath.Join(o.World, "sock", n)) // likewise
		}
	}
	own := 1 // the warden's inherited connection
	for _, s := range a.Seen {
		if s == "tcp" && own > 0 {
			own--
			continue
		}
		if !slices.Contains(allowed, s) {
			t.Errorf("%s was reached", s)
		}
	}
	if o.uid() != 0 {
		return
	}
	denied, other := event.Denied, event.WouldDeny
	if o.Mode == "audit" {
		denied, other = other, denied
	}
	if a.Lost != 0 {
		t.Errorf("%d events were lost", a.Lost)
	}
	n := 0
	for k, v := range a.Events {
		if strings.HasPrefix(k, string(other)+" ") {
			t.Errorf("%d events say %s", v, k)
		}
		if strings.HasPrefix(k, string(denied)+" ") {
			n += v
		}
	}
	if n < 40 {
		t.Errorf("%d refusals were reported: %v", n, a.Events)
	}
}

// stage starts the host around the sandbox: in a network namespace, and for
// "bare" in a user namespace that allows no further one.
func stage(t *testing.T, o *order) *answer {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(o.World, "order.json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	cmd := exec.Command(sandtest.Self(t))
	cmd.Env = append(os.Environ(), roleVar+"=host", orderVar+"="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	switch o.Kind {
	case "same":
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNS
	case "bare":
		all := []syscall.SysProcIDMap{{Size: math.MaxUint32}}
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = all, all
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("start host: %v\n%s", err, stderr.Bytes())
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("host printed %.300q: %v", out.Bytes(), err)
	}
	return &a
}

func difference(before, after string) string {
	was := strings.Split(before, "\n")
	var b strings.Builder
	for line := range strings.SplitSeq(after, "\n") {
		if !slices.Contains(was, line) {
			fmt.Fprintf(&b, "now %s\n", line)
		}
	}
	is := strings.Split(after, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			fmt.Fprintf(&b, "was %s\n", line)
		}
	}
	return b.String()
}
