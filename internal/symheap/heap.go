package symheap

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Sizes of chunks, in bytes per member. A mapper takes a chunk's memory from the machine at once, so that a lack of
// it is an error and not a signal later; therefore the first chunk is small, and none is larger than what was asked
// for or what the heap has already.
const (
	FirstChunk  = 256 << 10
	largestStep = 64 << 20
	pageBytes   = 4096
)

// Heap is the symmetric heap of one team, as one member holds it.
type Heap struct {
	engine *proto.Engine
	ranks  []int // the members' ranks in the world
	me     int   // this member
	x      proto.Exchanger
	chunks []*chunk

	reserved, used atomic.Int64 // for Usage
}

type chunk struct {
	xp    *proto.Exposure
	arena *arena
}

// Block is memory at the same place on every member.
type Block struct {
	heap  *Heap
	chunk *chunk
	off   int
	bytes int
}

// New returns an empty heap for the members ranks, of which this rank is number me. x is the members'
// all-gather. New is local; the first Alloc makes the first chunk.
func New(e *proto.Engine, x proto.Exchanger, ranks []int, me int) *Heap {
	return &Heap{engine: e, ranks: ranks, me: me, x: x}
}

// SetExchanger replaces the members' all-gather: the world's heap begins with the launcher's and goes on with
// the team's own.
func (h *Heap) SetExchanger(x proto.Exchanger) { h.x = x }

// Alloc returns a zeroed block of bytes. It is collective over the members. Where a block fits, it waits for
// nobody; the caller puts a barrier between Alloc and the first remote access, so that no member zeroes what
// another has written. The first blocks of a chunk need none: their memory is zero since it was made.
func (h *Heap) Alloc(ctx context.Context, bytes int) (*Block, error) {
	for _, c := range h.chunks {
		if off, clean, ok := c.arena.alloc(bytes); ok {
			b := &Block{heap: h, chunk: c, off: off, bytes: bytes}
			if !clean {
				clear(b.Local().Data())
			}
			h.account()
			return b, nil
		}
	}
	least := (roundUp(bytes) + pageBytes - 1) / pageBytes * pageBytes
	size := max(least, h.step())
	xp, err := h.engine.Allocate(ctx, h.x, h.ranks, size)
	if least < size && len(h.chunks) > 0 && (err != nil || xp.Bare()) {
		// The doubled chunk does not fit this machine, or not its NIC; what was asked for may. A heap's first chunk stays what it is, so that it always takes two
		// exchanges: those of a team that is split take place in the old one, together with all who are not of the new.
		if err == nil {
			_ = xp.Free() // its error would be this member's alone, and the others go on
		}
		size = least
		xp, err = h.engine.Allocate(ctx, h.x, h.ranks, size)
	}
	if err != nil {
		return nil, err
	}
	c := &chunk{xp: xp, arena: newArena(size)}
	h.chunks = append(h.chunks, c)
	off, _, _ := c.arena.alloc(bytes)
	h.account()
	return &Block{heap: h, chunk: c, off: off, bytes: bytes}, nil
}

// step is the size of the next chunk that no block asks for more than: what the heap has, so that it doubles. Chunks that were given back
// do not count, or a program that makes and frees one window after the other would take more each time.
func (h *Heap) step() int {
	reserved, _ := h.Usage()
	return min(max(FirstChunk, reserved), largestStep)
}

// Free gives the block back. It is collective; the caller has made sure that nobody uses it any more.
func (b *Block) Free() error { return b.FreeWithin(context.Background()) }

// FreeWithin is Free that ends with ctx, too, as proto.Exposure.FreeWithin does.
func (b *Block) FreeWithin(ctx context.Context) error {
	if err := b.chunk.arena.free(b.off); err != nil {
		return err
	}
	h := b.heap
	defer h.account()
	if i := slices.Index(h.chunks, b.chunk); i > 0 && b.chunk.arena.empty() {
		h.chunks = slices.Delete(h.chunks, i, i+1)
		return b.chunk.xp.FreeWithin(ctx)
	}
	return nil
}

// Close gives all memory back, collectively.
func (h *Heap) Close() error {
	var errs []error
	for _, c := range h.chunks {
		errs = append(errs, c.xp.Free())
	}
	h.chunks = nil
	h.account()
	return errors.Join(errs...)
}

// Usage returns the bytes per member that the heap has taken from the machine, and those in blocks. Any goroutine may ask.
func (h *Heap) Usage() (reserved, used int) { return int(h.reserved.Load()), int(h.used.Load()) }

// account notes what Usage says.
func (h *Heap) account() {
	reserved, used := 0, 0
	for _, c := range h.chunks {
		reserved += c.arena.bytes
		used += c.arena.inUse
	}
	h.reserved.Store(int64(reserved))
	h.used.Store(int64(used))
}

// Bytes returns the block's size on each member.
func (b *Block) Bytes() int { return b.bytes }

// CPU reports whether all members map each other's part.
func (b *Block) CPU() bool { return b.chunk.xp.CPU }

// Local returns this member's part.
func (b *Block) Local() mem.Range { return b.chunk.xp.Local.Slice(b.off, b.bytes) }

// Remotes returns how this rank reaches every member's part, by member.
func (b *Block) Remotes() []proto.Remote {
	out := make([]proto.Remote, len(b.chunk.xp.Of))
	for m := range out {
		out[m] = b.chunk.xp.Of[m].At(b.off, b.bytes)
	}
	return out
}

// Slice returns the part of the block from off on, as a block that must not be freed.
func (b *Block) Slice(off, bytes int) *Block {
	_ = b.Local().Slice(off, bytes)
	return &Block{heap: b.heap, chunk: b.chunk, off: b.off + off, bytes: bytes}
}
