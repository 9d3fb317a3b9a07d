package nic

import (
	"sync/atomic"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// Who polls is in C or in the kernel nearly always. How often he looks at the clock, whether it is time to give his turn up (sched.TurnLasts):
const (
	turnLooks    = 8                // once in so many waits, or posts
	turnLookMost = time.Millisecond // or each time, if that many take longer
)

// begun tells whoever attends that somebody has begun to poll: see attend. Now and then it gives the caller's turn up.
func (n *NIC) begun() {
	k := n.waits.Load() + 1
	mem.Publish(&n.waits, k)
	n.breathe(&n.lookAt, k)
}

// breathe gives the caller's turn up, if nobody of this rank has done so of late. It is number k of what he does, and at the one that looks next.
func (n *NIC) breathe(at *atomic.Uint64, k uint64) {
	if k >= at.Load() && !n.sched.Virtual() {
		n.breatheNow(at, k)
	}
}

// breatheNow is breathe for who looks.
func (n *NIC) breatheNow(at *atomic.Uint64, k uint64) {
	now, next := n.sched.Now(), k+turnLooks
	if now-time.Duration(n.looked.Load()) > turnLookMost {
		next = k + 1
	}
	n.looked.Store(int64(now))
	at.Store(next)
	if now-time.Duration(n.breathed.Load()) < sched.TurnLasts {
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
