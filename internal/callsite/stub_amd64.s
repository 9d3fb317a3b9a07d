#include "textflag.h"

// FRAME stores a return address of the chain, and goes on to the next frame; Depth of them fill a Stack.
#define FRAME(at) \
	TESTQ BX, BX     \
	JZ    done       \
	MOVQ  8(BX), DX  \
	MOVQ  DX, at(DI) \
	MOVQ  (BX), BX

// func Current() Caller
TEXT ·Current(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET

// func Capture(s *Stack, skip int) Ticks
// BP holds the frame pointer of the function that calls Capture: a function without a frame leaves BP alone.
// The counter is read last: what comes before takes no time of its own beside that, what comes after does.
TEXT ·Capture(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ s+0(FP), DI
	PXOR X0, X0
	MOVOU X0, 0(DI)
	MOVOU X0, 16(DI)
	MOVOU X0, 32(DI)
	MOVOU X0, 48(DI)
	MOVQ skip+8(FP), SI
	MOVQ BP, BX

skip:
	TESTQ SI, SI
	JLE   walk
	TESTQ BX, BX
	JZ    done
	MOVQ  (BX), BX
	DECQ  SI
	JMP   skip

walk:
	FRAME(0)
	FRAME(8)
	FRAME(16)
	FRAME(24)
	FRAME(32)
	FRAME(40)
	FRAME(48)
	FRAME(56)

done:
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
