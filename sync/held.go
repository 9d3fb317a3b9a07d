package pgsync

import (
	"context"

	"gopgas/internal/mem"
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
}

// hold allocates bytes on every member, which nobody can touch before all have zeroed them. Collective. The caller sets shut.
func (h *held) hold(ctx context.Context, t *Team, bytes int) error {
	block, err := t.heap.Alloc(ctx, bytes)
	if err != nil {
		return err
	}
	if err := t.meet(ctx, "allocate", callOf("allocate", inBytes, 0, bytes)); err != nil {
		return err
	}
	h.t, h.block, h.forget = t, block, t.e.AtEnd(h.leave)
	return nil
}

// leave ends all use of the memory.
func (h *held) leave() {
	h.shut()
	h.block = nil
}

// free gives the block back when all members are done with it and nothing is on its way to it. Collective.
func (h *held) free(ctx context.Context) error {
	if h.block == nil {
		return transport.NewOpError("free", -1, transport.ErrClosed)
	}
	block, t := h.block, h.t
	err := t.settle(ctx, block.Bytes())
	h.leave()
	h.forget()
	if err != nil {
		return err
	}
	return block.FreeWithin(ctx)
}

// settle waits until nothing of this rank is on its way and all members are about to free the same.
func (t *Team) settle(ctx context.Context, bytes int) error {
	for m := range t.peers {
		if err := t.e.Flush(&t.peers[m]); err != nil {
			return err
		}
	}
	return t.meet(ctx, "free", callOf("free", inBytes, 0, bytes))
}

// keepsake is a copy of what r holds now, for whom looks at its own words after the memory is gone.
func keepsake(r mem.Range) mem.Range {
	words := make([]uint64, (r.Bytes+7)/8)
	for i := range words {
		words[i] = r.Word64(8 * i).Load()
	}
	return mem.Of(words)
}
