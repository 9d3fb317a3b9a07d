// Package callsite tells from where in the program a call came, and when, at a price that a data path can pay:
// the return addresses of the callers by a walk over frame pointers, and the processor's time stamp counter, both
// read by one assembly stub.
//
// # Terms
//
//   - Stack: the return addresses of the physical frames above the caller, innermost first, zero-padded. Two calls
//     with equal stacks came the same way. They are meant to be hashed and compared, not printed: a frame into
//     which others were inlined counts once.
//   - Stamp: nanoseconds of a Clock. Stamps of one Clock can be subtracted and compared with its Now.
//   - Plain: a Clock that asks its time source every time, for virtual time and for machines without a usable counter.
//
// # Life of a mark
//
// Clock.Mark calls the stub. It follows the chain of saved frame pointers that the Go ABI keeps on amd64 and arm64:
// the word at a frame pointer is the caller's frame pointer, the word above it the return address; zero ends the
// chain. Then it reads RDTSC, or CNTVCT_EL0. Two multiplications turn ticks into nanoseconds.
// Elsewhere runtime.Callers and the time source do the same at some fifty times the price.
//
// # Invariants
//
//   - C1: return addresses are recorded, never addresses of frames: a Go stack moves when it grows, its return
//     addresses stay.
//   - C2: the walk reads only the stack of the goroutine that calls: the stub is not preemptible and grows no stack.
//   - C3: stamps of one thread never decrease by more than the counters of two processors differ; where the processor
//     does not promise one constant rate (CPUID 80000007H, EDX bit 8) the clock is plain.
//   - C4: the rate is measured once. An error of it scales all stamps alike, so differences and predictions made of
//     them stay consistent; only the conversion to a sleep is off, by that part of the sleep.
//
// # Limits
//
// Nothing here locks or allocates after New. A Clock may be used by any number of goroutines.
package callsite
