// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workVar marks the second process of a guest, which runs the steps: the first
// takes care of orphans.
const workVar = "THOLE_VM_WORK"

// report is the serial port that frames go to.
const report = "/dev/ttyS1"

// Init does what the first process of a guest has to, and does not return in
// one. Elsewhere it returns at once. Call it first in main: it must find the
// process as the kernel made it.
func Init() {
	if os.Getenv(workVar) != "" {
		os.Exit(work())
	}
	if os.Getpid() != 1 || !inGuest() {
		return
	}
	if err := first(); err != nil {
		fmt.Println("vm:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the kernel panics where its first process ends
}

// inGuest tells an initial ramfs of ours from a container, in which other
// programs are process 1.
func inGuest() bool {
	_, err := os.Stat("/" + jobFile)
	return err == nil && os.Args[0] == "/init"
}

// first sets up the guest, has a second process run the steps and waits for
// it and for every orphan.
func first() error {
	text, err := os.ReadFile("/" + jobFile)
	if err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if err := root(j.Modules); err != nil {
		return err
	}
	mounts()
	loopback()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"steps"}, &os.ProcAttr{
		Env:   []string{workVar + "=1", "PATH=/usr/bin:/usr/sbin", "HOME=/root", "TMPDIR=/tmp", "USER=root"},
		Files: []*os.File{r, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start steps: %w", err)
	}
	r.Close()
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("hand over steps: %w", err)
	}
	w.Close()
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if pid == p.Pid || err != nil && err != unix.EINTR {
			return nil
		}
	}
}

// root makes the disk the root file system. The initial ramfs cannot be one
// for tests: pivot_root(2) refuses to leave it.
func root(modules []string) error {
	if err := unix.Mount("devtmpfs", "/dev", "devtmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, m := range modules {
		f, err := os.Open(m)
		if err != nil {
			return err
		}
		flags := 0
		if !strings.HasSuffix(m, ".ko") {
			flags = unix.MODULE_INIT_COMPRESSED_FILE
		}
		err = unix.FinitModule(int(f.Fd()), "", flags)
		f.Close()
		if err != nil && err != unix.EEXIST {
			return fmt.Errorf("load module %s: %w", m, err)
		}
	}
	// A disk appears some time after its driver.
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = unix.Mount("/dev/vda", "/root", "ext4", 0, ""); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("mount disk: %w", err)
	}
	return errors.Join(
		unix.Mount("/dev", "/root/dev", "", unix.MS_MOVE, ""),
		unix.Chdir("/root"),
		unix.Mount("/root", "/", "", unix.MS_MOVE, ""),
		unix.Chroot("."),
		unix.Chdir("/"))
}

// mounts mounts what a host has. A kernel that lacks one of them is what a
// test is about; the console tells.
func mounts() {
	for _, m := range []struct{ fs, at, options string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"tmpfs", "/run", "mode=0755"}, {"devpts", "/dev/pts", "newinstance,ptmxmode=0666"},
		{"tmpfs", "/dev/shm", "mode=1777"}, {"cgroup2", "/sys/fs/cgroup", ""}, {"bpf", "/sys/fs/bpf", "mode=0700"}, {"securityfs", "/sys/kernel/security", ""},
		{"tracefs", "/sys/kernel/tracing", ""},
	} {
		_ = os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.fs, m.at, m.fs, unix.MS_NOSUID, m.options); err != nil {
			fmt.Printf("vm: mount %s on %s: %v\n", m.fs, m.at, err)
		}
	}
	for _, l := range [][2]string{{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"}} {
		_ = os.Symlink(l[0], l[1])
	}
	have, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	for _, c := range strings.Fields(string(have)) {
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+c), 0); err != nil {
			fmt.Printf("vm: controller %s: %v\n", c, err)
		}
	}
	_ = unix.Sethostname([]byte("guest"))
}

func loopback() {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(s)
		var ifr *unix.Ifreq
		if ifr, err = unix.NewIfreq("lo"); err == nil {
			ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
		}
	}
	if err != nil {
		fmt.Println("vm: set lo up:", err)
	}
}

// work runs the steps and reports.
func work() int {
	os.Unsetenv(workVar)
	port, err := openReport()
	if err != nil {
		fmt.Println("vm:", err)
		return 1
	}
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		fmt.Println("vm: read steps:", err)
		return 1
	}
	w := &frames{to: json.NewEncoder(port)}
	for _, s := range j.Steps {
		end := w.run(s)
		w.put(Frame{Step: s.Name, End: &end})
	}
	w.put(Frame{Last: true})
	_ = unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1) // tcdrain(3)
	return 0
}

// openReport opens the port and turns off what a terminal does to bytes.
func openReport() (*os.File, error) {
	f, err := os.OpenFile(report, os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Iflag &^= unix.ICRNL | unix.IXON
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", report, err)
	}
	return f, nil
}

type frames struct {
	mu sync.Mutex
	to *json.Encoder
}

func (w *frames) put(f Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.to.Encode(f); err != nil {
		fmt.Println("vm: report:", err)
	}
}

// stream is a step's standard output or error.
type stream func(text string)

func (s stream) Write(b []byte) (int, error) {
	s(string(b))
	return len(b), nil
}

func (w *frames) run(s Step) End {
	ctx := context.Background()
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.Env...)
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Stdout = stream(func(t string) { w.put(Frame{Step: s.Name, Out: t}) })
	cmd.Stderr = stream(func(t string) { w.put(Frame{Step: s.Name, Err: t}) })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.User != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: s.User, Gid: s.User}
	}
	// What the step left behind may hold its output open.
	cmd.WaitDelay = 2 * time.Second
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	start := time.Now()
	err := cmd.Run()
	end := End{Took: time.Since(start)}
	if cmd.ProcessState == nil {
		end.Code = 127
	} else if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		end.Code = 128 + int(ws.Signal())
	} else {
		end.Code = ws.ExitStatus()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		end.Error = fmt.Sprintf("killed after %v", s.Timeout)
	case err != nil && !errors.As(err, &exit):
		end.Error = err.Error()
	}
	return end
}
