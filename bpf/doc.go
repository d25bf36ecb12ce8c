// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the eBPF programs that enforce policies on Linux: their C
// source, the compiled objects, and the bindings that bpf2go generates.
// include/abi.h says what the programs decide and how.
//
// Importing this package links cilium/ebpf. The launcher, which must start as
// fast as an empty program, imports [github.com/tholehq/thole/bpf/flat]
// instead: the network object in a form that needs no ELF or BTF reader.
package bpf

//go:generate go tool bpf2go -go-package bpf -target bpfel -no-global-types -strip llvm-strip -cflags "-O2 -g -Wall -Wextra -Werror -mcpu=v3" Net net.bpf.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -no-global-types -strip llvm-strip -cflags "-O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -mcpu=v3" Lsm lsm.bpf.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -no-global-types -type thole_task -strip llvm-strip -cflags "-O2 -g -Wall -Wextra -Werror -mcpu=v3" Verify verify.bpf.c
//go:generate go run ./internal/flatten -object net_bpfel.o -image flat/net.img -go flat/abi_gen.go
