//go:build ignore

// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* Reads what confines a task from the kernel itself. Optional: it needs
 * kernel 6.2 or so and its layouts. */

#include "include/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "include/abi.h"

#define LAYERS 16 /* LANDLOCK_MAX_NUM_LAYERS */

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

#define FIELD(dst, src) bpf_core_read(dst, sizeof(*(dst)), src)

static __always_inline void landlock(struct thole_task *t, const struct cred *cred)
{
	struct landlock_hierarchy *h = 0;
	struct landlock_cred_security *own;
	void *blob = 0, *domain = 0;

	if (!bpf_core_type_exists(struct landlock_cred_security) || FIELD(&blob, &cred->security) || !blob)
		return;
	bpf_probe_read_kernel(t->blob, sizeof(t->blob), blob);
	if (t->landlock_off < 0 || t->landlock_off > 4096)
		return;
	own = blob + t->landlock_off;
	if (FIELD(&domain, &own->domain))
		return;
	t->landlock_known = 1;
	if (!domain)
		return;
	if (bpf_core_type_exists(struct landlock_domain)) {
		struct landlock_domain *d = domain;

		FIELD(&h, &d->hierarchy);
		if (bpf_core_field_exists(d->num_rules))
			FIELD(&t->landlock_rules, &d->num_rules);
	} else {
		struct landlock_ruleset *r = domain;

		FIELD(&h, &r->hierarchy);
		FIELD(&t->landlock_rules, &r->num_rules);
	}
	if (h && bpf_core_field_exists(h->id)) {
		FIELD(&t->landlock_id, &h->id);
		FIELD(&t->landlock_denials, &h->num_denials.counter);
	}
	for (int i = 0; i < LAYERS && h; i++) {
		t->landlock_layers++;
		if (FIELD(&h, &h->parent))
			break;
	}
}

SEC("syscall")
int thole_verify(struct thole_task *ctx)
{
	/* Helpers write to the stack, not to a context. */
	struct thole_task out = {.pid = ctx->pid, .landlock_off = ctx->landlock_off}, *t = &out;
	const struct cred *cred = 0;
	struct task_struct *p;
	unsigned long flags = 0;

	p = bpf_task_from_pid(t->pid);
	if (!p)
		return 0;
	t->cgroup = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
	FIELD(&t->seccomp_mode, &p->seccomp.mode);
	FIELD(&t->seccomp_filters, &p->seccomp.filter_count.counter);
	FIELD(&flags, &p->atomic_flags);
	t->no_new_privs = flags & 1; /* PFA_NO_NEW_PRIVS */
	FIELD(&cred, &p->real_cred);
	FIELD(&t->uid, &cred->uid.val);
	FIELD(&t->euid, &cred->euid.val);
	FIELD(&t->suid, &cred->suid.val);
	FIELD(&t->fsuid, &cred->fsuid.val);
	/* 64 bits in one piece or in two, before 6.3: the same bytes. */
	bpf_core_read(&t->cap_inheritable, 8, &cred->cap_inheritable);
	bpf_core_read(&t->cap_permitted, 8, &cred->cap_permitted);
	bpf_core_read(&t->cap_effective, 8, &cred->cap_effective);
	bpf_core_read(&t->cap_bset, 8, &cred->cap_bset);
	bpf_core_read(&t->cap_ambient, 8, &cred->cap_ambient);
	landlock(t, cred);
	bpf_task_release(p);
	t->found = 1;
	*ctx = out;
	return 0;
}

char _license[] SEC("license") = "GPL";
