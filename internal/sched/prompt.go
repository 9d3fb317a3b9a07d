package sched

import (
	"sync"
	"sync/atomic"
)

// Prompt is the place of the one thread of a rank that serves others while the program computes. Whoever serves takes
// it; the kernel then lets that thread go before one that computes on the same processor, instead of at the end of
// that one's slice. The zero Prompt is empty and ready. Any goroutine may call its methods at any time; they do not
// wait, and need no rights. They do nothing where the kernel knows no slices of a thread's own (Linux before 6.12).
type Prompt struct {
	thread atomic.Int32 // who has it; 0: nobody

	mu    sync.Mutex
	usual uint64 // that thread's slice before, in nanoseconds
}

// promptSlice is the least slice that Linux gives a thread (sched(7), sched_runtime of SCHED_OTHER). A thread that
// wakes up goes before one with a longer slice if it has had no more than its share of the processor.
const promptSlice = 100_000 // ns

// Serve gives the place to the calling thread. It costs a system call that asks the thread's name; two or four more
// where somebody else, or nobody, has the place.
func (p *Prompt) Serve() {
	if t := threadID(); t != p.thread.Load() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.restLocked()
		p.usual = setSlice(t, promptSlice)
		p.thread.Store(t)
	}
}

// Rest empties the place: its thread has a slice like all others again. It costs a load where it is empty.
func (p *Prompt) Rest() {
	if p.thread.Load() != 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.restLocked()
	}
}

func (p *Prompt) restLocked() {
	if t := p.thread.Load(); t != 0 {
		setSlice(t, p.usual)
		p.thread.Store(0)
	}
}
