#include "textflag.h"

// func clone(flags, stack, tid, f, arg uintptr) (errno uintptr)
//
// It starts a thread that the Go runtime does not know of, on a stack of its own; the thread runs the code at f with one argument
// and ends. The kernel writes the thread's number to tid, and 0, with a wake of that futex, at its end.
//
// The code is called as Go's functions call each other (ABIInternal): the argument in AX, with room on the stack to spill it, and zero in X15. There
// is a wrapper for calls from assembly, but with the race detector that is instrumented, whatever it wraps.
TEXT ·clone(SB), NOSPLIT, $0-48
	MOVQ flags+0(FP), DI
	MOVQ stack+8(FP), SI
	MOVQ tid+16(FP), DX
	MOVQ tid+16(FP), R10
	XORL R8, R8
	MOVQ f+24(FP), R12
	MOVQ arg+32(FP), R13
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  thread
	MOVQ AX, errno+40(FP)
	RET

thread:
	XORL BP, BP
	XORL R14, R14 // no goroutine
	XORPS X15, X15
	SUBQ $32, SP
	MOVQ R13, AX
	CALL R12
	XORL DI, DI
	MOVL $60, AX // exit, of this thread
	SYSCALL
	INT  $3

// func raw(call, a, b, c, d uintptr) (n uintptr)
TEXT ·raw(SB), NOSPLIT, $0-48
	MOVQ call+0(FP), AX
	MOVQ a+8(FP), DI
	MOVQ b+16(FP), SI
	MOVQ c+24(FP), DX
	MOVQ d+32(FP), R10
	XORL R8, R8
	XORL R9, R9
	SYSCALL
	MOVQ AX, n+40(FP)
	RET

// func copyStack(pid uintptr, to, from *[2]uintptr) (n uintptr)
TEXT ·copyStack(SB), NOSPLIT, $0-32
	MOVQ pid+0(FP), DI
	MOVQ to+8(FP), SI
	MOVL $1, DX
	MOVQ from+16(FP), R10
	MOVL $1, R8
	XORL R9, R9
	MOVL $310, AX // process_vm_readv
	SYSCALL
	MOVQ AX, n+24(FP)
	RET

// func load(p *uint64) uint64
TEXT ·load(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ (AX), AX
	MOVQ AX, ret+8(FP)
	RET

// func store(p *uint64, v uint64)
//
// What was written before is seen by whoever sees v: this processor keeps loads and stores in order, but for loads that overtake.
TEXT ·store(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET
