package pgsync

import (
	"context"

	"gopgas/internal/sched"
)

// Barrier returns when all members have called it. What a member stored into memory of its own before is there for the
// gets and views of the others after it; puts into others' memory need a Window.Fence or Flush. A barrier whose context
// ended is continued by the next call.
//
// It is a dissemination barrier (Hensgen, Finkel, Manber 1988): in round k a member tells the one 2^k after it
// and hears from the one 2^k before it; ceil(log2 n) rounds, no root, no atomics.
func (t *Team) Barrier(ctx context.Context) error {
	if err := t.enter(ctx, "barrier"); err != nil {
		return err
	}
	defer t.leave()
	return t.barrier(ctx, "barrier")
}

func (t *Team) barrier(ctx context.Context, op string) error {
	if !t.pending {
		t.gen++
	}
	t.pending = true
	n := len(t.ranks)
	for k, dist := 0, 1; dist < n; k, dist = k+1, 2*dist {
		to := t.me + dist
		if to >= n {
			to -= n
		}
		if err := t.e.Store64(&t.peers[to], k*flagStride, t.gen); err != nil {
			return err
		}
		flag := t.local.Word64(k * flagStride)
		if flag.Load() >= t.gen {
			continue
		}
		from := t.me - dist
		if from < 0 {
			from += n
		}
		sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: t.ranks[from]}, t)
		for flag.Load() < t.gen {
			if err := sp.Step(); err != nil {
				sp.End()
				return t.waitError(op, t.ranks[from], err)
			}
		}
		sp.End()
		t.e.NoteWait(&sp, &t.peers[to])
	}
	t.pending = false
	return nil
}
