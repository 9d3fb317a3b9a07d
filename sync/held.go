package pgsync

import (
	"context"
	"errors"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// held is a block of the team's heap that belongs to an object such as a lock, until that is freed or this rank leaves the world: then
// the block's memory is no longer there.
type held struct {
	t      *Team
	block  *symheap.Block // nil: given back, or left
	shut   func()         // ends all use that this rank makes of the memory
	forget func()         // the end of the world is no concern any more
	gone   atomic.Bool    // shut, and the memory is about to be given back: for other goroutines, which may wait on it still
}

// hold allocates bytes on every member, which nobody can touch before all have zeroed them. Collective. The caller sets shut. Where ctx ends while it waits for the
// others, the next call for as many bytes goes on with what was allocated: the others may have it already.
func (h *held) hold(ctx context.Context, t *Team, bytes int) (err error) {
	const op = "allocate"
	purpose := callOf(op, inBytes, 0, bytes)
	block, left := t.leftFor(op, purpose).(*symheap.Block)
	if !left {
		if err = t.endLeft(ctx, op); err != nil { // which may give memory back that the others have for this
			return err
		}
		if block, err = t.heap.Alloc(ctx, bytes); err != nil {
			return err
		}
	}
	if err := t.meetThen(ctx, op, purpose, behind{whose: block}); err != nil {
		if len(t.ranks) == 1 && t.leftFor(op, purpose) == nil { // nobody has it, and no call goes on with it
			_ = block.Free() // err is why
		}
		return err
	}
	h.t, h.block, h.forget = t, block, t.e.AtEnd(h.leave)
	return nil
}

// leave ends all use of the memory.
func (h *held) leave() {
	h.shut()
	h.gone.Store(true)
	h.block = nil
}

// free gives the block back when all members are done with it and nothing is on its way to it, and likewise those of what belongs to the object. Collective. Where ctx
// ends first that is done when the next collective call has met the others, and this rank's use is over already.
func (h *held) free(ctx context.Context, parts ...*held) error {
	if h.block == nil {
		return transport.NewOpError("free", -1, transport.ErrClosed)
	}
	var blocks []*symheap.Block
	all := append([]*held{h}, parts...)
	for _, p := range all {
		blocks = append(blocks, p.block)
	}
	end := func() {
		for _, p := range all {
			if p.block != nil {
				p.leave()
				p.forget()
			}
		}
		h.t.e.Sched.Ring() // other goroutines may wait on it
	}
	var given error
	failed, err := h.t.settle(ctx, blocks[0].Bytes(), behind{h, func(ctx context.Context) {
		end()
		for _, b := range blocks {
			given = errors.Join(given, b.FreeWithin(ctx))
		}
	}})
	end()
	switch {
	case failed != nil:
		return errors.Join(failed, err, given)
	case err != nil:
		return err
	}
	return given
}

// settle waits until nothing of this rank is on its way and all members are about to free the same. A transfer that failed is over, too: the others wait for this member
// all the same, and it is told beside.
func (t *Team) settle(ctx context.Context, bytes int, b behind) (failed, err error) {
	for m := range t.peers {
		if err := t.e.Flush(&t.peers[m]); !proto.Flushed(ctx, err) {
			return failed, err
		} else if err != nil && failed == nil {
			failed = err
		}
	}
	return failed, t.meetThen(ctx, "free", callOf("free", inBytes, 0, bytes), b)
}

// keepsake is a copy of what r holds now, for whom looks at its own words after the memory is gone.
func keepsake(r mem.Range) mem.Range {
	words := make([]uint64, (r.Bytes+7)/8)
	for i := range words {
		words[i] = r.Word64(8 * i).Load()
	}
	return mem.Of(words)
}
