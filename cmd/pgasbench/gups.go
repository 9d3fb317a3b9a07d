package main

import (
	"context"
	"fmt"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// gupsBatch is how many updates there are between two flushes.
const gupsBatch = 64

// gupsStream is a rank's sequence of random values (xorshift); the low bits of each name the word to update.
type gupsStream uint64

func newGUPSStream(rank int) gupsStream { return gupsStream(0x9e3779b97f4a7c15 * uint64(rank+1)) }

func (s gupsStream) next() gupsStream {
	s ^= s << 13
	s ^= s >> 7
	s ^= s << 17
	return s
}

// gupsTable is a table of words over all ranks, a power of two on each; the words of a rank above the last power of
// two of ranks are not used.
type gupsTable struct {
	win   *window.Window[uint64]
	atoms []window.Atomic[uint64] // by rank
	mask  uint64                  // of the word's number in the whole table
	part  uint64                  // of the word's number within a rank
	shift uint                    // bits of that
	ranks int                     // with a part that is used
}

func (t *gupsTable) place(v uint64) (rank, disp int) {
	g := v & t.mask
	return int(g >> (t.shift % 64)), int(g & t.part)
}

// gupsLoop does n updates of the stream and flushes.
type gupsLoop func(t *gupsTable, s *gupsStream, n int) error

func gupsRows() []row {
	const title = "GUPS: xor of random words, all ranks, flush every 64"
	make := func(api string, mapped bool, loop gupsLoop) row {
		return row{
			name: "gups", title: title, api: api, unit: unitMillion, mapped: mapped,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) { return gups(ctx, b, r, loop) },
		}
	}
	return []row{
		make("Atomic.FetchXor", true, gupsView),
		make("window.FetchXor", false, gupsFetch),
		make("window.Accumulate(Xor)", false, gupsAccumulate),
		make("window.ScatterAccumulate(Xor) of 64", false, gupsScatter),
	}
}

func gups(ctx context.Context, b *bench, r *row, loop gupsLoop) (int, []float64, error) {
	t, err := newGUPSTable(ctx, b)
	if err != nil {
		return 0, nil, err
	}
	updates := b.set.updates
	if b.w.Transport(b.peer) != "shm" {
		updates = max(updates/50, gupsBatch) // a NIC's atomics take microseconds
	}
	stream := newGUPSStream(b.w.Rank())
	n, values, err := b.together(ctx, r.unit, updates*b.w.Size(), func() error { return loop(t, &stream, updates) })
	if err != nil {
		return 0, nil, err
	}
	if err := b.agree(ctx, t.verify(b.w.Rank(), b.w.Size(), updates*(b.set.reps+1))); err != nil {
		return 0, nil, err
	}
	return n, values, t.win.Free(ctx)
}

func newGUPSTable(ctx context.Context, b *bench) (*gupsTable, error) {
	t := &gupsTable{ranks: 1}
	for t.ranks*2 <= b.w.Size() {
		t.ranks *= 2
	}
	each := b.set.bytes / 8 / t.ranks
	for 1<<(t.shift+1) <= each {
		t.shift++
	}
	t.mask, t.part = uint64(t.ranks)<<t.shift-1, 1<<t.shift-1
	var err error
	if t.win, err = window.Allocate[uint64](ctx, b.w.Team(), 1<<t.shift); err != nil {
		return nil, err
	}
	clear(t.win.Local())
	if err := t.win.Fence(ctx); err != nil {
		return nil, err
	}
	touched := uint64(0)
	for r := range t.ranks {
		v, ok := t.win.View(r)
		t.atoms = append(t.atoms, window.Atomics(v))
		for i := 0; ok && i < v.Len(); i += 512 {
			touched |= v.Load(i) // this rank's own mapping of the page
		}
	}
	if touched != 0 {
		return nil, fmt.Errorf("a new window is not zero")
	}
	return t, t.win.Fence(ctx)
}

// verify undoes all updates of all ranks in this rank's part, one by one, and wants what the table began with.
func (t *gupsTable) verify(rank, size, updates int) error {
	if rank >= t.ranks {
		return nil
	}
	local := t.win.Local()
	for from := range size {
		s := newGUPSStream(from)
		for range updates {
			s = s.next()
			v := uint64(s)
			if owner, disp := t.place(v); owner == rank {
				local[disp] ^= v
			}
		}
	}
	wrong := 0
	for _, v := range local {
		if v != 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("wrong result at the target: %d of %d words, after %d updates by each rank", wrong, len(local), updates)
	}
	return nil
}

// The loops keep the stream's state in a variable of their own, as the peers' loops in C do: a state in memory is stored before each
// update and loaded after it, and such a load waits until the locked instruction between them is done, so that no two updates overlap.

func gupsView(t *gupsTable, stream *gupsStream, n int) error {
	s, atoms, mask, part, shift := *stream, t.atoms, t.mask, t.part, t.shift
	for i := range n {
		s = s.next()
		word := uint64(s) & mask
		//gcassert:inline
		atoms[word>>(shift%64)].FetchXor(int(word&part), uint64(s))
		if uint(i)%gupsBatch == gupsBatch-1 {
			if err := t.win.FlushAll(); err != nil {
				return err
			}
		}
	}
	*stream = s
	return t.win.FlushAll()
}

func gupsFetch(t *gupsTable, stream *gupsStream, n int) error {
	s := *stream
	for i := range n {
		s = s.next()
		v := uint64(s)
		rank, disp := t.place(v)
		if _, err := window.FetchXor(t.win, rank, disp, v); err != nil {
			return err
		}
		if i%gupsBatch == gupsBatch-1 {
			if err := t.win.FlushAll(); err != nil {
				return err
			}
		}
	}
	*stream = s
	return t.win.FlushAll()
}

func gupsAccumulate(t *gupsTable, stream *gupsStream, n int) error {
	s := *stream
	src := make([]uint64, gupsBatch)
	for i := range n {
		k := i % gupsBatch
		s = s.next()
		src[k] = uint64(s)
		rank, disp := t.place(uint64(s))
		if err := window.Accumulate(t.win, rank, disp, src[k:k+1], pgsync.Xor); err != nil {
			return err
		}
		if k == gupsBatch-1 {
			if err := t.win.FlushAll(); err != nil {
				return err
			}
		}
	}
	*stream = s
	return t.win.FlushAll()
}

func gupsScatter(t *gupsTable, stream *gupsStream, n int) error {
	s := *stream
	src := make([]uint64, gupsBatch)
	place := func(i int) (rank, disp int) { return t.place(src[i]) }
	for n > 0 {
		src = src[:min(n, gupsBatch)]
		for i := range src {
			s = s.next()
			src[i] = uint64(s)
		}
		if err := window.ScatterAccumulate(t.win, place, src, pgsync.Xor); err != nil {
			return err
		}
		if err := t.win.FlushAll(); err != nil {
			return err
		}
		n -= len(src)
	}
	*stream = s
	return nil
}
