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
	MOVQ args+0(FP), DI
	MOVQ size+8(FP), SI
	MOVQ header+16(FP), R12
	MOVQ $435, AX // clone3
	SYSCALL
	TESTQ AX, AX
	JZ   child
	MOVQ AX, ret+24(FP)
	RET
child:
	JMP  interpret<>(SB)

// func selfRun(header unsafe.Pointer)
//
// Runs the list on this thread and does not return.
TEXT ·selfRun(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ header+0(FP), R12
	JMP  interpret<>(SB)

// interpret runs the list whose header R12 points to. R13: the op at hand.
// The kernel keeps all registers but AX, CX and R11.
TEXT interpret<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ 0(R12), R13
next:
	CMPQ R13, 8(R12)
	JCC  end
	MOVQ 72(R13), BX
	MOVQ 8(R13), DI
	MOVQ 16(R13), SI
	MOVQ 24(R13), DX
	MOVQ 32(R13), R10
	MOVQ 40(R13), R8
	MOVQ 48(R13), R9
	TESTQ $0x100, BX
	JZ   a1
	MOVQ (DI), DI
a1:
	TESTQ $0x200, BX
	JZ   a2
	MOVQ (SI), SI
a2:
	TESTQ $0x400, BX
	JZ   a3
	MOVQ (DX), DX
a3:
	TESTQ $0x800, BX
	JZ   a4
	MOVQ (R10), R10
a4:
	TESTQ $0x1000, BX
	JZ   a5
	MOVQ (R8), R8
a5:
	TESTQ $0x2000, BX
	JZ   call
	MOVQ (R9), R9
call:
	MOVQ 0(R13), AX
	SYSCALL
	TESTQ $1, BX
	JNZ  ok
	TESTQ $2, BX
	JNZ  exact
	CMPQ AX, $-4095
	JCC  fail
	JMP  ok
exact:
	CMPQ AX, 64(R13)
	JNE  fail
ok:
	MOVQ 56(R13), CX
	TESTQ CX, CX
	JZ   advance
	MOVQ AX, (CX)
advance:
	ADDQ $80, R13
	JMP  next
fail:
	SUBQ 0(R12), R13
	MOVQ R13, 24(R12)
	MOVQ AX, 32(R12)
	MOVQ 16(R12), DI
	LEAQ 24(R12), SI
	MOVQ $16, DX
	MOVQ $1, AX // write
	SYSCALL
	MOVQ $70, 48(R12)
end:
	MOVQ 48(R12), DI
	MOVQ 40(R12), AX
	SYSCALL
	JMP  end
