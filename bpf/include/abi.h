// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/*
 * What user space and the programs agree on: layouts, verdicts, reasons and
 * the rules by which an act is judged. Go's types are generated from here.
 *
 * WHOSE POLICY
 *
 * The programs are attached once, to the common parent P of all sandboxes.
 * A sandbox is a child cgroup of P, and the id of that child (which every
 * process below it shares, however deep it makes its own cgroups) is the key
 * of every map. The kernel runs the programs for a socket's cgroup; the key
 * comes from the caller:
 *
 *   caller not below P          allowed, nothing recorded (a process of the
 *                               host that uses a socket made in a sandbox)
 *   caller in P or below it,
 *   no policy entry             denied, THOLE_RULE_NO_POLICY (fail closed)
 *   policy entry of another ABI denied, THOLE_RULE_NO_POLICY
 *
 * With knobs.parent == 0 the same programs serve cgroups that others made
 * and to which they are attached one by one: the key is then the deepest
 * ancestor of the caller that has a policy, and a caller without one passes.
 *
 * ADDRESSES
 *
 * Every address is 16 bytes; IPv4 is written as ::ffff:a.b.c.d, so that the
 * two spellings of one destination cannot be judged differently. 0.0.0.0 is
 * judged as 127.0.0.1. An address that carries an IPv4 address (NAT64, 6to4)
 * is judged by what it carries as well, once. `::` reaches ::1, or 127.0.0.1
 * from a socket bound to a mapped address: it is judged as ::1 that carries
 * 127.0.0.1.
 *
 * ORDER
 *
 *  1. Operator's rules, where the policy has some. The longest prefix that
 *     holds a rule for this protocol and port decides; a denial wins a tie.
 *
 *       10.0.0.0/8 deny, 10.1.0.0/16:443/tcp allow
 *         10.1.2.3:443/tcp  allow   10.1.2.3:80/tcp  deny (falls through)
 *         10.9.9.9:443/tcp  deny    192.0.2.1:443    no rule: step 2
 *
 *     An allow rule opens a loopback or link-local address only if its own
 *     prefix lies inside that range, and an address of the host itself only
 *     if it names that one address. 0.0.0.0/0 does not open 127.0.0.1.
 *     An address carried inside another one can be denied by a rule that
 *     covers it, never opened by one.
 *
 *  2. The mode: none denies; allowlist allows TCP to 127.0.0.1:proxy_port;
 *     any allows TCP and UDP to public addresses that are not the host's own
 *     and to port 53 of the configured resolvers; rules answers by
 *     THOLE_DEFAULT_ALLOW.
 *
 * THE HOST'S OWN ADDRESSES AND ITS RESOLVERS
 *
 * are those of the socket's network namespace, by its cookie. A namespace is
 * listed when the map of own addresses holds its mark, {cookie, ::}: written
 * after its addresses and deleted before them. In one that is not listed every
 * address may be the host's own: mode any refuses it
 * (THOLE_RULE_NOT_LISTED) unless it is a resolver, and an allow rule opens
 * only the one address that it names. So a list that is not there yet, or was
 * taken away too early, never opens anything.
 *
 * OTHER ACTS
 *
 *  socket   TCP and UDP only. A socket of the modes none and allowlist may
 *           be made, so that the refusal can name its destination. MPTCP
 *           answers EPROTONOSUPPORT: programs fall back to TCP. Mode rules
 *           with THOLE_DEFAULT_ALLOW refuses no socket.
 *  bind     A fixed port is a step towards listening: refused. Port 0 is how
 *           a client picks its source address: TCP may, UDP may in mode any
 *           (a bound UDP socket receives, which the other modes have no use
 *           for). Mode rules does not judge bind: it rules what goes out.
 *  unix     connect and sendmsg to exactly the policy's broker path; every
 *           other path, relative spelling and abstract name is refused. Mode
 *           rules does not judge unix sockets. The path is compared as the
 *           caller wrote it: the directory that holds the broker's socket
 *           must not be writable to the sandbox.
 */
#ifndef THOLE_ABI_H
#define THOLE_ABI_H

enum thole_limit {
	THOLE_ABI = 1, /* changes when a layout or a meaning does; names the pins' directory */
	THOLE_PATH_MAX = 108,	/* sizeof(sun_path) */
	THOLE_SEGS = 64,	/* segments of one prefix; a power of two */
	THOLE_RING_SLOTS = 256, /* rings that are read at one time */
	THOLE_LEVELS = 32,	/* deepest cgroup that is searched */
};

enum thole_mode {
	THOLE_MODE_NONE = 0,
	THOLE_MODE_ALLOWLIST = 1,
	THOLE_MODE_ANY = 2,
	THOLE_MODE_RULES = 3,
};

