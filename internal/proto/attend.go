package proto

import (
	"context"
	"time"
)

// Naps of attend while others poll.
const (
	napFirst   = 200 * time.Microsecond
	napLongest = time.Millisecond
	napLeased  = 20 * time.Microsecond // the first while there are leases
)

// attend serves the NIC when nobody of this rank polls: requests of peers, and completions for parked waits. It
// sleeps until the NIC has something; while a wait polls, or one has just polled and the next may follow, it keeps out
// of the way: a NIC that must say when it has something is slower.
func (n *nic) attend(ctx context.Context) {
	defer n.unattended.Store(true)
	seen, idle := n.waits.Load(), napLeased
	for ctx.Err() == nil {
		for nap := napFirst; n.pollers.Load() > 0 || n.waits.Load() != seen; nap = min(2*nap, napLongest) {
			seen = n.waits.Load()
			n.nap.Wait(n.e.Sched, nap)
		}
		if n.leases.busy() && !n.closed.Load() { // the NIC says nothing of what is waited for
			if n.progress() {
				idle = napLeased
			} else {
				n.nap.Wait(n.e.Sched, idle)
				idle = min(2*idle, napLongest)
			}
			continue
		}
		idle = napLeased
		if err := n.d.Wait(ctx); err != nil {
			return
		}
		for n.progress() {
		}
	}
}
