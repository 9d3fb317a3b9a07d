package nic

import (
	"context"
	"errors"
	"sync/atomic"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// Handle is a transfer in flight. The zero Handle is done. Handles are plain values; dropping one loses
// nothing but the news of its end.
//
// It has no more than the four fields that the compiler keeps in registers: a put to mapped memory, which returns the zero
// Handle, would else clear and copy one in memory, which takes as long as the put. What the transfer is stands in the NIC's table; of a flush
// (flushnb.go) the rank and the number up to which it is stand in the place of the transfer's.
type Handle struct {
	n   *NIC
	end *ending
	id  int32
	gen uint32
}

// ending is who wants to know when the program has learned that a transfer has ended.
type ending struct {
	told atomic.Bool
	f    func()
}

// Watched returns a handle that is done, and calls f when Done or Wait first says so.
func Watched(f func()) Handle { return Handle{end: &ending{f: f}} }

// OfNIC reports whether h stands for a transfer of a NIC: the zero Handle and those of Watched do not.
func OfNIC(h Handle) bool { return h.n != nil }

// over tells who wants to know of the end.
func (h Handle) over() {
	if h.end != nil && !h.end.told.Swap(true) {
		h.end.f()
	}
}

// String says whether the transfer has ended. It makes no progress.
func (h Handle) String() string {
	if Ended(h) || h.n.closed.Load() {
		return "transfer, done"
	}
	return "transfer, under way"
}

// Done reports whether the transfer has ended, in success or in error.
func (h Handle) Done() bool {
	if h.n == nil {
		h.over()
		return true
	}
	if h.n.overFor(h) {
		return true
	}
	h.n.Progress()
	return h.n.overFor(h) || h.n.closed.Load()
}

// Ended is Handle.Done that makes no progress.
func Ended(h Handle) bool { return h.n == nil || h.n.overFor(h) }

// overFor reports whether what h stands for is over.
func (n *NIC) overFor(h Handle) bool {
	if h.id < 0 {
		return n.flushed(h)
	}
	return n.table.Over(h.id, h.gen)
}

// Wait returns when the transfer has ended, with its error the first time it is asked. When ctx ends first it
// returns ctx's cause, and the transfer goes on: its buffers stay the NIC's until Done. ctx may be nil.
func (h Handle) Wait(ctx context.Context) error {
	if h.n == nil {
		h.over()
		return nil
	}
	if h.id < 0 {
		return h.n.waitFlushed(ctx, h)
	}
	if !h.n.table.Over(h.id, h.gen) {
		vain := h.n.lookFirst()
		if !h.n.table.Over(h.id, h.gen) {
			if err := h.n.waitFor(ctx, h.n.what(h), nil, vain, goal{transfer: h.id, gen: h.gen}); err != nil {
				return err
			}
		}
	}
	err := h.n.failure(h)
	if err == nil {
		return nil // before what follows allocates
	}
	if of := (*transport.OpError)(nil); errors.As(err, &of) {
		return h.n.explain(of.Op, of.Rank, err)
	}
	return err
}

// what says what a transfer is; nothing where it has ended.
func (n *NIC) what(h Handle) sched.What {
	n.mu.Lock()
	defer n.mu.Unlock()
	if op, rank, ok := n.table.What(h.id, h.gen); ok {
		return sched.What{Op: op, Peer: rank}
	}
	return sched.What{Peer: -1}
}

// failure returns the error of a transfer that has ended, the first time it is asked.
func (n *NIC) failure(h Handle) error {
	if !n.table.Failed() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.table.Failure(h.id, h.gen)
}
