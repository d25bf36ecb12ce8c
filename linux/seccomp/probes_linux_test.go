// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

// all is a value that no call takes for a good descriptor, pointer, size or
// command: a refused call that is let through by mistake does nothing.
const all = ^uint64(0)

func arguments(a ...uint64) [6]uint64 {
	r := [6]uint64{all, all, all, all, all, all}
	copy(r[:], a)
	return r
}

// refusal is a call that the kernel must be kept from seeing.
type refusal struct {
	call  string
	errno uint16
	args  [6]uint64
	opt   Options
}

// plain are the calls that are refused whatever their arguments.
var plain = []string{
	"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen",
	"fsconfig", "fsmount", "fspick", "mount_setattr", "quotactl", "quotactl_fd", "bpf", "perf_event_open",
	"fanotify_init", "fanotify_mark", "lookup_dcookie", "open_by_handle_at", "userfaultfd", "add_key",
	"request_key", "keyctl", "init_module", "finit_module", "delete_module", "create_module",
	"get_kernel_syms", "query_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"acct", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname",
	"setdomainname", "iopl", "ioperm", "modify_ldt", "nfsservctl", "uselib", "_sysctl",
	"lsm_set_self_attr", "io_uring_enter", "io_uring_register", "unshare", "setns", "listns", "ptrace",
	"process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd", "vhangup", "listen",
}

// sysV are those that NoSysV adds.
var sysV = []string{
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd",
	"msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
}

// refusals lists every refused call once, and its conditional ones by each
// value of the condition, written from the contract and not from the rules.
func refusals() []refusal {
	var r []refusal
	add := func(call string, errno uint16, opt Options, args ...uint64) {
		r = append(r, refusal{call, errno, arguments(args...), opt})
	}
	none := Options{}
	for _, name := range plain {
		add(name, EPERM, none)
	}
	for _, name := range sysV {
		add(name, EPERM, Options{NoSysV: true})
	}
	add("io_uring_setup", ENOSYS, none)
	add("clone3", ENOSYS, none)
	// CLONE_SIGHAND without CLONE_VM is a mistake that the kernel would refuse.
	const harmless = 0x800
	for _, flag := range []uint64{
		0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x8000,
	} {
		add("clone", EPERM, none, flag|harmless, 0, 0, 0, 0)
		add("clone", EPERM, none, flag|harmless|0xabcd<<32, 0, 0, 0, 0)
	}
	add("move_pages", EPERM, none, 1)
	add("prlimit64", EPERM, none, 1)
	add("migrate_pages", EPERM, none, 1)
	for _, persona := range []uint64{0x400000, 0x100000, 0x200000, 0x800000, 0x4000000, 0x8000000, 4, 0x400008} {
		add("personality", EPERM, none, persona)
		add("personality", EPERM, none, persona|1<<40)
	}
	add("seccomp", EPERM, none, 1, 8, 0)
	add("seccomp", EPERM, none, 1, 0xff00000008|1, 0)
	for _, cmd := range []uint64{0x5412, 0x541c, 0x541d, 0x5423, 0x4b3a, 0x4b49, 0x5606} {
		add("ioctl", EPERM, none, all, cmd)
		add("ioctl", EPERM, none, all, cmd|0xdead0000_00000000)
	}
	for family := range uint64(50) {
		if family != 2 && family != 10 {
			add("socket", EPERM, Options{Inet: true}, family, 3, 0)
		}
		if family != 1 {
			add("socket", EPERM, Options{Unix: true}, family, 1, 0)
			add("socketpair", EPERM, none, family, 1, 0, 0)
			add("socketpair", EPERM, Options{Unix: true}, family|1<<32, 1, 0, 0)
		}
	}
	add("socket", EPERM, none, 1, 1, 0)
	add("socket", EPERM, none, 2|1<<32, 1, 0)
	add("socket", EPERM, Options{Inet: true}, 2, 10, 0x300)
	add("socket", EPERM, Options{Inet: true}, 2, 10|0o2000000, 0x300)
	strict := Options{Inet: true, StrictTypes: true}
	stream := Options{Inet: true, InetStreamOnly: true}
	for _, f := range []uint64{2, 10} {
		for _, o := range []Options{strict, stream} {
			add("socket", EPERM, o, f, 3, 255) // raw
			add("socket", EPERM, o, f, 2, 1)   // ping
			add("socket", EPERM, o, f, 1, 132) // SCTP
			add("socket", EPERM, o, f, 6, 33)  // DCCP
			add("socket", EPERM, o, f, 2, 136) // UDP-Lite
			add("socket", EPERM, o, f, 1, 256) // SMC
			add("socket", EPERM, o, f, 10, 3)  // packet
			add("socket", EPERM, o, f, 5, 132) // SCTP
			add("socket", EPROTONOSUPPORT, o, f, 1, 262)
			add("socket", EPROTONOSUPPORT, o, f, 1|0o2004000, 262)
		}
		add("socket", EPERM, stream, f, 2, 0)
		add("socket", EPERM, stream, f, 2, 17)
	}
	for _, o := range []Options{strict, stream} {
		add("sendto", EOPNOTSUPP, o, all, 0, 0, 0x20000000)
		add("sendmsg", EOPNOTSUPP, o, all, 0, 0x20004000)
		add("sendmmsg", EOPNOTSUPP, o, all, 0, 0, 0x20000000)
	}
	add("socketpair", EPERM, none, 1, 2, 0)
	add("socketpair", EPERM, none, 1, 2|0o2000000, 0)
	add("socketpair", EPERM, none, 1, 3, 0)
	for _, o := range [][2]uint64{
		{0, 4}, {0, 35}, {0, 39}, {0, 42}, {0, 46}, {0, 64}, {0, 65}, {0, 96}, {0, 97}, {0, 128}, {0, 129},
		{41, 1}, {41, 6}, {41, 20}, {41, 27}, {41, 42}, {41, 46}, {41, 57}, {41, 64}, {41, 65},
		{6, 19}, {6, 31}, {17, 100},
	} {
		add("setsockopt", EPERM, none, all, o[0], o[1])
		add("setsockopt", EPERM, none, all, o[0]|1<<33, o[1]|1<<63)
	}
	for _, kind := range []uint64{0x2000, 0x6000} {
		add("mknod", EPERM, none, all, kind|0o644)
		add("mknodat", EPERM, none, all, all, kind|0o644)
	}
	id := Options{NoSetID: true}
	for _, bit := range []uint64{0o4000, 0o2000} {
		add("chmod", EPERM, id, all, bit|0o755)
		add("fchmod", EPERM, id, all, bit)
		add("fchmodat", EPERM, id, all, all, bit)
		add("fchmodat2", EPERM, id, all, all, bit)
		add("mknod", EPERM, id, all, bit|0x8000)
		add("mknodat", EPERM, id, all, all, bit|0x8000)
		add("mkdir", EPERM, id, all, bit)
		add("mkdirat", EPERM, id, all, all, bit)
		add("creat", EPERM, id, all, bit)
		add("open", EPERM, id, all, 0o100, bit)
		add("openat", EPERM, id, all, all, 0o100, bit)
		add("openat", EPERM, id, all, all, 0o20200002, bit) // O_TMPFILE
	}
	add("openat2", ENOSYS, id)
	add("link", EPERM, Options{NoLink: true})
	add("linkat", EPERM, Options{NoLink: true})
	add("memfd_create", EPERM, Options{NoExecMemfd: true}, all, 1)
	add("memfd_create", EPERM, Options{NoExecMemfd: true}, all, 0x10)
	return r
}
