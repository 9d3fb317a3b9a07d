package nic

import (
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// The runtime's monitor takes the turn to run Go code from a goroutine that has had it for 10 ms without a break, and is in C or in the kernel whenever
// the monitor looks; who polls a NIC is there nearly always. It says so by a signal first, and having found one such it looks every 20 us for
// others. That is its thread, the signals and the way back to a turn, on the core of who polls where a rank has one only. So nobody here lets it come to that.
const (
	turnLasts = 5 * time.Millisecond // then who polls gives his turn up
	turnLooks = 8                    // and looks at the clock so often
)

// begun tells whoever attends that somebody has begun to poll: see attend. Now and then it gives the caller's turn up.
func (n *NIC) begun() {
	k := n.waits.Load() + 1
	mem.Publish(&n.waits, k)
	if k%turnLooks == 0 && !n.sched.Virtual() {
		n.breathe()
	}
}

// breathe gives the caller's turn up, if nobody of this rank has done so of late.
func (n *NIC) breathe() {
	now := n.sched.Now()
	if now-time.Duration(n.breathed.Load()) < turnLasts {
		return
	}
	n.breathed.Store(int64(now))
	sched.GiveTurn()
}

// rest is a nap of who attends. A long one has no turn: who keeps it asleep in the kernel, and goes on with it, never gives it up. Short ones
// are too short for the runtime's timers.
func (n *NIC) rest(long sched.Naps, nap time.Duration) {
	if nap < napLongest || n.sched.Virtual() || n.ctx.Err() != nil {
		n.nap.Wait(n.sched, nap)
		return
	}
	long.Sleep(n.ctx, nap) // who attends looks by himself whether the NIC is in use still
}
