// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// Options say where the programs are attached and pinned.
type Options struct {
	// CgroupRoot is a directory of the cgroup v2 hierarchy, usually its mount.
	CgroupRoot string
	// Parent is the name of the directory below CgroupRoot that holds all
	// sandboxes; "thole" if empty. Open makes it, and writes no controller.
	Parent string
	// BPFFS is a directory on a bpf file system; /sys/fs/bpf if empty. Where
	// nothing is mounted there, Open mounts one, for /sys/fs/bpf with
	// /run/thole/bpf to fall back on.
	BPFFS string
}

// Features say what of the programs this kernel has.
type Features struct {
	Unix   bool // connect and sendmsg of unix sockets are judged (6.7)
	Retval bool // an MPTCP socket answers EPROTONOSUPPORT, not EPERM (5.18)
}

const (
	featUnix   = 1
	featRetval = 2
)

// Enforcer is the set of pinned maps and attached programs. Its methods may
// be called by several goroutines; several processes may have one each.
type Enforcer struct {
	parentPath string
	parentFD   int
	parentID   uint64
	pins       string
	features   uint32

	addresses sync.Mutex // held with the byte lock of withAddresses
	setting   sync.Mutex // held with the parent's lock: see locked

	mu  sync.Mutex     // guards what follows
	fds map[string]int // maps that were opened so far

	ruled map[uint64][]flat.RuleKey // rules that this process has put
	lease int                       // descriptor that holds byte locks, or -1
	taken map[uint32]bool           // slots of this process
}

// Open returns the enforcer of a parent cgroup. Where an earlier process left
// everything in place it only looks (a few dozen microseconds); otherwise it
// makes or mends what is missing, under a lock, and brings programs of another
// build up to date in place.
//
// It needs CAP_BPF and CAP_NET_ADMIN (and CAP_SYS_ADMIN to mount a bpf file
// system); the error says which step failed and is an [*Error].
func Open(o Options) (*Enforcer, error) {
	if o.Parent == "" {
		o.Parent = "thole"
	}
	if o.CgroupRoot == "" {
		return nil, &Error{Step: "open cgroup", Err: unix.EINVAL, Hint: "no cgroup v2 directory was given"}
	}
	var err error
	// The parent can vanish between two steps; a second look settles it.
	for range 3 {
		e := &Enforcer{parentPath: o.CgroupRoot + "/" + o.Parent, parentFD: -1, lease: -1, fds: map[string]int{}}
		if err = e.open(&o); err == nil {
			return e, nil
		}
		gone := e.parentFD >= 0 && !e.samePath()
		e.Close()
		if !gone {
			break
		}
	}
	return nil, err
}

func (e *Enforcer) open(o *Options) error {
	if err := e.openParent(); err != nil {
		return err
	}
	places := []string{o.BPFFS}
	if o.BPFFS == "" {
		places = []string{"/sys/fs/bpf", "/run/thole/bpf"}
	}
	for _, fs := range places {
		e.pins = fs + "/" + o.Parent + "/abi" + itoa(int(flat.Abi))
		if e.adopt() {
			return nil
		}
	}
	return e.locked(func() error {
		fs, err := bpfFS(places)
		if err != nil {
			return err
		}
		e.pins = fs + "/" + o.Parent + "/abi" + itoa(int(flat.Abi))
		// What was pinned before the lock was free may have been replaced.
		e.forget("meta")
		if e.adopt() {
			return nil
		}
		return e.setup(fs + "/" + o.Parent)
	})
}

// locked calls f while nobody else changes the pins or makes a sandbox: who
// makes one holds the same lock, shared, until the sandbox has an owner.
func (e *Enforcer) locked(f func() error) error {
	// The kernel's lock belongs to the descriptor, which goroutines share.
	e.setting.Lock()
	defer e.setting.Unlock()
	for {
		err := unix.Flock(e.parentFD, unix.LOCK_EX)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return &Error{Step: "lock", Object: e.parentPath, Err: err}
		}
	}
	defer unix.Flock(e.parentFD, unix.LOCK_UN)
	return f()
}

