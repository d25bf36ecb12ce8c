// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrGuest is wrapped where a guest did not report to its end: it crashed,
// hung until its time was over, or QEMU did. The message holds the console.
var ErrGuest = errors.New("the guest gave no full report")

// Machine is one boot.
type Machine struct {
	Kernel Kernel
	Disk   string // an image of [Tree.Image]; what is written is lost
	Init   string // the static program that calls [Init] as first process
	Append string // more of the kernel's command line
	// Modules are loaded before the steps; what the kernel does not have is
	// left out.
	Modules []string
	Steps   []Step
	// Seen, if set, is called with each frame as it comes.
	Seen func(Frame)
	// Console, if set, gets what the kernel printed.
	Console io.Writer
}

// command line of every guest: a guest that panics ends.
const cmdline = "console=ttyS0 panic=-1 oops=panic quiet loglevel=4 mitigations=off random.trust_cpu=on"

// Boot runs the machine until its steps are done. With [ErrGuest] it has
// tried twice: emulated machines crash now and then by no fault of the guest.
func Boot(ctx context.Context, m Machine) ([]Result, error) {
	results, err := m.boot(ctx)
	if errors.Is(err, ErrGuest) && ctx.Err() == nil {
		again, err2 := m.boot(ctx)
		if err2 == nil {
			return again, nil
		}
		return again, fmt.Errorf("twice: %w; before: %w", err2, err)
	}
	return results, err
}

func (m Machine) boot(ctx context.Context) ([]Result, error) {
	tmp, err := os.MkdirTemp("", "thole-vm-")
	if err != nil {
		return nil, fmt.Errorf("boot guest: %w", err)
	}
	defer os.RemoveAll(tmp)
	initrd := filepath.Join(tmp, "initrd")
	if err := m.writeInitrd(initrd); err != nil {
		return nil, fmt.Errorf("make initial ramfs: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	console := filepath.Join(tmp, "console")
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", m.args(initrd, console)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// The thread has to stay as long as qemu does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithUs(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("boot guest: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start qemu: %w", err)
	}
	results, readErr := collect(out, m.Steps, m.Seen)
	if readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF) {
		cancel() // a report that makes no sense: the guest would go on
	}
	_, _ = io.Copy(io.Discard, out)
	waitErr := cmd.Wait()
	text, _ := os.ReadFile(console)
	if m.Console != nil {
		_, _ = m.Console.Write(text)
	}
	if readErr != nil {
		return results, fmt.Errorf("kernel %s: %w (%w, qemu: %v %s)\n%s", m.Kernel.Release, ErrGuest, errors.Join(ctx.Err(), readErr), waitErr, stderr.String(), text)
	}
	return results, nil
}

func (m Machine) args(initrd, console string) []string {
	accel := "tcg,thread=single"
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
		f.Close()
		accel = "kvm"
	}
	return []string{"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35", "-accel", accel, "-cpu", "max", "-smp", "1", "-m", "1G",
		"-kernel", m.Kernel.Image(), "-initrd", initrd, "-append", strings.TrimSpace(cmdline + " " + m.Append),
		"-drive", "if=none,id=root,format=raw,snapshot=on,file=" + strings.ReplaceAll(m.Disk, ",", ",,"), "-device", "virtio-blk-pci,drive=root",
		"-chardev", "file,id=console,path=" + strings.ReplaceAll(console, ",", ",,"), "-serial", "chardev:console",
		"-chardev", "stdio,id=report,signal=off", "-serial", "chardev:report"}
}

func (m Machine) writeInitrd(path string) error {
	var a archive
	for _, d := range []string{"dev", "root", "modules"} {
		a.dir(d)
	}
	a.char("dev/console", 5, 1)
	if err := static(m.Init); err != nil {
		return err
	}
	init, err := os.ReadFile(m.Init)
	if err != nil {
		return err
	}
	a.file("init", 0o755, init)
	modules, err := m.Kernel.Modules(append([]string{"virtio_pci", "virtio_blk"}, m.Modules...)...)
	if err != nil {
		return err
	}
	j := job{Steps: m.Steps}
	for _, host := range modules {
		b, err := os.ReadFile(host)
		if err != nil {
			return err
		}
		name := "modules/" + filepath.Base(host)
		a.file(name, 0o644, b)
		j.Modules = append(j.Modules, "/"+name)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a.file(jobFile, 0o644, text)
	return os.WriteFile(path, a.bytes(), 0o600)
}
