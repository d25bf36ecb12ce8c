// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/tholehq/thole/linux"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/lsmbpf"
	"github.com/tholehq/thole/linux/netbpf"
	"golang.org/x/sys/unix"
)

const usage = `usage: tholed lsm

lsm attaches the LSM programs and keeps them attached until it is ended (SIGTERM, SIGINT).
They see what crosses a sandbox's border by other ways than its own sockets: signals, ptrace,
sockets made or passed in from outside, listening, user namespaces. They need a kernel that was
booted with bpf in its lsm= list; without one it says so and exits with status 1.
`

func run(args []string) int {
	if len(args) != 1 || args[0] != "lsm" {
		fmt.Fprint(os.Stderr, usage)
		return 64
	}
	if err := holdLSM(); err != nil {
		fmt.Fprintln(os.Stderr, "tholed:", err)
		switch {
		case errors.Is(err, lsmbpf.ErrInactive):
			fmt.Fprintln(os.Stderr, "hint: add bpf to the kernel's lsm= parameter")
		case errors.Is(err, unix.EPERM):
			fmt.Fprintln(os.Stderr, "hint: run as root on a kernel with CONFIG_BPF_LSM; some refuse every LSM program at load, whatever the memory limit")
		}
		return 1
	}
	return 0
}

// holdLSM attaches, says what is in force, and waits for its end.
func holdLSM() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM, unix.SIGINT)
	mount, err := cgroup.Mount()
	if err != nil {
		return err
	}
	e, err := netbpf.Open(netbpf.Options{CgroupRoot: mount, Parent: linux.ParentName})
	if err != nil {
		return err
	}
	defer e.Close()
	parent, err := netbpf.CgroupID(e.ParentFD())
	if err != nil {
		return fmt.Errorf("identify cgroup: %w", err)
	}
	l, err := lsmbpf.Attach(lsmbpf.Config{Pins: e.Pins(), Parent: parent, JudgeUnix: !e.Features().Unix})
	if err != nil {
		return err
	}
	defer l.Close()
	hooks := slices.Sorted(slices.Values(l.Hooks()))
	fmt.Printf("tholed: attached %d LSM programs: %s\n", len(hooks), strings.Join(hooks, ", "))
	for hook, err := range l.Gaps() {
		fmt.Printf("tholed: not attached: %s: %v\n", hook, err)
	}
	<-end
	return nil
}
