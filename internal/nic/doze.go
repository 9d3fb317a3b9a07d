package nic

import (
	"context"
	"time"

	"gopgas/internal/mem"
)

// A NIC whose channel says that something is done wakes who attends with the first operation of each burst, though who has posted it looks for its end
// himself: a thread gets up, and the runtime's monitor with it, beside who polls. Where the NIC can say instead that a peer has sent something (solicited
// events), who attends sleeps for that alone as long as the NIC is used again and again: he dozes.
//
// Nobody may depend on an end that is reported meanwhile, unless he looks himself. So nobody dozes while pipes or messages of this rank are under
// way, and who begins a pipe wakes who dozes. What else is late, by a doze behind the last use at most, is that memory is given back of a transfer for which
// nobody waits, and that somebody learns of a connection's break: whoever polls meanwhile sees to both.
const napDozing = 50 * time.Millisecond // the longest

// solicited is implemented by domains that can tell what peers have sent from the ends of this rank's own operations. The word is the verbs'
// (InfiniBand Architecture Specification, volume 1, "solicited event").
type solicited interface {
	// WaitSolicited returns true when a message or a write with immediate may have arrived, and after Wake; false after limit, or with ctx's error. It may
	// return for less.
	WaitSolicited(ctx context.Context, limit time.Duration) (some bool, err error)
}

// doze sleeps until a peer's message has come, and hands out what has come, or for a nap; it reports false, and does nothing, where it must not. After a nap
// it leaves the NIC alone, whose lock who polls has nearly always: who attends looks for more as soon as nobody uses it.
func (n *NIC) doze(nap time.Duration) bool {
	if n.solicited == nil || n.pollers.Load() > 0 || n.ctx.Err() != nil {
		return false
	}
	n.dozing.Store(true) // before it looks: who begins a pipe looks at this afterwards
	some, dozed := false, n.quiet()
	if dozed {
		var err error // which ends Domain.Wait, too
		some, err = n.solicited.WaitSolicited(n.ctx, nap)
		dozed = err == nil
	}
	n.dozing.Store(false)
	if some {
		n.outlast()
		for n.Progress() {
		}
	}
	return dozed
}

// quiet reports whether nothing is under way that goes on only if who attends learns of its end.
func (n *NIC) quiet() bool {
	if n.piped.Load() != 0 || n.client.Watchful() || n.later.inTime.some.Load() {
		return false
	}
	if n.am == nil {
		return true
	}
	if !n.poll.take() {
		return false // somebody looks at this moment: another time
	}
	quiet := n.am.Quiet()
	n.poll.leave()
	return quiet
}

// used tells who attends, and may doze, that the NIC is in use, by what somebody may wait for later and not at once. Who cannot doze would serve peers later.
func (n *NIC) used() {
	if n.solicited != nil {
		k := n.posts.Load() + 1
		mem.Publish(&n.posts, k)
		n.breathe(k + n.waits.Load())
	}
}

// uses changes whenever somebody uses the NIC, and will look for what that brings himself.
func (n *NIC) uses() uint64 { return n.waits.Load() + n.posts.Load() }

// rouse wakes who dozes, for a pipe that has just begun.
func (n *NIC) rouse() {
	if n.dozing.Load() {
		n.Domain.Wake()
	}
}