func (e *Enforcer) openParent() error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open(e.parentPath, flags, 0)
	if err == unix.ENOENT {
		if err := unix.Mkdir(e.parentPath, 0o755); err != nil && err != unix.EEXIST {
			return &Error{Step: "make cgroup", Object: e.parentPath, Err: err, Hint: hint(err)}
		}
		fd, err = unix.Open(e.parentPath, flags, 0)
	}
	if err != nil {
		return &Error{Step: "open cgroup", Object: e.parentPath, Err: err, Hint: hint(err)}
	}
	e.parentFD = fd
	id, err := CgroupID(fd)
	if err != nil {
		return &Error{Step: "identify cgroup", Object: e.parentPath, Err: err}
	}
	e.parentID = id
	return nil
}

// samePath reports whether the parent's path still leads to the cgroup that
// was opened.
func (e *Enforcer) samePath() bool {
	var st unix.Stat_t
	return unix.Stat(e.parentPath, &st) == nil && st.Ino == e.parentID
}

// adopt takes what is pinned for this enforcer's, where it is intact.
func (e *Enforcer) adopt() bool {
	features, ok := e.intact()
	if ok {
		e.features = features
	}
	return ok
}

// intact reports whether what is pinned is complete, of this build and really
// attached, and what of the programs it has. It changes nothing.
func (e *Enforcer) intact() (features uint32, ok bool) {
	fd, err := e.fd("meta")
	if err != nil {
		return 0, false
	}
	var m flat.Meta
	var zero uint32
	if err := mapLookup(fd, &zero, &m); err != nil || m.Complete == 0 ||
		string(m.Digest[:]) != flat.Digest || m.Table != tableHash() || m.Parent != e.parentID {
		return 0, false
	}
	for hook, prog := range m.Progs {
		if prog != 0 && !e.attached(attachType(hook), prog) {
			return 0, false
		}
	}
	return m.Features, true
}

func (e *Enforcer) attached(attach uint32, prog uint32) bool {
	return attachedTo(e.parentFD, attach, prog)
}

// fd returns the descriptor of a pinned map, opened when first needed.
func (e *Enforcer) fd(name string) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fd, ok := e.fds[name]; ok {
		return fd, nil
	}
	fd, err := objGet(e.pins + "/" + name)
	if err != nil {
		return -1, &Error{Step: "open pinned map", Object: e.pins + "/" + name, Err: err, Hint: hint(err)}
	}
	// The kernel reads and writes by the map's sizes, not by our types'.
	key, value := layout(name)
	var info mapInfo
	if err := objInfo(fd, &info); err != nil || info.Key != key || info.Value != value {
		unix.Close(fd)
		if err == nil {
			err = errLayout
		}
		return -1, &Error{Step: "use pinned map", Object: e.pins + "/" + name, Err: err, Hint: "another version made it anew: start again"}
	}
	e.fds[name] = fd
	return fd, nil
}

func (e *Enforcer) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fd, ok := e.fds[name]; ok {
		unix.Close(fd)
		delete(e.fds, name)
	}
}

// Features returns what this kernel enforces.
func (e *Enforcer) Features() Features {
	return Features{Unix: e.features&featUnix != 0, Retval: e.features&featRetval != 0}
}

// ParentPath returns the directory in which sandboxes are made.
func (e *Enforcer) ParentPath() string { return e.parentPath }

// ParentFD returns a descriptor of that directory, owned by the enforcer.
func (e *Enforcer) ParentFD() int { return e.parentFD }

// Pins returns the directory of the pinned maps, for other objects that use
// them.
func (e *Enforcer) Pins() string { return e.pins }

// Close releases the descriptors and the ring slots of this process. What is
// pinned stays and enforces.
func (e *Enforcer) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, fd := range e.fds {
		unix.Close(fd)
	}
	clear(e.fds)
	for _, fd := range []*int{&e.parentFD, &e.lease} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
	return nil
}

// CgroupID returns the id that the kernel's programs know a cgroup directory
// by. On kernels with 64-bit inode numbers it is the inode number (kernfs
// makes both from one value), which costs less than name_to_handle_at.
func CgroupID(fd int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}
