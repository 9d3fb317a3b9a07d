package nic

import (
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// Who polls is in C or in the kernel nearly always. Now and then he looks at the clock, whether it is time to give his turn up (sched.TurnLasts): behind so many
// posts and waits as take about so long.
const (
	turnLookMost  = time.Millisecond
	turnLooksMost = 64 // since the next may take longer
)

// untilLook is behind how many posts and waits the next look comes, if the last one came behind so many, which took so long. An operation that does something
// else than those before it takes longer, as do some behind it: a processor foresees what is always the same.
func untilLook(last uint64, took time.Duration) uint64 {
	switch {
	case took > turnLookMost:
		return max(1, last*uint64(turnLookMost)/uint64(took))
	case took < turnLookMost/2:
		return min(2*last, turnLooksMost)
	}
	return last
}

// begun tells whoever attends that somebody has begun to poll: see attend. Now and then it gives the caller's turn up.
func (n *NIC) begun() {
	k := n.waits.Load() + 1
	mem.Publish(&n.waits, k)
	n.breathe(k + n.posts.Load())
}

// breathe gives the caller's turn up, if nobody of this rank has done so of late. Behind it are so many posts and waits.
func (n *NIC) breathe(uses uint64) {
	if uses >= n.lookAt.Load() && !n.sched.Virtual() {
		n.breatheNow(uses)
	}
}

// breatheNow is breathe for who looks.
func (n *NIC) breatheNow(uses uint64) {
	now := n.sched.Now()
	until := untilLook(max(1, n.until.Load()), now-time.Duration(n.looked.Load()))
	n.looked.Store(int64(now))
	n.until.Store(until)
	n.lookAt.Store(uses + until)
	n.sched.GiveTurnDue(now)
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
