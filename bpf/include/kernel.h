// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* The few kernel structures that the optional objects read, with the few
 * fields that they read. The loader moves each access to where the running
 * kernel has the field (CO-RE); a field that it lacks fails the load, which
 * is how these objects are probed. */
#ifndef THOLE_KERNEL_H
#define THOLE_KERNEL_H

#include "uapi.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	__u32 val;
} kuid_t;

typedef struct {
	__u64 val;
} kernel_cap_t;

struct cred {
	kuid_t uid, euid, suid, fsuid;
	kernel_cap_t cap_inheritable, cap_permitted, cap_effective, cap_bset, cap_ambient;
	void *security;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

struct seccomp {
	int mode;
	atomic_t filter_count;
};

struct task_struct {
	int pid, tgid;
	unsigned long atomic_flags;
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct seccomp seccomp;
};

struct landlock_hierarchy {
	struct landlock_hierarchy *parent;
	atomic64_t num_denials;
	__u64 id;
};

struct landlock_ruleset {
	struct landlock_hierarchy *hierarchy;
	__u32 num_rules;
};

struct landlock_domain {
	struct landlock_hierarchy *hierarchy;
	__u32 num_rules;
};

struct landlock_cred_security {
	struct landlock_ruleset *domain;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	__u16 sk_type;
	__u16 sk_protocol;
};

struct socket {
	short type;
	struct sock *sk;
};

struct inode {
	__u16 i_mode;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct sockaddr_un {
	__u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[];
};

struct unix_sock {
	struct unix_address *addr;
};

#pragma clang attribute pop

#endif