enum thole_policy_flag {
	THOLE_AUDIT = 1,	 /* report as would_deny and let it pass */
	THOLE_HAS_RULES = 2,	 /* the rules map holds this generation */
	THOLE_DEFAULT_ALLOW = 4, /* mode rules: what no rule decides passes */
};

enum thole_verdict {
	THOLE_NO_VERDICT = 0,
	THOLE_ALLOW = 1,
	THOLE_DENY = 2,
	THOLE_WOULD_DENY = 3, /* events only */
};

/* Class numbers are those of common/addr; these three are named because the
 * programs or the readers of events tell them apart. */
enum thole_class {
	THOLE_CLASS_PUBLIC = 0,
	THOLE_CLASS_LOOPBACK = 5,
	THOLE_CLASS_LINK_LOCAL = 6,
	THOLE_CLASS_OWN = 255, /* events: an address of this host */
};

enum thole_hook {
	THOLE_HOOK_CONNECT4 = 1,
	THOLE_HOOK_CONNECT6 = 2,
	THOLE_HOOK_SENDMSG4 = 3,
	THOLE_HOOK_SENDMSG6 = 4,
	THOLE_HOOK_BIND4 = 5,
	THOLE_HOOK_BIND6 = 6,
	THOLE_HOOK_SOCK_CREATE = 7,
	THOLE_HOOK_CONNECT_UNIX = 8,
	THOLE_HOOK_SENDMSG_UNIX = 9,
	THOLE_HOOK_LSM_CONNECT = 10,
	THOLE_HOOK_LSM_SENDMSG = 11,
	THOLE_HOOK_LSM_LISTEN = 12,
	THOLE_HOOK_LSM_UNIX_STREAM = 13,
	THOLE_HOOK_LSM_UNIX_DGRAM = 14,
	THOLE_HOOK_LSM_KILL = 15,
	THOLE_HOOK_LSM_PTRACE = 16,
	THOLE_HOOK_LSM_RECEIVE = 17,
	THOLE_HOOK_LSM_USERNS = 18,
};

/* The rule that decided: ours below THOLE_RULE_OPERATOR, the operator's rule
 * with index i is THOLE_RULE_OPERATOR + i. */
enum thole_rule {
	THOLE_RULE_NO_POLICY = 1,    /* no policy for this cgroup */
	THOLE_RULE_NET_NONE = 2,     /* the policy grants no network */
	THOLE_RULE_NOT_PROXY = 3,    /* only the local proxy may be reached */
	THOLE_RULE_LOOPBACK = 4,     /* loopback is never reachable */
	THOLE_RULE_LINK_LOCAL = 5,   /* link-local is never reachable */
	THOLE_RULE_OWN_ADDRESS = 6,  /* the host's own address */
	THOLE_RULE_NOT_PUBLIC = 7,   /* see the class */
	THOLE_RULE_SOCKET_TYPE = 8,  /* neither TCP nor UDP */
	THOLE_RULE_MPTCP = 9,	     /* refused so that programs use TCP */
	THOLE_RULE_BIND = 10,	     /* a fixed port */
	THOLE_RULE_BIND_UDP = 11,    /* a UDP socket that would receive */
	THOLE_RULE_UNIX = 12,	     /* not the broker's socket */
	THOLE_RULE_DEFAULT = 13,     /* no rule allows it, default deny */
	THOLE_RULE_FOREIGN_SOCKET = 14, /* a socket made outside the sandbox */
	THOLE_RULE_LISTEN = 15,
	THOLE_RULE_SIGNAL = 16,
	THOLE_RULE_PTRACE = 17,
	THOLE_RULE_RECEIVE = 18,     /* a socket passed in from outside */
	THOLE_RULE_USERNS = 19,
	THOLE_RULE_NOT_LISTED = 20,  /* the own addresses are not known */
	THOLE_RULE_OPERATOR = 1000,
};

/* One sandbox. Replaced whole, so that a program never sees half of one. */
struct thole_policy {
	__u32 abi;
	__u32 generation; /* of its rules; part of their key */
	__u64 netns;	  /* keeps this namespace's addresses listed; 0: none.
			   * For user space: acts are judged by the socket's. */
	__u8 mode;	  /* enum thole_mode */
	__u8 flags;	  /* enum thole_policy_flag */
	__u16 proxy_port; /* host order */
	__u16 broker_len; /* bytes of broker, without NUL; 0: none */
	__u16 pad;
	char broker[112]; /* NUL-padded */
};

/* Key of the rules trie. The first 96 bits after prefixlen are always whole:
 * one trie holds every sandbox's rules, because a map of maps would wait for
 * an RCU grace period on each change. */
