package proto

import (
	"context"
	"sync/atomic"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// Handle is a transfer in flight. The zero Handle is done. Handles are plain values; dropping one loses
// nothing but the news of its end.
type Handle struct {
	n    *nic
	op   string
	rank int
	id   int32
	gen  uint32
	end  *ending
}

// ending is who wants to know when the program has learned that a transfer has ended.
type ending struct {
	told atomic.Bool
	f    func()
}

// Watched returns a handle that is done, and calls f when Done or Wait first says so.
func Watched(f func()) Handle { return Handle{end: &ending{f: f}} }

// over tells who wants to know of the end.
func (h Handle) over() {
	if h.end != nil && !h.end.told.Swap(true) {
		h.end.f()
	}
}

// Done reports whether the transfer has ended, in success or in error.
func (h Handle) Done() bool {
	if h.n == nil {
		h.over()
		return true
	}
	if h.n.transfer[h.id].gen.Load() != h.gen {
		return true
	}
	h.n.progress()
	return h.n.transfer[h.id].gen.Load() != h.gen || h.n.closed.Load()
}

// Wait returns when the transfer has ended, with its error the first time it is asked. When ctx ends first it
// returns ctx's cause, and the transfer goes on: its buffers stay the engine's until Done. ctx may be nil.
func (h Handle) Wait(ctx context.Context) error {
	if h.n == nil {
		h.over()
		return nil
	}
	t := &h.n.transfer[h.id]
	if t.gen.Load() == h.gen {
		h.n.pollers.Add(1)
		defer h.n.pollers.Add(-1)
		h.n.waits.Add(1)
		sp := h.n.e.Sched.Begin(ctx, sched.What{Op: h.op, Peer: h.rank}, nil)
		for t.gen.Load() == h.gen {
			if h.n.progress() {
				sp.Moved()
				continue
			}
			if h.n.closed.Load() {
				sp.End()
				return transport.NewOpError(h.op, h.rank, errOwnEnd)
			}
			if err := sp.Step(); err != nil {
				sp.End()
				return transport.NewOpError(h.op, h.rank, err)
			}
		}
		sp.End()
		if sp.Slept() {
			h.n.e.counts.waited(PathBounce)
		}
	}
	return h.n.explain(h.op, h.rank, h.n.failure(h))
}

// failure returns the error of a transfer that has ended, the first time it is asked.
func (n *nic) failure(h Handle) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.failed) == 0 {
		return nil
	}
	f := n.failed[h]
	delete(n.failed, h)
	return f.err
}
