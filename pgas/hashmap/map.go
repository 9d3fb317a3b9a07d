package hashmap

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// ErrFull: there is no free place for another key; Grow makes some.
var ErrFull = errors.New("the map is full")

// mostCapacity keeps the numbers of places from overflowing.
const mostCapacity = 1 << 40

// Map is a map from words to numbers, spread over a team. Any goroutine of any member may call any method at any time, but for those that are
// collective.
type Map[V window.Word] struct {
	table
	keys   *window.Window[uint64]
	values *window.Window[V]
}

// New returns an empty map with room for capacity different keys or more. Collective over t; the capacity is the same everywhere.
func New[V window.Word](ctx context.Context, t *pgas.Team, capacity int) (*Map[V], error) {
	if err := agreed(ctx, t, capacity); err != nil {
		return nil, fmt.Errorf("new map: %w", err)
	}
	return allocate[V](ctx, t, capacity)
}

// agreed makes sure that all members name the same capacity, one that can be.
func agreed(ctx context.Context, t *pgas.Team, capacity int) error {
	all := make([]int, t.Size())
	if err := pgsync.AllGather(ctx, t, all, []int{capacity}); err != nil {
		return err
	}
	for m, c := range all {
		if c != capacity {
			return fmt.Errorf("%w: room for %d keys on this rank, for %d on rank %d", pgsync.ErrMismatch, capacity, c, t.WorldRank(m))
		}
	}
	if capacity < 0 || capacity > mostCapacity {
		return fmt.Errorf("%w: room for %d keys, needed from 0 to %d", pgas.ErrRange, capacity, mostCapacity)
	}
	return nil
}

func allocate[V window.Word](ctx context.Context, t *pgas.Team, capacity int) (*Map[V], error) {
	m := &Map[V]{table: newTable(capacity, t.Size())}
	var err error
	if m.keys, err = window.Allocate[uint64](ctx, t, m.part()); err != nil {
		return nil, err
	}
	if m.values, err = window.Allocate[V](ctx, t, m.part()); err != nil {
		return nil, errors.Join(err, m.keys.Free(ctx))
	}
	return m, nil
}

// Free gives the map's memory back. Collective. If ctx ends before the others have come it is called again, as Free of a window is.
func (m *Map[V]) Free(ctx context.Context) error {
	var failed error
	for target := range m.Team().Size() { // or the values, with something under way, would be left before they have met the others, and the keys meet them first
		err := m.values.FlushContext(ctx, target)
		if cause := ended(ctx); cause != nil && errors.Is(err, cause) {
			return errors.Join(failed, err)
		}
		if failed == nil && !errors.Is(err, pgas.ErrClosed) {
			failed = err
		}
	}
	err := m.values.Free(ctx)
	if errors.Is(err, pgas.ErrClosed) { // by an earlier call, whose context ended before the turn of the keys
		err = nil
	}
	last := m.keys.Free(ctx)
	if cause := ended(ctx); last == nil && cause != nil && errors.Is(err, cause) { // the keys have met the others behind the values
		err = nil
	}
	return errors.Join(failed, err, last)
}

// Fence returns when everything that any member has done to the map before is there for all. Collective.
func (m *Map[V]) Fence(ctx context.Context) error { return m.values.Fence(ctx) }

// Team returns the map's team.
func (m *Map[V]) Team() *pgas.Team { return m.values.Team() }

// take returns the place of a key, which is given a free one if it has none.
func (m *Map[V]) take(key uint64) (member, disp int, err error) {
	for i := range m.tries(key) {
		member, disp = m.place(key, i)
		was, err := window.CompareSwap(m.keys, member, disp, free, word(key))
		if err != nil || was == free || was == word(key) {
			return member, disp, err
		}
	}
	return 0, 0, m.full(key)
}

func (m *Map[V]) full(key uint64) error {
	return fmt.Errorf("key %d: %w: all %d places that it may have are taken; grow the map", key, ErrFull, m.tries(key))
}

// Add adds v to the value of a key, which is 0 if the key is new, and returns what it was. It is done at the owner on return.
func (m *Map[V]) Add(key uint64, v V) (old V, err error) {
	member, disp, err := m.take(key)
	if err != nil {
		return old, err
	}
	return window.FetchAdd(m.values, member, disp, v)
}

// Swap gives a key the value v, and returns the one that it had: 0 if the key is new. It is done at the owner on return.
func (m *Map[V]) Swap(key uint64, v V) (old V, err error) {
	member, disp, err := m.take(key)
	if err != nil {
		return old, err
	}
	return window.Swap(m.values, member, disp, v)
}

// Load returns the value of a key; ok is false if there is no such key. One that another rank is bringing at the moment may be there with the
// value 0.
func (m *Map[V]) Load(key uint64) (v V, ok bool, err error) {
	member, disp, ok, err := m.find(key)
	if err != nil || !ok {
		return v, false, err
	}
	v, err = window.CompareSwap(m.values, member, disp, 0, 0) // changes no value; a sum with 0 would take the sign of -0
	return v, err == nil, err
}

// find returns the place of a key; ok is false if it has none.
func (m *Map[V]) find(key uint64) (member, disp int, ok bool, err error) {
	for i := range m.tries(key) {
		member, disp = m.place(key, i)
		was, err := window.FetchOr(m.keys, member, disp, 0)
		if err != nil || was == free || was == word(key) {
			return member, disp, err == nil && was != free, err
		}
	}
	return 0, 0, false, nil
}

// Delete removes a key with its value; ok is false if there was no such key, or another rank was quicker. It is done at the owner on return: who
// brings the key later finds it new. What other ranks do to its value at the same time is done before it goes. Its place is nobody's until the map grows.
func (m *Map[V]) Delete(key uint64) (ok bool, err error) {
	member, disp, ok, err := m.find(key)
	if err != nil || !ok {
		return false, err
	}
	was, err := window.CompareSwap(m.keys, member, disp, word(key), dead)
	return err == nil && was == word(key), err
}

// Mine iterates over the keys that lie on this rank, and their values, in no particular order. It reads this rank's memory as it is: between two
// fences, in which nobody calls anything but Mine. (A Load of another rank is an atomic operation here.)
func (m *Map[V]) Mine() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		values := m.values.Local()
		for disp, w := range m.keys.Local() {
			if disp >= len(values) { // Free has come as far as this
				return
			}
			if key, ok := m.keyOf(w, disp); ok && !yield(key, values[disp]) {
				return
			}
		}
	}
}

// Len returns how many keys there are, on all members. Collective; it is a Fence before.
func (m *Map[V]) Len(ctx context.Context) (int, error) {
	if err := m.Fence(ctx); err != nil {
		return 0, m.Team().Abandon("len", err)
	}
	n := make([]int, 1)
	for range m.Mine() {
		n[0]++
	}
	err := pgsync.AllReduce(ctx, m.Team(), n, n, pgsync.Sum)
	return n[0], err
}
