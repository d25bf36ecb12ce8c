// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tholehq/thole/common/event"
	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"golang.org/x/sys/unix"
)

// roleVar makes the test binary a program of the tests: see TestMain.
const roleVar = "THOLE_LINUX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "connect":
		connectMain()
	case "exec":
		execMain()
	}
}

// connectMain connects to the loopback port that it is told, several times,
// and says whether each was refused.
func connectMain() {
	port, _ := strconv.Atoi(os.Args[1])
	n, _ := strconv.Atoi(os.Args[2])
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			os.Exit(2)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != unix.EPERM {
			os.Exit(3)
		}
		unix.Close(fd)
	}
	os.Exit(0)
}

// denials starts a program that is refused n connects to port, and returns
// the targets of the events that its start delivered.
func denials(t *testing.T, p *Platform, bin string, port, n int) []string {
	spec := platform.Spec{Path: bin, Argv: []string{"connect", strconv.Itoa(port), strconv.Itoa(n)}, Env: []string{roleVar + "=connect"},
		Policy: &policy.Policy{Kind: "runner", Net: policy.Net{Mode: policy.Any}, FS: policy.FS{RO: []policy.Path{{Path: bin}}}}}
	plan, err := p.Plan(spec)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer plan.Close()
	proc, err := plan.Start(context.Background())
	if err != nil {
		t.Error(err)
		return nil
	}
	var seen []string
	for e := range proc.Events() {
		if e.Type != event.Denied || e.PID != uint32(proc.PID()) {
			t.Errorf("event %+v of process %d", e, proc.PID())
		}
		seen = append(seen, e.Target)
	}
	if r, err := proc.Wait(); err != nil || r.Code != 0 || r.Lost != 0 {
		t.Errorf("result %+v, %v", r, err)
	}
	return seen
}

// TestParallel: of fifty starts at once each sees its own denials and no other,
// and nothing of them stays.
func TestParallel(t *testing.T) {
	p := testPlatform(t)
	needRoot(t, p)
	dir := shared(t)
	bin := filepath.Join(dir, "linux.test")
	copyFile(t, bin)
	const starts, each = 50, 3
	round := func() {
		var wg sync.WaitGroup
		for i := range starts {
			wg.Go(func() {
				port := 10000 + i
				want := slices.Repeat([]string{fmt.Sprintf("127.0.0.1:%d/tcp", port)}, each)
				if got := denials(t, p, bin, port, each); !slices.Equal(got, want) {
					t.Errorf("start %d: events %v, want %v", i, got, want)
				}
			})
		}
		wg.Wait()
	}
	round() // opens what later starts share: maps, ring slots
	before := snapshot(t, p, dir)
	round()
	same(t, before, snapshot(t, p, dir))
}

// TestThousand: a thousand starts in sequence leave nothing.
func TestThousand(t *testing.T) {
	p, tr := testPlatform(t), newTrial(t)
	needRoot(t, p)
	n := 1000
	if testing.Short() {
		n = 50
	}
	start := func() {
		if err := tr.run(t, p, nil); err != nil || !tr.ran() {
			t.Fatalf("start: %v", err)
		}
	}
	start()
	before := snapshot(t, p, filepath.Dir(tr.dir))
	for range n {
		start()
	}
	same(t, before, snapshot(t, p, filepath.Dir(tr.dir)))
}
