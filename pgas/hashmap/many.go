package hashmap

import (
	"context"
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// together is how many keys AddAll has under way at once.
const together = 1024

// AddAll adds vs[i] to the value of keys[i] for all i, as Add does. On return keys and vs may be reused; the sums are there after a Fence. Ending ctx
// ends the call; then, and after an error, some of the keys have been added to, and some may be there that have not. Merge is for what may need more
// room than there is.
func (m *Map[V]) AddAll(ctx context.Context, keys []uint64, vs []V) error {
	if len(keys) != len(vs) {
		return fmt.Errorf("add all: %w: %d keys and %d values", pgas.ErrRange, len(keys), len(vs))
	}
	for len(keys) > 0 {
		if err := ended(ctx); err != nil {
			return err
		}
		n := min(together, len(keys))
		b := newBatch(m, keys[:n])
		if err := b.take(ctx); err != nil {
			return err
		}
		err := window.ScatterAccumulate(m.values, func(i int) (int, int) { return m.place(keys[i], b.tries[i]) }, vs[:n], pgsync.Sum)
		if err != nil {
			return err
		}
		keys, vs = keys[n:], vs[n:]
	}
	return nil
}

// ended returns the cause of a context that has ended, where mapped memory has nothing to wait for and nothing else would find out. nil is one that never does.
func ended(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return context.Cause(ctx)
}

// batch is keys that are looking for their places together.
type batch[V window.Word] struct {
	m       *Map[V]
	keys    []uint64
	tries   []int    // of each key before its place
	was     []uint64 // what the place held that a key has tried last
	handles []window.Handle
}

func newBatch[V window.Word](m *Map[V], keys []uint64) batch[V] {
	n := len(keys)
	return batch[V]{m: m, keys: keys, tries: make([]int, n), was: make([]uint64, n), handles: make([]window.Handle, 0, n)}
}

// take finds the places of all: in each round those that have none yet try their next one.
func (b *batch[V]) take(ctx context.Context) error {
	without := make([]int, len(b.keys))
	for i := range without {
		without[i] = i
	}
	for len(without) > 0 {
		if err := b.round(ctx, without); err != nil {
			return err
		}
		next := without[:0]
		for _, i := range without {
			if b.was[i] == free || b.was[i] == word(b.keys[i]) {
				continue
			}
			if b.tries[i]++; b.tries[i] == b.m.tries(b.keys[i]) {
				return b.m.full(b.keys[i])
			}
			next = append(next, i)
		}
		without = next
	}
	return nil
}

// round tries a place for each of some keys.
func (b *batch[V]) round(ctx context.Context, of []int) error {
	b.handles = b.handles[:0]
	var first error
	for _, i := range of {
		member, disp := b.m.place(b.keys[i], b.tries[i])
		h, err := window.CompareSwapNB(b.m.keys, member, disp, free, word(b.keys[i]), &b.was[i])
		if err != nil {
			first = err
			break
		}
		b.handles = append(b.handles, h)
	}
	for _, h := range b.handles { // all of them: was belongs to the library until they are done
		if err := h.Wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}
