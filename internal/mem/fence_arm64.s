#include "textflag.h"

// func FullFence()
TEXT ·FullFence(SB), NOSPLIT, $0-0
	DMB $0xB // ISH: all before all
	RET

// func StoreFence()
TEXT ·StoreFence(SB), NOSPLIT, $0-0
	DMB $0xA // ISHST: stores before stores; a store-release alone does not hold back what follows it
	RET
