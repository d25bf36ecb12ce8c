// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Options choose what a job's filter refuses beyond what every filter refuses.
// The zero value but for Arch is the strictest about sockets.
type Options struct {
	Arch Arch

	// Unix permits socket(AF_UNIX), and a datagram socketpair, whose ends can
	// be sent to any other path. Something else must then decide which paths
	// may be reached.
	Unix bool

	// Inet permits sockets of AF_INET and AF_INET6 of any type and protocol:
	// the cgroup program that sees them made decides, and reports.
	Inet bool

	// StrictTypes narrows Inet to TCP, without Fast Open in a send call, and UDP:
	// for a host without that program.
	StrictTypes bool

	// InetStreamOnly narrows Inet to TCP, without Fast Open in a send call: what
	// Landlock's rules on TCP ports can hold with no program beside them. It wins
	// over StrictTypes.
	InetStreamOnly bool

	// NoSysV refuses System V IPC and POSIX message queues, for a job that
	// shares the host's IPC namespace.
	NoSysV bool

	// NoSetID refuses modes with the set-user-id or set-group-id bit, for a job
	// whose files belong to another owner on disk (an id-mapped root), or to
	// root itself: a file that it leaves there with that bit would run as the
	// owner for anyone.
	// openat2 then answers ENOSYS, since its mode lies in memory.
	NoSetID bool

	// NoLink refuses new names for files that exist, for a job that has an
	// outbox: Landlock sees a link within one directory as the making of a file.
	// Programs that link fall back, since many file systems answer EPERM too.
	NoLink bool

	// NoExecMemfd refuses memfd_create without MFD_NOEXEC_SEAL, for a job that
	// must not run what it wrote: Landlock does not look at memory files. The
	// kernel knows the flag since 6.3; many programs do not set it.
	NoExecMemfd bool

	// Log asks for a log record of each refused call (SECCOMP_FILTER_FLAG_LOG).
	Log bool
}

// Masks of arguments.
const (
	low32    = 0xffffffff // an int or unsigned int
	sockType = 0xf        // SOCK_TYPE_MASK: the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	fileType = 0xf000     // S_IFMT
	setID    = 0o6000     // S_ISUID, S_ISGID
)

// cloneRefused are the flags of clone(2) that a job may not use: CLONE_NEWTIME,
// NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, and CLONE_PARENT.
const cloneRefused = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 |
	0x10000000 | 0x20000000 | 0x40000000 | 0x8000

// Rules returns the filter of a job. An Arch that is none of the constants
// gives a program that Compile refuses.
func Rules(o Options) Program { return build(o).p }

func build(o Options) *builder {
	b := &builder{p: Program{
		Arch:    o.Arch,
		Foreign: Errno(EPERM),
		Unknown: Errno(ENOSYS),
		Default: Allow,
		Log:     o.Log,
		Rules:   make([]Rule, 0, 128),
	}}
	if o.Arch == AMD64 {
		b.p.X32 = Errno(EPERM)
	}
	kernelRules(b)
	processRules(b)
	terminalRules(b)
	socketRules(b, o)
	socketOptionRules(b)
	if o.NoSysV {
		b.refuse("IPC shared with the host",
			"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop",
			"msgget", "msgsnd", "msgrcv", "msgctl",
			"mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr")
	}
	fileRules(b, o)
	return b
}

