//go:build !purego && !race && !msan && !asan

#include "textflag.h"

// Both functions align the destination to lines of 64 bytes: head and tail are moved without alignment, and the body between moves parts
// of both once more. No frame, no calls: a fault in them is told of like one in the builtin.

// func copyWide(dst, src unsafe.Pointer, n int)
//
// Only the first 16 registers of 64 bytes are used, which VZEROUPPER gives back whole. Two lines at a time are faster than four where the
// lines are in the second cache, and the tail is loaded last: loaded first, it would wait for stores of an earlier copy to the same
// place of another page.
TEXT ·copyWide(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

	// The head, a line.
	VMOVDQU64 (SI), Z0
	VMOVDQU64 Z0, (DI)
	LEAQ      -128(SI)(CX*1), R10 // the tails, two lines
	LEAQ      -128(DI)(CX*1), R9

	// On to the next line, 1 to 64 bytes further.
	LEAQ 64(DI), AX
	ANDQ $~63, AX
	SUBQ DI, AX
	ADDQ AX, DI
	ADDQ AX, SI

body:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	ADDQ      $128, SI
	VMOVDQA64 Z0, (DI)
	VMOVDQA64 Z1, 64(DI)
	ADDQ      $128, DI
	CMPQ      DI, R9
	JB        body

	VMOVDQU64 (R10), Z0
	VMOVDQU64 64(R10), Z1
	VMOVDQU64 Z0, (R9)
	VMOVDQU64 Z1, 64(R9)
	VZEROUPPER
	RET

// func copyString(dst, src unsafe.Pointer, n int)
TEXT ·copyString(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

	// The head, a line.
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)

	// On to the next line, 1 to 64 bytes further.
	LEAQ 64(DI), AX
	ANDQ $~63, AX
	SUBQ DI, AX
	ADDQ AX, DI
	ADDQ AX, SI
	SUBQ AX, CX

	// By words of 8 bytes, which keeps those whole that are aligned; the last one, perhaps no whole one, by itself.
	MOVQ -8(SI)(CX*1), AX
	LEAQ -8(DI)(CX*1), DX
	DECQ CX
	SHRQ $3, CX
	REP; MOVSQ
	MOVQ AX, (DX)
	RET

// func copyPast(dst, src unsafe.Pointer, n int)
//
// The stores go past the caches, and are in order with all others at the end.
TEXT ·copyPast(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

	// The head, a line, and the tail, two.
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	LEAQ    -128(SI)(CX*1), R10
	LEAQ    -128(DI)(CX*1), R9

	// On to the next line, 1 to 64 bytes further.
	LEAQ 64(DI), AX
	ANDQ $~63, AX
	SUBQ DI, AX
	ADDQ AX, DI
	ADDQ AX, SI

past:
	PREFETCHNTA 1024(SI)
	PREFETCHNTA 1088(SI)
	VMOVDQU     (SI), Y0
	VMOVDQU     32(SI), Y1
	VMOVDQU     64(SI), Y2
	VMOVDQU     96(SI), Y3
	VMOVNTDQ    Y0, (DI)
	VMOVNTDQ    Y1, 32(DI)
	VMOVNTDQ    Y2, 64(DI)
	VMOVNTDQ    Y3, 96(DI)
	ADDQ        $128, SI
	ADDQ        $128, DI
	CMPQ        DI, R9
	JBE         past

	SFENCE
	VMOVDQU (R10), Y0
	VMOVDQU 32(R10), Y1
	VMOVDQU 64(R10), Y2
	VMOVDQU 96(R10), Y3
	VMOVDQU Y0, (R9)
	VMOVDQU Y1, 32(R9)
	VMOVDQU Y2, 64(R9)
	VMOVDQU Y3, 96(R9)
	VZEROUPPER
	RET
