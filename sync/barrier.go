package pgsync

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// Barrier returns when all members have called it. What a member stored into memory of its own before is there for the
// gets and views of the others after it; puts into others' memory need a Window.Fence or Flush. A barrier whose context
// ended is continued by the next call.
//
// It is a dissemination barrier (Hensgen, Finkel, Manber 1988): in round k a member tells the one 2^k after it
// and hears from the one 2^k before it; ceil(log2 n) rounds, no root, no atomics.
func (t *Team) Barrier(ctx context.Context) error {
	return t.meet(ctx, "barrier", 0)
}

// meet is a barrier that all members make for the same purpose.
func (t *Team) meet(ctx context.Context, op string, purpose call) error {
	if err := t.begin(ctx, op); err != nil {
		return err
	}
	defer t.leave()
	err := t.barrier(ctx, op, uint64(purpose))
	if errors.Is(err, ErrMismatch) {
		t.broken = err
	}
	return err
}

// A flag holds the number of the barrier, and in its low bits the sum over all calls up to it, by which two members
// see that they did not make the same ones.
const (
	sumBits  = 16
	sumMul   = 0x9e3779b97f4a7c15
	wrongSum = 0 // no member's sum: whoever sends it has found that the members disagree
)

func (t *Team) barrier(ctx context.Context, op string, purpose uint64) error {
	return t.disseminate(ctx, op, purpose, nil)
}

// disseminate is the barrier. In each round, when this member has heard from the one dist before it, heard is called:
// what that member wrote before its round can be read now. heard may be nil. A member that finds that it does not make
// the same calls as another goes on through all rounds, so that the rest learn it too, from wrongSum.
func (t *Team) disseminate(ctx context.Context, op string, purpose uint64, heard func(from, dist int) error) error {
	if !t.pending {
		t.gen++
		t.sum = max(((t.sum^purpose)*sumMul+sumMul)>>(64-sumBits), wrongSum+1)
	}
	t.pending = true
	n := len(t.ranks)
	var wrong error
	for k, dist := 0, 1; dist < n; k, dist = k+1, 2*dist {
		to := t.me + dist
		if to >= n {
			to -= n
		}
		sum := t.sum
		if wrong != nil {
			sum = wrongSum
		}
		if err := t.e.Store64(&t.peers[to], k*flagStride, t.gen<<sumBits|sum); err != nil {
			return first(wrong, err)
		}
		from := t.me - dist
		if from < 0 {
			from += n
		}
		have, err := t.hear(ctx, op, k, from, to)
		if err != nil {
			return first(wrong, err)
		}
		if err := t.compare(op, from, have); err != nil && wrong == nil {
			wrong = err
		}
		if heard == nil || wrong != nil {
			continue
		}
		if err := heard(from, dist); errors.Is(err, ErrMismatch) {
			wrong = err
		} else if err != nil {
			return err
		}
	}
	t.pending = false
	return wrong
}

// first returns why a barrier ends that err stops: where the members disagree already, err is likely to follow from that.
func first(wrong, err error) error {
	if wrong != nil {
		return wrong
	}
	return err
}

// hear waits for the flag of round k and returns it.
func (t *Team) hear(ctx context.Context, op string, k, from, to int) (uint64, error) {
	flag := t.local.Word64(k * flagStride)
	if have := flag.Load(); have>>sumBits >= t.gen {
		t.e.Sched.Seen()
		return have, nil
	}
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: t.ranks[from]}, t)
	for flag.Load()>>sumBits < t.gen {
		if err := sp.Step(); err != nil {
			sp.End()
			return 0, t.waitError(op, t.ranks[from], err)
		}
	}
	sp.End()
	t.e.NoteWait(&sp, &t.peers[to])
	return flag.Load(), nil
}

// compare looks whether the member behind a flag has made the same calls. A flag that is ahead is compared when this rank
// gets there: sums that once differ go on to differ.
func (t *Team) compare(op string, member int, flag uint64) error {
	if flag>>sumBits != t.gen || flag&(1<<sumBits-1) == t.sum {
		return nil
	}
	return transport.NewOpError(op, t.ranks[member], fmt.Errorf("%w: rank %d does not make the same collective calls as this rank, "+
		"which is in a %s now", ErrMismatch, t.ranks[member], op))
}
