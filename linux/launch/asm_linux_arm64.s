// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Offsets as in image_linux.go.

// func cloneRun(args unsafe.Pointer, size uintptr, header unsafe.Pointer) uintptr
//
// clone3(2); the parent returns with the raw result, the child runs the list.
// The child may share the parent's memory: it writes to the image alone and
// never to the stack.
TEXT ·cloneRun(SB), NOSPLIT|NOFRAME, $0-32
	MOVD args+0(FP), R0
	MOVD size+8(FP), R1
	MOVD header+16(FP), R9
	MOVD $435, R8 // clone3
	SVC
	CBZ  R0, child
	MOVD R0, ret+24(FP)
	RET
child:
	JMP  interpret<>(SB)

// func selfRun(header unsafe.Pointer)
//
// Runs the list on this thread and does not return.
TEXT ·selfRun(SB), NOSPLIT|NOFRAME, $0-8
	MOVD header+0(FP), R9
	JMP  interpret<>(SB)

// interpret runs the list whose header R9 points to. R10: the op at hand,
// R11: its flags. The kernel keeps all registers but R0.
TEXT interpret<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD 0(R9), R10
next:
	MOVD 8(R9), R12
	CMP  R12, R10
	BHS  end
	MOVD 72(R10), R11
	MOVD 8(R10), R0
	MOVD 16(R10), R1
	MOVD 24(R10), R2
	MOVD 32(R10), R3
	MOVD 40(R10), R4
	MOVD 48(R10), R5
	TBZ  $8, R11, a1
	MOVD (R0), R0
a1:
	TBZ  $9, R11, a2
	MOVD (R1), R1
a2:
	TBZ  $10, R11, a3
	MOVD (R2), R2
a3:
	TBZ  $11, R11, a4
	MOVD (R3), R3
a4:
	TBZ  $12, R11, a5
	MOVD (R4), R4
a5:
	TBZ  $13, R11, call
	MOVD (R5), R5
call:
	MOVD 0(R10), R8
	SVC
	TBNZ $0, R11, ok
	TBNZ $1, R11, exact
	CMN  $4095, R0
	BHS  fail
	JMP  ok
exact:
	MOVD 64(R10), R12
	CMP  R12, R0
	BNE  fail
ok:
	MOVD 56(R10), R12
	CBZ  R12, advance
	MOVD R0, (R12)
advance:
	ADD  $80, R10
	JMP  next
fail:
	MOVD 0(R9), R12
	SUB  R12, R10, R10
	MOVD R10, 24(R9)
	MOVD R0, 32(R9)
	MOVD 16(R9), R0
	ADD  $24, R9, R1
	MOVD $16, R2
	MOVD $64, R8 // write
	SVC
	MOVD $70, R12
	MOVD R12, 48(R9)
end:
	MOVD 48(R9), R0
	MOVD 40(R9), R8
	SVC
	JMP  end
