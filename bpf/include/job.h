// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* Maps that all objects share by their pins, and how a caller's policy is
 * found and a refusal is counted and reported. */
#ifndef THOLE_JOB_H
#define THOLE_JOB_H

#include "uapi.h"

#include <bpf/bpf_helpers.h>

#include "abi.h"

const volatile struct thole_knobs knobs = {.level = -1};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct thole_policy);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct thole_stats);
} stats SEC(".maps");

/* Which ring a sandbox reports to. Slots exist because changing a map of maps
 * waits for a grace period, and changing a hash does not. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} slots SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, THOLE_RING_SLOTS);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* What is known about one act. addr is 16 bytes as in abi.h. */
struct act {
	__u64 cgroup;
	union {
		__u8 addr[16];
		__u32 addr32[4];
		__u64 addr64[2];
	};
	__u16 port;
	__u16 proto;
	__u8 hook, family, type, class;
	__u32 rule;
	__u16 err;
	__u16 path_len;
};

enum found { FOREIGN, NO_POLICY, POLICY };

/* Finds the sandbox of the calling task. */
static __always_inline enum found find(struct act *a, struct thole_policy **out)
{
	struct thole_policy *p = 0;
	__u64 id = 0, up;

	if (!knobs.parent) {
		for (int i = 0; i < THOLE_LEVELS; i++) {
			up = bpf_get_current_ancestor_cgroup_id(i);
			if (!up)
				break;
			struct thole_policy *q = bpf_map_lookup_elem(&policies, &up);
			if (q) {
				p = q;
				id = up;
			}
		}
		if (!p)
			return FOREIGN;
	} else if (knobs.level >= 0) {
		if (bpf_get_current_ancestor_cgroup_id(knobs.level) != knobs.parent)
			return FOREIGN;
		id = bpf_get_current_ancestor_cgroup_id(knobs.level + 1);
	} else {
		bool below = 0;

		for (int i = 0; i < THOLE_LEVELS; i++) {
			up = bpf_get_current_ancestor_cgroup_id(i);
			if (below) {
				id = up;
				break;
			}
			if (!up)
				return FOREIGN;
			below = up == knobs.parent;
		}
		if (!below)
			return FOREIGN;
	}
	/* A task in P itself: nothing of ours runs there. */
	if (!id)
		id = knobs.parent;
	a->cgroup = id;
	if (!p)
		p = bpf_map_lookup_elem(&policies, &id);
	if (!p || p->abi != THOLE_ABI)
		return NO_POLICY;
	*out = p;
	return POLICY;
}

static __always_inline struct thole_stats *counters(__u64 *id)
{
	struct thole_stats *s = bpf_map_lookup_elem(&stats, id);
	struct thole_stats zero = {};

	if (s)
		return s;
	bpf_map_update_elem(&stats, id, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&stats, id);
}

static __always_inline void fill(struct thole_event *e, const struct act *a, __u8 verdict)
{
	__u64 id = bpf_get_current_pid_tgid();

	e->abi = THOLE_ABI;
	e->hook = a->hook;
	e->verdict = verdict;
	e->family = a->family;
	e->type = a->type;
	e->proto = a->proto;
	e->port = a->port;
	e->err = a->err;
	e->rule = a->rule;
	e->time = bpf_ktime_get_boot_ns();
	e->cgroup = a->cgroup;
	e->pid = id >> 32;
	e->tid = (__u32)id;
	e->uid = (__u32)bpf_get_current_uid_gid();
	e->class = a->class;
	e->pad = 0;
	e->path_len = a->path_len;
	__builtin_memcpy(e->addr, a->addr, 16);
	bpf_get_current_comm(e->comm, sizeof(e->comm));
}

/* Counts and reports what the policy refuses; returns whether the act passes
 * all the same. path is 112 bytes or null. */
static __always_inline bool refuse(struct act *a, const struct thole_policy *p, const char *path)
{
	__u8 verdict = p && p->flags & THOLE_AUDIT ? THOLE_WOULD_DENY : THOLE_DENY;
	struct thole_stats *s = counters(&a->cgroup);
	bool sent = 0;
	__u32 *slot;
	void *ring;

	if (!a->err)
		a->err = EPERM;
	if (s) {
		if (verdict == THOLE_DENY)
			s->denied++;
		else
			s->would_deny++;
	}
	slot = bpf_map_lookup_elem(&slots, &a->cgroup);
	ring = slot ? bpf_map_lookup_elem(&rings, slot) : 0;
	if (ring && path) {
		struct thole_event_unix *u = bpf_ringbuf_reserve(ring, sizeof(*u), 0);

		if (u) {
			fill(&u->e, a, verdict);
			__builtin_memcpy(u->path, path, sizeof(u->path));
			bpf_ringbuf_submit(u, 0);
			sent = 1;
		}
	} else if (ring) {
		struct thole_event *e = bpf_ringbuf_reserve(ring, sizeof(*e), 0);

		if (e) {
			fill(e, a, verdict);
			bpf_ringbuf_submit(e, 0);
			sent = 1;
		}
	}
	if (!sent && s)
		s->lost++;
	return verdict == THOLE_WOULD_DENY;
}

#endif
