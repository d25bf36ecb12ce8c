// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func getNofile(to *[2]uint64) (result uintptr)
TEXT ·getNofile(SB), NOSPLIT, $0-16
	MOVD $0, R0 // this process
	MOVD $7, R1 // RLIMIT_NOFILE
	MOVD $0, R2
	MOVD to+0(FP), R3
	MOVD $261, R8 // prlimit64
	SVC
	MOVD R0, result+8(FP)
	RET