struct thole_rule_key {
	__u32 prefixlen; /* 96 + bits of the 16-byte address */
	__u32 generation;
	__u64 cgroup;
	__u8 addr[16];
};

enum thole_seg_flag {
	THOLE_NAMES_LOCAL = 1, /* prefix inside loopback or link-local */
	THOLE_NAMES_ONE = 2,   /* prefix is one address */
};

/* What holds from port lo up to the next segment's lo. */
struct thole_seg {
	__u16 lo;      /* host order */
	__u8 verdict;  /* enum thole_verdict, THOLE_NO_VERDICT: no rule */
	__u8 flags;    /* enum thole_seg_flag */
	__u32 rule;
};

/* Every rule that covers one prefix, shorter prefixes folded in. The two
 * lists start at port 0 and are sorted; they may be the same list. */
struct thole_node {
	__u8 tcp_off, tcp_n;
	__u8 udp_off, udp_n;
	__u32 pad;
	struct thole_seg other; /* protocols without ports */
	struct thole_seg segs[THOLE_SEGS];
};

/* Key of the trie of special-purpose addresses. */
struct thole_addr_key {
	__u32 prefixlen;
	__u8 addr[16];
};

struct thole_addr {
	__u8 addr[16];
} __attribute__((aligned(8)));

/* Key of the own addresses and of the resolvers. */
struct thole_ns_addr {
	__u64 netns; /* cookie (SO_NETNS_COOKIE); never given twice in one boot */
	__u8 addr[16]; /* in the own addresses, :: is the namespace's mark */
};

struct thole_special {
	__u8 class;  /* as common/addr numbers them */
	__s8 embeds; /* offset of the IPv4 address carried inside, or -1 */
	__u16 pad;
};

/* Per CPU. denied + would_deny is exact; lost of them have no event. */
struct thole_stats {
	__u64 denied;
	__u64 would_deny;
	__u64 lost;
};

/* What changes from load to load; frozen, so the verifier knows it. */
struct thole_knobs {
	__u64 parent;	    /* cgroup id of P; 0: see WHOSE POLICY */
	__s32 level;	    /* depth of P; < 0: unknown, search for it */
	__u32 set_retval;   /* the kernel has bpf_set_retval here */
	__u32 off_uaddr;    /* bpf_sock_addr_kern.uaddr */
	__u32 off_uaddrlen; /* bpf_sock_addr_kern.uaddrlen */
};

/* State of the pins. complete is 0 while they are being changed. */
struct thole_meta {
	__u8 digest[32]; /* of the loaded image */
	__u64 parent;	 /* cgroup id that the links are attached to */
	__u64 table;	 /* hash of the special-purpose addresses */
	__u32 complete;
	__u32 features;
	__u32 progs[16]; /* program ids by hook, 0: none */
};

/* One record of a ring. Records of unix hooks carry path as well. */
struct thole_event {
	__u16 abi;
	__u8 hook;    /* enum thole_hook */
	__u8 verdict; /* THOLE_DENY or THOLE_WOULD_DENY */
	__u8 family;  /* AF_* */
	__u8 type;    /* SOCK_* */
	__u16 proto;  /* IPPROTO_* */
	__u16 port;   /* host order */
	__u16 err;    /* errno, positive */
	__u32 rule;   /* enum thole_rule */
	__u64 time;   /* ns since boot, suspend included */
	__u64 cgroup; /* the sandbox's cgroup id */
	__u32 pid, tid, uid; /* of the initial namespaces */
	__u8 class;   /* enum thole_class */
	__u8 pad;
	__u16 path_len; /* a leading NUL is an abstract name */
	__u8 addr[16];
	char comm[16];
};

struct thole_event_unix {
	struct thole_event e;
	char path[112];
};

/* What the verifying program is asked, and what it answers about one task. */
struct thole_task {
	__u32 pid;	    /* in: a thread id of the initial pid namespace */
	__s32 landlock_off; /* in: where Landlock's part of the credentials' blob starts; < 0: unknown */
	__u32 found;	    /* out: 1; the rest is then valid */
	__u32 pad;
	__u64 cgroup;
	__u64 cap_inheritable, cap_permitted, cap_effective, cap_bset, cap_ambient;
	__u32 uid, euid, suid, fsuid;
	__u32 seccomp_mode; /* 0 none, 1 strict, 2 filter */
	__u32 seccomp_filters;
	__u32 no_new_privs;
	__u32 landlock_layers;
	__u64 landlock_id; /* 0: no domain, or a kernel that numbers none */
	__u64 landlock_denials;
	__u32 landlock_rules;
	__u32 landlock_known; /* 0: nothing is known of Landlock */
	__u64 blob[8];	      /* the blob's first words, to find landlock_off by */
};

#endif
