#include "go_asm.h"
#include "textflag.h"

// func capture(s *Stack, skip int) uint64
// BP holds the frame pointer of the function that calls capture: a function without a frame leaves BP alone.
TEXT ·capture(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ s+0(FP), DI
	MOVQ skip+8(FP), SI
	MOVQ BP, BX
	XORL AX, AX

skip:
	TESTQ SI, SI
	JLE   walk
	TESTQ BX, BX
	JZ    pad
	MOVQ  (BX), BX
	DECQ  SI
	JMP   skip

walk:
	TESTQ BX, BX
	JZ    pad
	MOVQ  8(BX), DX
	MOVQ  DX, (DI)(AX*8)
	MOVQ  (BX), BX
	INCQ  AX
	CMPQ  AX, $const_Depth
	JLT   walk
	JMP   stamp

pad:
	CMPQ AX, $const_Depth
	JGE  stamp
	MOVQ $0, (DI)(AX*8)
	INCQ AX
	JMP  pad

stamp:
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+16(FP)
	RET

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT|NOFRAME, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func steady() (bool, uint64)
TEXT ·steady(SB), NOSPLIT, $0-16
	MOVB  $0, ret+0(FP)
	MOVQ  $0, ret1+8(FP)
	MOVL  $0x80000000, AX
	CPUID
	CMPL  AX, $0x80000007
	JCS   done
	MOVL  $0x80000007, AX
	CPUID
	BTL   $8, DX
	JCC   done
	MOVB  $1, ret+0(FP)

done:
	RET
