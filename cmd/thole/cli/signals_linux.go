// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/tholehq/thole/common/platform"
	"golang.org/x/sys/unix"
)

// forwarder passes signals on to the program, which stays in this process's
// group and session: what the terminal sends (Ctrl-C, Ctrl-Z, a changed
// window) reaches both from the kernel, and this process must neither die of
// it first nor send it a second time. Stopping and going on is left to the
// kernel's own answer for both.
type forwarder struct {
	ch   chan os.Signal
	done chan struct{}
	proc chan platform.Process
}

// fromTerminal are the signals that a terminal sends to its whole foreground
// group.
var fromTerminal = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, unix.SIGHUP}

func newForwarder() *forwarder {
	f := &forwarder{ch: make(chan os.Signal, 32), done: make(chan struct{}), proc: make(chan platform.Process, 1)}
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH, unix.SIGVTALRM, unix.SIGIO, unix.SIGPWR} {
		// A signal that the caller ignores (nohup) the program ignores too.
		if !signal.Ignored(s) {
			signal.Notify(f.ch, s)
		}
	}
	go f.loop()
	return f
}

// to names the process; signals that came before are passed on now.
func (f *forwarder) to(p platform.Process) { f.proc <- p }

func (f *forwarder) stop() {
	signal.Stop(f.ch)
	close(f.done)
}

func (f *forwarder) loop() {
	var p platform.Process
	var early []os.Signal
	for {
		select {
		case <-f.done:
			return
		case p = <-f.proc:
			for _, s := range early {
				_ = p.Signal(s)
			}
		case s := <-f.ch:
			if p == nil {
				early = append(early, s)
				continue
			}
			if !byTerminal(s) {
				_ = p.Signal(s.(syscall.Signal))
			}
		}
	}
}

// byTerminal reports whether the program got the signal from the terminal: it
// is one that terminals send, and this process is in the foreground of one.
func byTerminal(s os.Signal) bool {
	for _, t := range fromTerminal {
		if s == t {
			return foreground()
		}
	}
	return false
}

func foreground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	pgrp, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}
