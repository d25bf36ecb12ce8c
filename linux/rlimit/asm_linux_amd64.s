// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func getNofile(to *[2]uint64) (result uintptr)
TEXT ·getNofile(SB), NOSPLIT, $0-16
	MOVQ $0, DI // this process
	MOVQ $7, SI // RLIMIT_NOFILE
	MOVQ $0, DX
	MOVQ to+0(FP), R10
	MOVQ $302, AX // prlimit64
	SYSCALL
	MOVQ AX, result+8(FP)
	RET
