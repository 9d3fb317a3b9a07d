//go:build !purego && !race && !msan && !asan

#include "textflag.h"

// All four add n bytes at b to those at a, n a multiple of 128 and not 0. Each element of a is loaded and stored with others of its register at once. No frame, no
// calls: a fault in them is told of like one in Go.

#define SUM(name, move, add) \
TEXT name(SB), NOSPLIT, $0-24; \
	MOVQ a+0(FP), DI; \
	MOVQ b+8(FP), SI; \
	MOVQ n+16(FP), CX; \
	ADDQ DI, CX; \
next: \
	move (DI), Y0; \
	move 32(DI), Y1; \
	move 64(DI), Y2; \
	move 96(DI), Y3; \
	add  (SI), Y0, Y0; \
	add  32(SI), Y1, Y1; \
	add  64(SI), Y2, Y2; \
	add  96(SI), Y3, Y3; \
	move Y0, (DI); \
	move Y1, 32(DI); \
	move Y2, 64(DI); \
	move Y3, 96(DI); \
	ADDQ $128, SI; \
	ADDQ $128, DI; \
	CMPQ DI, CX; \
	JB   next; \
	VZEROUPPER; \
	RET

// func sumFloat64(a, b *byte, n int)
SUM(·sumFloat64, VMOVUPD, VADDPD)

// func sumFloat32(a, b *byte, n int)
SUM(·sumFloat32, VMOVUPS, VADDPS)

// func sumInt64(a, b *byte, n int)
SUM(·sumInt64, VMOVDQU, VPADDQ)

// func sumInt32(a, b *byte, n int)
SUM(·sumInt32, VMOVDQU, VPADDD)
