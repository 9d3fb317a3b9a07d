//go:build !race

#include "textflag.h"

// func Publish(w *atomic.Uint64, v uint64)
// Stores become visible in program order, so a plain one is a release.
TEXT ·Publish(SB), NOSPLIT, $0-16
	MOVQ w+0(FP), DI
	MOVQ v+8(FP), AX
	MOVQ AX, (DI)
	RET
