//go:build ignore

// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* The enforcement that every kernel has: what leaves a sandbox by a socket.
 * abi.h says how acts are judged. Nothing here reads a kernel structure but
 * the unix hooks, whose two offsets are knobs. */

#include "include/job.h"

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct thole_rule_key);
	__type(value, struct thole_node);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct thole_addr_key);
	__type(value, struct thole_special);
} special SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct thole_ns_addr);
	__type(value, __u32);
} own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct thole_ns_addr);
	__type(value, __u32);
} resolvers SEC(".maps");

/* What and whom the pins belong to; user space alone reads and writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thole_meta);
} meta SEC(".maps");

/* Names the types that no map holds, so that Go's are generated as well. */
const struct thole_event_unix *abi_event;
const enum thole_limit *abi_limit;
const enum thole_mode *abi_mode;
const enum thole_policy_flag *abi_policy_flag;
const enum thole_verdict *abi_verdict;
const enum thole_class *abi_class;
const enum thole_hook *abi_hook;
const enum thole_rule *abi_rule;
const enum thole_seg_flag *abi_seg_flag;

static __always_inline void map4(struct thole_addr *a, __u32 ip4)
{
	__u32 *w = (__u32 *)a;

	w[0] = 0;
	w[1] = 0;
	w[2] = 0xffff0000; /* 00 00 ff ff */
	w[3] = ip4 ? ip4 : 0x0100007f; /* 0.0.0.0 reaches 127.0.0.1 */
}

/* The segment that decides proto and port in node; never null. */
static __always_inline const struct thole_seg *segment(const struct thole_node *n, __u16 proto, __u16 port)
{
	__s64 off, n_segs, at = 0;

	if (proto == IPPROTO_TCP) {
		off = n->tcp_off;
		n_segs = n->tcp_n;
	} else if (proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE) {
		off = n->udp_off;
		n_segs = n->udp_n;
	} else {
		return &n->other;
	}
	/* Without branches: the verifier would follow each way of each step.
	 * `t >> 63` is all ones where t is negative. */
	for (__s64 step = THOLE_SEGS / 2; step; step /= 2) {
		__s64 next = at + step;
		__s64 in = (next - n_segs) >> 63;
		__s64 not_above = ((__s64)n->segs[(off + next) & (THOLE_SEGS - 1)].lo - port - 1) >> 63;

		at += step & in & not_above;
	}
	return &n->segs[(off + at) & (THOLE_SEGS - 1)];
}

static __always_inline const struct thole_seg *match(const struct thole_policy *p, const struct act *a,
						     const struct thole_addr *addr)
{
	struct thole_rule_key k = {.prefixlen = 96 + 128, .generation = p->generation, .cgroup = a->cgroup};
	const struct thole_node *n;

	__builtin_memcpy(k.addr, addr->addr, 16);
	n = bpf_map_lookup_elem(&rules, &k);
	return n ? segment(n, a->proto, a->port) : 0;
}

static __always_inline bool local(__u8 class)
{
	return class == THOLE_CLASS_LOOPBACK || class == THOLE_CLASS_LINK_LOCAL;
}

static __always_inline bool holds(void *map, __u64 netns, const struct thole_addr *addr)
{
	struct thole_ns_addr k = {.netns = netns};

	__builtin_memcpy(k.addr, addr->addr, 16);
	return bpf_map_lookup_elem(map, &k) != 0;
}

/* Judges an act towards one address by a socket of network namespace netns;
 * sets a->rule and a->class on denial. unspec: it was written `::`, and addr
 * is ::1. */
static __always_inline bool allowed(struct act *a, const struct thole_policy *p, __u64 netns, const struct thole_addr *addr,
				    bool unspec)
{
	bool carries = 0, listed = 0, is_own = 0, in_local = 0, in_own = 0;
	bool asks_own = p->mode == THOLE_MODE_ANY || p->flags & THOLE_HAS_RULES;
	struct thole_addr_key k = {.prefixlen = 128};
	const struct thole_addr mark = {};
	const struct thole_special *s;
	const struct thole_seg *g;
	struct thole_addr in = {};
	__u8 class = THOLE_CLASS_PUBLIC, verdict;

	__builtin_memcpy(k.addr, addr->addr, 16);
	s = bpf_map_lookup_elem(&special, &k);
	if (s) {
		__u32 at = (__u32)s->embeds;

		class = s->class;
		if (at <= 12) {
			__u32 ip4;
			__u8 *b = (__u8 *)&ip4;

			for (int i = 0; i < 4; i++)
				b[i] = k.addr[(at + i) & 15];
			map4(&in, ip4);
			carries = 1;
		}
	}
	if (unspec) {
		map4(&in, 0);
		carries = 1;
	}
	if (asks_own) {
		listed = holds(&own, netns, &mark);
		is_own = !listed || holds(&own, netns, addr);
	}
	if (carries) {
		__u8 inner = THOLE_CLASS_PUBLIC;

		__builtin_memcpy(k.addr, in.addr, 16);
		s = bpf_map_lookup_elem(&special, &k);
		if (s)
			inner = s->class;
		in_local = local(inner);
		in_own = asks_own && (!listed || holds(&own, netns, &in));
		if (class == THOLE_CLASS_PUBLIC)
			class = inner;
	}
	a->class = class;

	if (p->flags & THOLE_HAS_RULES) {
		g = match(p, a, addr);
		if (!g) {
			/* Every set of rules covers all addresses: it is being replaced. */
			a->rule = THOLE_RULE_NO_POLICY;
			return 0;
		}
		verdict = g->verdict;
		a->rule = g->rule;
		if (verdict == THOLE_ALLOW &&
		    (in_local || in_own || (local(class) && !(g->flags & THOLE_NAMES_LOCAL)) ||
		     (is_own && !(g->flags & THOLE_NAMES_ONE))))
			verdict = THOLE_NO_VERDICT;
		if (verdict != THOLE_DENY && carries) {
			g = match(p, a, &in);
			if (!g) {
				a->rule = THOLE_RULE_NO_POLICY;
				return 0;
			}
			if (g->verdict == THOLE_DENY) {
				verdict = THOLE_DENY;
				a->rule = g->rule;
			}
		}
		if (verdict == THOLE_ALLOW)
			return 1;
		if (verdict == THOLE_DENY)
			return 0;
	}

	switch (p->mode) {
	case THOLE_MODE_ALLOWLIST:
		if (a->proto == IPPROTO_TCP && a->port == p->proxy_port) {
			const __u64 *w = (const __u64 *)addr;

			if (!w[0] && w[1] == 0x0100007fffff0000) /* ::ffff:127.0.0.1 */
				return 1;
		}
		a->rule = THOLE_RULE_NOT_PROXY;
		return 0;
	case THOLE_MODE_ANY:
		if (a->proto != IPPROTO_TCP && a->proto != IPPROTO_UDP) {
			a->rule = THOLE_RULE_SOCKET_TYPE;
			return 0;
		}
		if (a->port == 53 && holds(&resolvers, netns, addr))
			return 1;
		if (!listed) {
			a->rule = THOLE_RULE_NOT_LISTED;
			return 0;
		}
		if (is_own || in_own) {
			a->rule = THOLE_RULE_OWN_ADDRESS;
			a->class = THOLE_CLASS_OWN;
			return 0;
		}
		if (class == THOLE_CLASS_PUBLIC)
			return 1;
		a->rule = class == THOLE_CLASS_LOOPBACK	    ? THOLE_RULE_LOOPBACK
			  : class == THOLE_CLASS_LINK_LOCAL ? THOLE_RULE_LINK_LOCAL
							    : THOLE_RULE_NOT_PUBLIC;
		return 0;
	case THOLE_MODE_RULES:
		a->rule = THOLE_RULE_DEFAULT;
		return !!(p->flags & THOLE_DEFAULT_ALLOW);
	}
	a->rule = THOLE_RULE_NET_NONE;
	return 0;
}

