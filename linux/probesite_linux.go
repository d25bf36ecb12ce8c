// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/linux/launch"
	"golang.org/x/sys/unix"
)

// site is what a probe makes for its children to try: files in a directory of
// its own, and sockets that it listens on.
type site struct {
	places
	lock *os.File
	fds  []int
	// tamper changes the children's launches, in tests that open holes.
	tamper func(launch.List) launch.List
}

// newSite makes the directory: where the private view does not cover it, so
// that what lies outside of the granted paths is there to be refused, and
// where programs can be executed.
func newSite(root bool) (_ *site, err error) {
	s := &site{places: places{pid: os.Getpid(), gpu: gpuNode()}}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	for _, dir := range siteDirs() {
		if s.base, s.lock, err = lockedDir(dir); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make the probe's directory: %w", err)
	}
	if err := s.files(root); err != nil {
		return nil, fmt.Errorf("make the probe's files: %w", err)
	}
	if err := s.sockets(); err != nil {
		return nil, fmt.Errorf("make the probe's sockets: %w", err)
	}
	return s, nil
}

// siteDirs lists where a site may be, the best first.
func siteDirs() []string {
	var good, noexec []string
	for _, d := range []string{"/var/tmp", "/var/lib", os.TempDir(), "/tmp"} {
		c := canonicalDir(d)
		if c == "" || slices.Contains(good, c) || slices.Contains(noexec, c) {
			continue
		}
		var st unix.Statfs_t
		if unix.Statfs(c, &st) == nil && st.Flags&unix.ST_NOEXEC != 0 {
			noexec = append(noexec, c)
			continue
		}
		good = append(good, c)
	}
	return append(good, noexec...)
}

// lockedDir makes a directory that belongs to this process as long as it
// lives; see sweepSites. Another probe's sweep can come between making it and
// locking it: then it is made again.
func lockedDir(in string) (string, *os.File, error) {
	const tries = 10
	var err error
	for range tries {
		var base string
		if base, err = os.MkdirTemp(in, sitePrefix()+strconv.Itoa(os.Getpid())+"-"); err != nil {
			break
		}
		var f *os.File
		if f, err = lockDir(base); err == nil {
			return base, f, nil
		}
		_ = os.RemoveAll(base)
	}
	return "", nil, cause(err)
}

func lockDir(base string) (*os.File, error) {
	f, err := os.Open(base)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		// Another uid must find its way to what is granted in it.
		err = os.Chmod(base, 0o755)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sitePrefix begins the names of this user's directories; the pid follows, for
// a reader.
func sitePrefix() string { return probePrefix + strconv.Itoa(os.Geteuid()) + "-" }

// sweepSites removes the directories of this user's probes that were killed:
// their locks ended with them.
func sweepSites(dirs []string) int {
	n := 0
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, sitePrefix()+"*")) // the error is of a bad pattern
		for _, name := range names {
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && int(st.Uid) == os.Geteuid() && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil &&
				os.RemoveAll(name) == nil {
				n++
			}
			_ = unix.Close(fd)
		}
	}
	return n
}

func (s *site) files(root bool) error {
	for dir, mode := range map[string]os.FileMode{"outside": 0o755, "ro": 0o755, "rw": 0o700, "rd": 0o755, "wo": 0o700, "broker": 0o755} {
		if err := os.Mkdir(s.at(dir), 0o700); err != nil {
			return err
		}
		if err := os.Chmod(s.at(dir), mode); err != nil { // whatever the umask
			return err
		}
	}
	for file, mode := range map[string]os.FileMode{"outside/secret": 0o600, "outside/open": 0o644, "ro/file": 0o644, "rw/own": 0o600, "rd/file": 0o644, "wo/old": 0o600} {
		if err := os.WriteFile(s.at(file), []byte("probe\n"), 0o600); err != nil {
			return err
		}
		if err := os.Chmod(s.at(file), mode); err != nil {
			return err
		}
	}
	if root {
		// A file of another uid.
		if err := os.WriteFile(s.at("ro/alien"), []byte("probe\n"), 0o600); err != nil {
			return err
		}
		if err := os.Chown(s.at("ro/alien"), 1, 1); err != nil {
			return err
		}
	}
	// One file by three names: what differs is the grant alone.
	if err := copyProgram(s.at("ro/prog")); err != nil {
		return err
	}
	for _, dir := range []string{"rw", "rd"} {
		if err := os.Link(s.at("ro/prog"), s.at(dir+"/prog")); err != nil {
			return err
		}
	}
	return nil
}

// copyProgram copies this program.
func copyProgram(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Chmod(0o755)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// listen opens a socket at sa and returns its port.
func (s *site) listen(family, kind int, sa unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	s.fds = append(s.fds, fd)
	if err := unix.Bind(fd, sa); err != nil {
		return 0, err
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 64); err != nil {
			return 0, err
		}
	}
	name, err := unix.Getsockname(fd)
	switch n := name.(type) {
	case *unix.SockaddrInet4:
		return n.Port, err
	case *unix.SockaddrInet6:
		return n.Port, err
	}
	return 0, err
}

func (s *site) sockets() (err error) {
	local := [4]byte{127, 0, 0, 1}
	for _, port := range []*int{&s.tcp, &s.proxy, &s.free} {
		if *port, err = s.listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: local}); err != nil {
			return err
		}
	}
	// The last one was opened for a port that is free.
	_ = unix.Close(s.fds[len(s.fds)-1])
	s.fds = s.fds[:len(s.fds)-1]
	if s.udp, err = s.listen(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: local}); err != nil {
		return err
	}
	// A host without IPv6 has no such port; what is tried at port 9 then
	// cannot be.
	s.tcp6 = 9
	if p, err := s.listen(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}); err == nil {
		s.tcp6 = p
	}
	s.abstract = "@" + filepath.Base(s.base)
	for name, kind := range map[string]int{s.at("outside/sock"): unix.SOCK_STREAM, s.at("rw/sock"): unix.SOCK_STREAM,
		s.at("outside/dgram"): unix.SOCK_DGRAM, s.at("broker/sock"): unix.SOCK_STREAM, s.abstract: unix.SOCK_STREAM} {
		if _, err := s.listen(unix.AF_UNIX, kind, &unix.SockaddrUnix{Name: name}); err != nil {
			return err
		}
		if !strings.HasPrefix(name, "@") {
			if err := os.Chmod(name, 0o777); err != nil {
				return err
			}
		}
	}
	return nil
}

// gpuNode returns a GPU device that this process can open, or "".
func gpuNode() string {
	for _, pattern := range []string{"/dev/dri/render*", "/dev/kfd", "/dev/nvidiactl", "/dev/nvidia[0-9]*"} {
		nodes, _ := filepath.Glob(pattern) // the error is of a bad pattern
		for _, n := range nodes {
			if doOpen(act{Op: opDevice, Path: n}) == nil {
				return n
			}
		}
	}
	return ""
}

// remove takes the site away.
func (s *site) remove() {
	for _, fd := range s.fds {
		_ = unix.Close(fd)
	}
	if s.lock != nil {
		_ = os.RemoveAll(s.base)
		s.lock.Close()
	}
}
