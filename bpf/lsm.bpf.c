//go:build ignore

// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* What only the LSM hooks can see: acts on sockets that were made outside the
 * sandbox, listening, peers of unix sockets, signals and tracing across its
 * border. Optional: it needs BPF LSM. These hooks run for every process of
 * the host, so each asks first whose the caller is. Mode rules is not judged. */

#include "include/kernel.h"
#include "include/job.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define S_IFMT 00170000
#define S_IFSOCK 0140000

/* Set where the cgroup hooks do not judge unix sockets (before 6.7). */
const volatile __u32 judge_unix = 0;

/* Whether the caller is in a sandbox that these hooks judge. */
static __always_inline bool confined(struct act *a, struct thole_policy **p)
{
	switch (find(a, p)) {
	case FOREIGN:
		return 0;
	case NO_POLICY:
		a->rule = THOLE_RULE_NO_POLICY;
		return 1;
	case POLICY:
		break;
	}
	return (*p)->mode != THOLE_MODE_RULES;
}

static __always_inline int answer(struct act *a, struct thole_policy *p, __u32 rule)
{
	if (p)
		a->rule = rule;
	return refuse(a, p, 0) ? 0 : -EPERM;
}

/* Whether a cgroup is the sandbox's or below it. */
static __always_inline bool inside(struct cgroup *c, __u64 id)
{
	for (int i = 0; i < THOLE_LEVELS && c; i++) {
		if (BPF_CORE_READ(c, kn, id) == id)
			return 1;
		/* A cgroup begins with its own state. */
		c = (struct cgroup *)BPF_CORE_READ(c, self.parent);
	}
	return 0;
}

/* Whether a socket is an inet one that was made outside the sandbox. */
static __always_inline bool foreign(struct act *a, struct sock *sk)
{
	__u16 family;

	if (!sk)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	a->family = family;
	a->type = BPF_CORE_READ(sk, sk_type);
	a->proto = BPF_CORE_READ(sk, sk_protocol);
	return !inside(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), a->cgroup);
}

SEC("lsm/socket_connect")
int BPF_PROG(thole_lsm_connect, struct socket *sock, void *address, int len, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_CONNECT};
	struct thole_policy *p = 0;

	if (ret || !confined(&a, &p) || !foreign(&a, BPF_CORE_READ(sock, sk)))
		return ret;
	return answer(&a, p, THOLE_RULE_FOREIGN_SOCKET);
}

SEC("lsm/socket_sendmsg")
int BPF_PROG(thole_lsm_sendmsg, struct socket *sock, void *msg, int size, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_SENDMSG};
	struct thole_policy *p = 0;

	if (ret || !confined(&a, &p) || !foreign(&a, BPF_CORE_READ(sock, sk)))
		return ret;
	return answer(&a, p, THOLE_RULE_FOREIGN_SOCKET);
}

SEC("lsm/socket_listen")
int BPF_PROG(thole_lsm_listen, struct socket *sock, int backlog, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_LISTEN};
	struct thole_policy *p = 0;

	if (ret || !confined(&a, &p))
		return ret;
	a.family = BPF_CORE_READ(sock, sk, __sk_common.skc_family);
	a.type = BPF_CORE_READ(sock, type);
	return answer(&a, p, THOLE_RULE_LISTEN);
}

/* Judges the name that a unix peer is bound to. A peer without a name was
 * made as one of a pair, or is a client: there is nothing to connect to. */
static __always_inline int peer(struct act *a, struct sock *other)
{
	struct thole_policy *p = 0;
	struct unix_address *addr;
	char path[112] = {};
	int len;

	a->family = AF_UNIX;
	if (!judge_unix || !confined(a, &p))
		return 0;
	addr = BPF_CORE_READ((struct unix_sock *)other, addr);
	if (!addr)
		return 0;
	len = BPF_CORE_READ(addr, len) - 2;
	if (len < 0)
		len = 0;
	if (len > THOLE_PATH_MAX)
		len = THOLE_PATH_MAX;
	bpf_probe_read_kernel(path, len, &addr->name[0].sun_path);
	a->path_len = len;
	if (p && p->broker_len && path[0]) {
		for (int i = 0; i < THOLE_PATH_MAX; i++) {
			if (path[i] != p->broker[i])
				break;
			if (!path[i])
				return 0;
		}
	}
	if (p)
		a->rule = THOLE_RULE_UNIX;
	return refuse(a, p, path) ? 0 : -EPERM;
}

SEC("lsm/unix_stream_connect")
int BPF_PROG(thole_lsm_unix_stream, struct sock *sock, struct sock *other, struct sock *newsk, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_UNIX_STREAM, .type = SOCK_STREAM};

	return ret ? ret : peer(&a, other);
}

SEC("lsm/unix_may_send")
int BPF_PROG(thole_lsm_unix_dgram, struct socket *sock, struct socket *other, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_UNIX_DGRAM, .type = SOCK_DGRAM};

	return ret ? ret : peer(&a, BPF_CORE_READ(other, sk));
}

static __always_inline int across(struct act *a, struct task_struct *to, __u32 rule)
{
	struct thole_policy *p = 0;

	if (!confined(a, &p) || inside(BPF_CORE_READ(to, cgroups, dfl_cgrp), a->cgroup))
		return 0;
	return answer(a, p, rule);
}

SEC("lsm/task_kill")
int BPF_PROG(thole_lsm_kill, struct task_struct *to, void *info, int sig, const struct cred *cred, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_KILL};

	/* cred cannot be tested: the verifier takes it for never null, and drops
	 * the test. */
	return ret ? ret : across(&a, to, THOLE_RULE_SIGNAL);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(thole_lsm_ptrace, struct task_struct *child, unsigned int mode, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_PTRACE};

	return ret ? ret : across(&a, child, THOLE_RULE_PTRACE);
}

SEC("lsm/file_receive")
int BPF_PROG(thole_lsm_receive, struct file *file, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_RECEIVE};
	struct thole_policy *p = 0;
	struct socket *sock;

	if (ret || !confined(&a, &p) || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return ret;
	sock = BPF_CORE_READ(file, private_data);
	if (!sock || !foreign(&a, BPF_CORE_READ(sock, sk)))
		return 0;
	return answer(&a, p, THOLE_RULE_RECEIVE);
}

SEC("lsm/userns_create")
int BPF_PROG(thole_lsm_userns, const struct cred *cred, int ret)
{
	struct act a = {.hook = THOLE_HOOK_LSM_USERNS};
	struct thole_policy *p = 0;

	if (ret || !confined(&a, &p))
		return ret;
	return answer(&a, p, THOLE_RULE_USERNS);
}

char _license[] SEC("license") = "GPL";