/* connect and sendmsg. */
static __always_inline int outgoing(struct bpf_sock_addr *ctx, struct act *a, bool unspec)
{
	struct thole_policy *p = 0;
	struct thole_addr addr;

	switch (find(a, &p)) {
	case FOREIGN:
		return 1;
	case NO_POLICY:
		a->rule = THOLE_RULE_NO_POLICY;
		return refuse(a, 0, 0);
	case POLICY:
		break;
	}
	__builtin_memcpy(addr.addr, a->addr, 16);
	return allowed(a, p, bpf_get_netns_cookie(ctx), &addr, unspec) ? 1 : refuse(a, p, 0);
}

static __always_inline int outgoing4(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct act a = {.hook = hook, .family = AF_INET};

	a.type = ctx->type;
	a.proto = ctx->protocol;
	a.port = __builtin_bswap16(ctx->user_port);
	map4((struct thole_addr *)a.addr, ctx->user_ip4);
	return outgoing(ctx, &a, 0);
}

static __always_inline int outgoing6(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct act a = {.hook = hook, .family = AF_INET6};
	bool unspec;

	a.type = ctx->type;
	a.proto = ctx->protocol;
	a.port = __builtin_bswap16(ctx->user_port);
	a.addr32[0] = ctx->user_ip6[0];
	a.addr32[1] = ctx->user_ip6[1];
	a.addr32[2] = ctx->user_ip6[2];
	a.addr32[3] = ctx->user_ip6[3];
	unspec = !(a.addr64[0] | a.addr64[1]);
	if (unspec)
		a.addr[15] = 1;
	else if (!a.addr64[0] && a.addr32[2] == 0xffff0000 && !a.addr32[3])
		a.addr32[3] = 0x0100007f;
	return outgoing(ctx, &a, unspec);
}

SEC("cgroup/connect4")
int thole_connect4(struct bpf_sock_addr *ctx)
{
	return outgoing4(ctx, THOLE_HOOK_CONNECT4);
}

SEC("cgroup/connect6")
int thole_connect6(struct bpf_sock_addr *ctx)
{
	return outgoing6(ctx, THOLE_HOOK_CONNECT6);
}

SEC("cgroup/sendmsg4")
int thole_sendmsg4(struct bpf_sock_addr *ctx)
{
	return outgoing4(ctx, THOLE_HOOK_SENDMSG4);
}

SEC("cgroup/sendmsg6")
int thole_sendmsg6(struct bpf_sock_addr *ctx)
{
	return outgoing6(ctx, THOLE_HOOK_SENDMSG6);
}

/* Whether this policy judges acts that are not towards an address. */
static __always_inline bool judged(struct act *a, struct thole_policy **p, int *ret)
{
	switch (find(a, p)) {
	case FOREIGN:
		*ret = 1;
		return 0;
	case NO_POLICY:
		a->rule = THOLE_RULE_NO_POLICY;
		*ret = refuse(a, 0, 0);
		return 0;
	case POLICY:
		break;
	}
	return 1;
}

static __always_inline int bound(struct act *a)
{
	struct thole_policy *p = 0;
	int ret;

	if (!judged(a, &p, &ret))
		return ret;
	if (p->mode == THOLE_MODE_RULES)
		return 1;
	if (a->port) {
		a->rule = THOLE_RULE_BIND;
		return refuse(a, p, 0);
	}
	if (a->proto == IPPROTO_TCP || p->mode == THOLE_MODE_ANY)
		return 1;
	a->rule = THOLE_RULE_BIND_UDP;
	return refuse(a, p, 0);
}

SEC("cgroup/bind4")
int thole_bind4(struct bpf_sock_addr *ctx)
{
	struct act a = {.hook = THOLE_HOOK_BIND4, .family = AF_INET};

	a.type = ctx->type;
	a.proto = ctx->protocol;
	a.port = __builtin_bswap16(ctx->user_port);
	a.addr32[2] = 0xffff0000;
	a.addr32[3] = ctx->user_ip4;
	return bound(&a);
}