// kernelRules refuse what changes the machine, or what only a program that
// administers it needs.
func kernelRules(b *builder) {
	b.refuse("mounts and the root directory",
		"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr",
		"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr")
	b.refuse("disk quotas", "quotactl", "quotactl_fd")
	b.refuse("programs in the kernel", "bpf")
	b.refuse("performance events and tracing", "perf_event_open")
	b.refuse("watching the files of others", "fanotify_init", "fanotify_mark", "lookup_dcookie")
	b.refuse("opening files past every path check", "open_by_handle_at")
	b.refuse("page faults held in user space", "userfaultfd")
	b.refuse("key rings reach beyond a sandbox", "add_key", "request_key", "keyctl")
	b.refuse("kernel modules",
		"init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module")
	b.refuse("another kernel, or a restart", "kexec_load", "kexec_file_load", "reboot")
	b.refuse("swap and process accounting", "swapon", "swapoff", "acct")
	b.refuse("the kernel's log", "syslog")
	b.refuse("the clock", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex")
	b.refuse("the host's names", "sethostname", "setdomainname")
	b.refuse("ports and segments of the processor", "iopl", "ioperm", "modify_ldt")
	b.refuse("calls with no use today", "nfsservctl", "uselib", "_sysctl")
	b.refuse("attributes of security modules", "lsm_set_self_attr")
	// Programs that use io_uring fall back on ENOSYS. A ring could only come
	// from outside, so the other two calls have no honest use.
	b.answer(ENOSYS, "does socket and file work that no filter sees", "io_uring_setup")
	b.refuse("rings of others", "io_uring_enter", "io_uring_register")
}

// processRules refuse new namespaces and reaching into other processes.
func processRules(b *builder) {
	b.refuse("namespaces", "unshare", "setns", "listns")
	// The kernel reads the low half of clone's flags (lower_32_bits in fork.c).
	b.refuseIf("namespaces; CLONE_PARENT would hand the launcher a child it never reaps",
		"clone", anyBit(0, cloneRefused))
	b.answer(ENOSYS, "its flags lie in memory; a C library falls back to clone", "clone3")
	b.refuse("other processes",
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd")
	b.refuseIf("pages of other processes; 0 is the caller", "move_pages", notIn(0, low32, 0))
	b.refuseIf("pages of other processes; 0 is the caller", "migrate_pages", notIn(0, low32, 0))
	b.refuseIf("limits of other processes; 0 is the caller", "prlimit64", notIn(0, low32, 0))
	b.refuse("hanging up the terminal", "vhangup")
	// PER_LINUX and PER_LINUX32, with ADDR_NO_RANDOMIZE and UNAME26 at will, and
	// the query. The others bring back executable data or a page at zero.
	b.refuseIf("personalities that weaken memory protection", "personality",
		notIn(0, low32&^0x60000, 0, 8), notIn(0, low32, 0xffffffff))
	// SECCOMP_FILTER_FLAG_NEW_LISTENER.
	b.refuseIf("a filter that holds calls for a supervisor", "seccomp", anyBit(1, 1<<3))
}

// terminalRules refuse the ioctls with which a job could type into the
// terminal that started it. The kernel reads the request as an unsigned int.
func terminalRules(b *builder) {
	// TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD.
	b.refuseIf("typing into the terminal, taking the console, line disciplines", "ioctl",
		in(1, low32, 0x5412, 0x541c, 0x541d, 0x5423))
	// KD* (linux/kd.h) and VT_* (linux/vt.h) are plain numbers of these pages.
	b.refuseIf("keyboard, fonts and switching of the console", "ioctl",
		in(1, low32&^0xff, 0x4b00, 0x5600))
}

// fileRules refuse device files, and modes and memory files by option.
func fileRules(b *builder, o Options) {
	b.refuseIf("device files", "mknod", in(1, fileType, 0x2000, 0x6000))
	b.refuseIf("device files", "mknodat", in(2, fileType, 0x2000, 0x6000))
	if o.NoSetID {
		const reason = "set-user-id and set-group-id files of another owner"
		for _, m := range [...]struct {
			call string
			arg  uint8
		}{
			{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2},
			{"mknod", 1}, {"mknodat", 2}, {"mkdir", 1}, {"mkdirat", 2}, {"creat", 1},
		} {
			b.refuseIf(reason, m.call, anyBit(m.arg, setID))
		}
		// Without O_CREAT (0o100) and O_TMPFILE (its own bit 0o20000000) the
		// mode is not read, and may be whatever the register held.
		b.refuseIf(reason, "open", anyBit(1, 0o20000100), anyBit(2, setID))
		b.refuseIf(reason, "openat", anyBit(2, 0o20000100), anyBit(3, setID))
		b.answer(ENOSYS, "its mode lies in memory; programs fall back to openat", "openat2")
	}
	if o.NoLink {
		b.refuse("second names of files in an outbox", "link", "linkat")
	}
	if o.NoExecMemfd {
		b.refuseIf("memory files that can be executed", "memfd_create", noBit(1, 1<<3))
	}
}
