package nic

import (
	"context"

	"gopgas/internal/sched"
)

// A handle of a flush has the rank where one of a transfer has its number, less than 0, and the low half of the number up to which all is to be
// over where that has its generation: no more than that is begun to a rank while anybody waits.

// FlushNB begins what Flush does: the handle is done when all is over that was begun to rank before.
func (n *NIC) FlushNB(rank int) Handle {
	e := n.ends[rank]
	mark := e.began.Load()
	if e.pending() == 0 && !e.bad.Load() {
		return Handle{}
	}
	n.push() // what is held back sets out
	return Handle{n: n, id: int32(-1 - rank), gen: uint32(mark)}
}

// flushes is what a handle of a flush stands for.
func (n *NIC) flushes(h Handle) (e *endpoint, mark uint64) {
	e = n.ends[-1-h.id]
	began := e.began.Load()
	return e, began - uint64(uint32(began)-h.gen)
}

// flushed reports whether a flush is over. Who only asks is nobody who waits, for whom others see to it that the NIC tells of what is lazy: so he does.
func (n *NIC) flushed(h Handle) bool {
	e, mark := n.flushes(h)
	if n.past(e, mark) {
		return true
	}
	n.hastenOne(e)
	return false
}

// waitFlushed is Handle.Wait of a flush.
func (n *NIC) waitFlushed(ctx context.Context, h Handle) error {
	e, mark := n.flushes(h)
	if !n.past(e, mark) {
		if vain := n.lookFirst(); !n.past(e, mark) {
			what := sched.What{Op: "flush", Peer: e.rank}
			if err := n.waitFor(ctx, what, n.peers.Watch(e.rank), vain, goal{end: e, mark: mark}); err != nil {
				return err
			}
		}
	}
	if !e.bad.Load() {
		return nil
	}
	return n.tell(e.rank)
}
