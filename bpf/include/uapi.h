// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/*
 * The part of the kernel's stable interface (include/uapi/linux/bpf.h) that
 * these programs use. Written out here so that the objects do not depend on
 * the headers of the machine that compiles them.
 */
#ifndef THOLE_UAPI_H
#define THOLE_UAPI_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
};

enum {
	AF_UNSPEC = 0,
	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
	SOCK_STREAM = 1,
	SOCK_DGRAM = 2,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_UDPLITE = 136,
	IPPROTO_MPTCP = 262,
	EPERM = 1,
	EPROTONOSUPPORT = 93,
};

/* struct bpf_sock_addr: the context of bind, connect and sendmsg programs. */
struct bpf_sock_addr {
	__u32 user_family;
	__u32 user_ip4;	     /* network order */
	__u32 user_ip6[4];   /* network order */
	__u32 user_port;     /* network order, 16 bits */
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 msg_src_ip4;
	__u32 msg_src_ip6[4];
	__u64 sk;
};

/* struct bpf_sock, as far as a socket creation program reads it. */
struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
};

#endif
