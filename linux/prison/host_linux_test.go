// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tholehq/thole/bpf/flat"
	"github.com/tholehq/thole/linux/cgroup"
	"github.com/tholehq/thole/linux/netbpf"
	"golang.org/x/sys/unix"
)

// ownPublic is an address of the host that looks public: in mode any it is
// refused for being the host's own. public is nobody's here.
const (
	ownPublic = "8.8.8.8"
	public    = "9.9.9.9"
)

// surroundings are what a prisoner may try to reach.
type surroundings struct {
	words map[string]string
	close []func()
	mu    sync.Mutex
	seen  []string
}

func (s *surroundings) saw(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

func (s *surroundings) undo() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
	s.close = nil
}

// host is started as root in a network namespace of its own: whatever is
// allowed in here leaves no machine.
func host(o *order) (*answer, error) {
	s := &surroundings{words: map[string]string{"w": o.World, "exe": o.Program, "own": ownPublic, "public": public, "host": strconv.Itoa(os.Getpid())}}
	defer s.undo()
	if o.Kind == "bare" {
		// The limit is this user namespace's own (namespaces(7)).
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return nil, err
		}
	}
	if o.Kind == "same" {
		// In a mount namespace of this process; ramfs knows no id mapping.
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return nil, err
		}
		if err := unix.Mount("ramfs", filepath.Join(o.World, "ram"), "ramfs", 0, ""); err != nil {
			return nil, err
		}
	}
	for _, f := range []func() error{loopback, func() error { return s.network(o) }, func() error { return s.sockets(o) }, s.sysv, s.queue, s.files, s.kernel} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	master, slave, err := terminal()
	if err != nil {
		return nil, err
	}
	defer master.Close()
	defer slave.Close()
	a, err := s.warden(o, slave)
	if err != nil {
		return nil, err
	}
	// What was typed into the terminal is echoed to its other side.
	typed := make([]byte, 4096)
	if n, err := unix.Read(int(master.Fd()), typed); err == nil {
		a.Typed = string(typed[:n])
	}
	s.undo()
	a.Seen = s.seen
	return a, nil
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("raise loopback: %w", err)
	}
	alias, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(net.ParseIP(ownPublic).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias); err != nil {
		return fmt.Errorf("add address: %w", err)
	}
	return nil
}

// network listens on every address, by TCP and UDP, and as the proxy.
func (s *surroundings) network(o *order) error {
	for _, l := range []struct{ network, addr, word string }{{"tcp", "[::]:7001", "tcp"}, {"tcp", "127.0.0.1:" + strconv.Itoa(o.ProxyPort), "proxy"}} {
		// MPTCP off: the prisoner's answers are those of plain TCP.
		var lc net.ListenConfig
		lc.SetMultipathTCP(false)
		ln, err := lc.Listen(context.Background(), l.network, l.addr)
		if err != nil {
			return err
		}
		s.words[l.word] = strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
		s.accept(ln, l.word)
	}
	pc, err := net.ListenPacket("udp", "[::]:7002")
	if err != nil {
		return err
	}
	s.words["udp"] = "7002"
	s.receive(pc, "udp")
	return nil
}

// accept notes connections until the surroundings are taken away.
func (s *surroundings) accept(ln net.Listener, name string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.saw(name)
			c.Close()
		}
	}()
	s.close = append(s.close, func() { ln.Close(); <-done })
}

func (s *surroundings) receive(pc net.PacketConn, name string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64)
		for {
			if _, _, err := pc.ReadFrom(b); err != nil {
				return
			}
			s.saw(name)
		}
	}()
	s.close = append(s.close, func() { pc.Close(); <-done })
}

// sockets are unix listeners, by path and abstract, that everyone may use.
func (s *surroundings) sockets(o *order) error {
	dir := filepath.Join(o.World, "sock")
	abstract := "@thole-prison-" + strconv.Itoa(os.Getpid())
	s.words["abstract"], s.words["abstract-dgram"] = abstract, abstract+"-d"
	for _, l := range []struct{ network, name string }{{"unix", dir + "/stream"}, {"unix", dir + "/broker"}, {"unixpacket", dir + "/seq"}, {"unix", abstract}} {
		ln, err := net.Listen(l.network, l.name)
		if err != nil {
			return err
		}
		s.accept(ln, l.name)
	}
	for _, name := range []string{dir + "/dgram", abstract + "-d"} {
		pc, err := net.ListenPacket("unixgram", name)
		if err != nil {
			return err
		}
		s.receive(pc, name)
	}
	for _, n := range []string{"stream", "broker", "seq", "dgram"} {
		if err := os.Chmod(filepath.Join(dir, n), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// kernel names what the sandbox is made of.
func (s *surroundings) kernel() error {
	mount, err := cgroup.Mount()
	if err != nil {
		return err
	}
	conf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	s.words["cgroup"], s.words["pin"] = mount, fmt.Sprintf("abi%d/link_thole_connect4", flat.Abi)
	s.words["resolver"] = netbpf.Resolvers(conf)[0].String()
	return nil
}

// warden starts the warden on the terminal, with descriptors that it will not
// have asked for.
func (s *surroundings) warden(o *order, slave *os.File) (*answer, error) {
	file, err := os.Open(filepath.Join(o.World, "outside/file"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dir, err := os.Open("/")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c, err := net.Dial("tcp", "127.0.0.1:"+s.words["tcp"])
	if err != nil {
		return nil, err
	}
	defer c.Close()
	conn, err := c.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	acts := filepath.Join(o.World, "ro/acts.json")
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVar+"=warden", "THOLE_PRISON_SECRET=hidden")
	cmd.Stdin = slave
	cmd.ExtraFiles = []*os.File{file, dir, conn}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if o.uid() != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid()), Gid: uint32(o.uid())}
		if err := slave.Chown(o.uid(), o.uid()); err != nil {
			return nil, err
		}
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	cmd.ExtraFiles = append(cmd.ExtraFiles, gate)
	if err := cmd.Start(); err != nil {
		open.Close()
		return nil, err
	}
	s.words["pid"] = strconv.Itoa(cmd.Process.Pid)
	err = s.write(acts, o.Acts)
	open.Close() // opens the gate
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("prisoner says: %s", stderr.Bytes())
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("warden printed %.300q: %w", out.Bytes(), err)
	}
	return &a, nil
}

// write fills the words in and writes the list of acts.
func (s *surroundings) write(file string, acts []string) error {
	var pairs []string
	for k, v := range s.words {
		pairs = append(pairs, "{"+k+"}", v)
	}
	r := strings.NewReplacer(pairs...)
	list := make([]string, len(acts))
	for i, a := range acts {
		list[i] = r.Replace(a)
		if strings.Contains(list[i], "{") {
			return fmt.Errorf("act %q has a word that nobody fills in", list[i])
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}
