#include "go_asm.h"
#include "textflag.h"

// func Current() Caller
TEXT ·Current(SB), NOSPLIT|NOFRAME, $0-8
	MOVD g, ret+0(FP)
	RET

// func Capture(s *Stack, skip int) Ticks
// R29 holds the frame pointer of the function that calls Capture: a function without a frame leaves it alone.
TEXT ·Capture(SB), NOSPLIT|NOFRAME, $0-24
	MOVD s+0(FP), R0
	MOVD skip+8(FP), R1
	MOVD R29, R2
	MOVD $const_Depth, R3

skip:
	CMP  $0, R1
	BLE  walk
	CBZ  R2, pad
	MOVD (R2), R2
	SUB  $1, R1
	B    skip

walk:
	CBZ    R2, pad
	MOVD   8(R2), R4
	MOVD.P R4, 8(R0)
	MOVD   (R2), R2
	SUB    $1, R3
	CBNZ   R3, walk
	B      stamp

pad:
	CBZ    R3, stamp
	MOVD.P ZR, 8(R0)
	SUB    $1, R3
	B      pad

stamp:
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+16(FP)
	RET

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT|NOFRAME, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func steady() (bool, uint64)
// The architecture's counter always runs at the rate that CNTFRQ_EL0 names.
TEXT ·steady(SB), NOSPLIT|NOFRAME, $0-16
	MOVD $1, R0
	MOVB R0, ret+0(FP)
	MRS  CNTFRQ_EL0, R0
	MOVD R0, ret1+8(FP)
	RET