SEC("cgroup/bind6")
int thole_bind6(struct bpf_sock_addr *ctx)
{
	struct act a = {.hook = THOLE_HOOK_BIND6, .family = AF_INET6};

	a.type = ctx->type;
	a.proto = ctx->protocol;
	a.port = __builtin_bswap16(ctx->user_port);
	a.addr32[0] = ctx->user_ip6[0];
	a.addr32[1] = ctx->user_ip6[1];
	a.addr32[2] = ctx->user_ip6[2];
	a.addr32[3] = ctx->user_ip6[3];
	return bound(&a);
}

SEC("cgroup/sock_create")
int thole_sock_create(struct bpf_sock *ctx)
{
	struct act a = {.hook = THOLE_HOOK_SOCK_CREATE};
	struct thole_policy *p = 0;
	int ret;

	a.family = ctx->family;
	a.type = ctx->type;
	a.proto = ctx->protocol;
	if ((a.type == SOCK_STREAM && (a.proto == IPPROTO_TCP || !a.proto)) ||
	    (a.type == SOCK_DGRAM && (a.proto == IPPROTO_UDP || !a.proto))) {
		/* Judged when it goes somewhere; only a missing policy ends here. */
		if (!judged(&a, &p, &ret))
			return ret;
		return 1;
	}
	if (!judged(&a, &p, &ret))
		return ret;
	if (p->mode == THOLE_MODE_RULES && p->flags & THOLE_DEFAULT_ALLOW)
		return 1;
	a.rule = THOLE_RULE_SOCKET_TYPE;
	if (a.proto == IPPROTO_MPTCP) {
		a.rule = THOLE_RULE_MPTCP;
		if (knobs.set_retval)
			a.err = EPROTONOSUPPORT;
	}
	ret = refuse(&a, p, 0);
	if (!ret && a.err == EPROTONOSUPPORT && knobs.set_retval)
		bpf_set_retval(-EPROTONOSUPPORT);
	return ret;
}

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

static __always_inline int unix_peer(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct act a = {.hook = hook, .family = AF_UNIX};
	struct thole_policy *p = 0;
	char path[112] = {};
	void *kern, *uaddr = 0;
	__u32 len = 0;

	a.type = ctx->type;
	switch (find(&a, &p)) {
	case FOREIGN:
		return 1;
	case NO_POLICY:
		break;
	case POLICY:
		if (p->mode == THOLE_MODE_RULES)
			return 1;
	}
	kern = bpf_cast_to_kern_ctx(ctx);
	bpf_probe_read_kernel(&uaddr, sizeof(uaddr), kern + knobs.off_uaddr);
	bpf_probe_read_kernel(&len, sizeof(len), kern + knobs.off_uaddrlen);
	len = len > 2 ? len - 2 : 0;
	if (len > THOLE_PATH_MAX)
		len = THOLE_PATH_MAX;
	bpf_probe_read_kernel(path, len, uaddr + 2);
	a.path_len = len;
	if (!p) {
		a.rule = THOLE_RULE_NO_POLICY;
		return refuse(&a, 0, path);
	}
	if (p->broker_len && path[0]) {
		for (int i = 0; i < THOLE_PATH_MAX; i++) {
			if (path[i] != p->broker[i])
				break;
			/* Both end here; what follows a NUL the kernel ignores. */
			if (!path[i])
				return 1;
		}
	}
	a.rule = THOLE_RULE_UNIX;
	return refuse(&a, p, path);
}

SEC("cgroup/connect_unix")
int thole_connect_unix(struct bpf_sock_addr *ctx)
{
	return unix_peer(ctx, THOLE_HOOK_CONNECT_UNIX);
}

SEC("cgroup/sendmsg_unix")
int thole_sendmsg_unix(struct bpf_sock_addr *ctx)
{
	return unix_peer(ctx, THOLE_HOOK_SENDMSG_UNIX);
}

char _license[] SEC("license") = "GPL";
