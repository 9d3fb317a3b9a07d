package mem

import "sync/atomic"

// FullFence orders every earlier load and store of this goroutine before every later one, for all observers.
func FullFence() {
	// An exchange with a word of the stack, whose line this core owns, drains the store buffer as any locked
	// instruction does, at less than half the cost of MFENCE; and unlike a function in assembly it is inlined.
	atomic.SwapUint32(new(uint32), 1)
}

// StoreFence orders earlier stores before later stores. Total store order gives that; the compiler keeps
// stores in program order.
func StoreFence() {}
