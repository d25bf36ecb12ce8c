// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command vmrun runs a static program on another kernel and ends with its
// status, or with 125 where the guest could not run it:
//
//	go test -exec "vmrun -kernel 6.12" ./linux/landlock
//	vmrun -kernel newest -append lsm=capability,bpf -- bin/thole doctor
//
// The program runs as root in the directory that vmrun was called in, beside
// a copy of that directory's testdata.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/tholehq/thole/linux/internal/vm"
)

// exitRunner is the status for failures of the runner itself.
const exitRunner = 125

func main() {
	vm.Init()
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmrun:", err)
		code = exitRunner
	}
	os.Exit(code)
}

func run() (int, error) {
	kernel := flag.String("kernel", "6.12", "name of a kernel that .ci/vm fetched")
	more := flag.String("append", "", "more of the kernel's command line")
	timeout := flag.Duration("timeout", 10*time.Minute, "of the whole boot")
	console := flag.Bool("console", false, "print what the kernel printed")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		return 0, errors.New("no program")
	}
	cache, err := vm.Cache()
	if err != nil {
		return 0, err
	}
	k, err := vm.Open(cache, *kernel)
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "thole-vmrun-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	disk, wd, err := makeDisk(tmp, flag.Arg(0))
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	m := vm.Machine{Kernel: k, Disk: disk, Init: self, Append: *more,
		Steps: []vm.Step{{Name: "program", Argv: append([]string{guestProgram}, flag.Args()[1:]...), Dir: wd}},
		Seen: func(f vm.Frame) {
			fmt.Fprint(os.Stdout, f.Out)
			fmt.Fprint(os.Stderr, f.Err)
		}}
	if *console {
		m.Console = os.Stderr
	}
	results, err := vm.Boot(ctx, m)
	if err != nil {
		return 0, err
	}
	end := results[0].End
	if end.Error != "" {
		return 0, errors.New(end.Error)
	}
	return end.Code, nil
}

const guestProgram = "/usr/bin/program"

// makeDisk returns the disk and the working directory.
func makeDisk(tmp, program string) (disk, wd string, err error) {
	if wd, err = os.Getwd(); err != nil {
		return "", "", err
	}
	t, err := vm.NewTree(filepath.Join(tmp, "tree"))
	if err != nil {
		return "", "", err
	}
	if err := t.Program(program, guestProgram); err != nil {
		return "", "", err
	}
	if err := t.Write(filepath.Join(wd, ".vmrun"), "", 0o644); err != nil {
		return "", "", err
	}
	if _, err := os.Stat("testdata"); err == nil {
		if err := t.Dir("testdata", filepath.Join(wd, "testdata")); err != nil {
			return "", "", err
		}
	}
	disk = filepath.Join(tmp, "disk")
	return disk, wd, t.Image(disk, 256)
}
