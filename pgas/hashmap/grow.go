package hashmap

import (
	"context"
	"errors"
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// Grow gives the map room for capacity different keys or more, or for those that it has, if they are more: a capacity of 0 makes it as small as it can be.
// All places of deleted keys are free again. Each key is brought to its new owner, so it takes as long as adding all of them, and while it runs there are
// both the old memory and the new. Collective; the capacity is the same everywhere. It is a Fence before and after, and comes after all other calls of
// the map on this rank that have begun, as Free does. If the memory cannot be had, or a key not moved, the map is as it was.
func (m *Map[V]) Grow(ctx context.Context, capacity int) error {
	if err := agreed(ctx, m.Team(), capacity); err != nil {
		return fmt.Errorf("grow map: %w", err)
	}
	n, err := m.Len(ctx)
	if err != nil {
		return err
	}
	return m.grow(ctx, max(capacity, n))
}

// grow moves all keys to windows for capacity ones. All earlier calls are done.
func (m *Map[V]) grow(ctx context.Context, capacity int) error {
	const op = "grow"
	next, err := allocate[V](ctx, m.Team(), capacity)
	if err != nil {
		return fmt.Errorf("grow map: %w", err)
	}
	// A member whose moves have failed tells the others, or they would go on with what is not whole.
	failed := m.moveTo(ctx, next)
	bad := []int{0}
	if failed != nil {
		bad[0] = 1
	}
	if err := pgsync.AllReduce(ctx, m.Team(), bad, bad, pgsync.Sum); err != nil {
		return errors.Join(failed, m.Team().AbandonMade(ctx, op, err, next.Free))
	}
	if bad[0] > 0 {
		return errors.Join(fmt.Errorf("grow map: %d members could not move their keys", bad[0]), failed, next.end(ctx))
	}
	if err := next.Fence(ctx); err != nil {
		return m.Team().AbandonMade(ctx, op, err, next.Free)
	}
	old := *m
	*m = *next
	return old.end(ctx)
}

// end is Free as the last part of a growth: nobody can call it again, so where ctx ends before the second window's turn the others are told.
func (m *Map[V]) end(ctx context.Context) error {
	const op = "grow"
	err := m.values.Free(ctx)
	if cause := ended(ctx); cause != nil && errors.Is(err, cause) {
		return m.Team().Abandon(op, err)
	}
	return errors.Join(err, m.Team().AbandonEnd(ctx, op, m.keys.Free(ctx)))
}

// left tells the other members where this one leaves op because ctx has ended; other errors of its parts come to all.
func (m *Map[V]) left(ctx context.Context, op string, err error) error {
	if cause := ended(ctx); cause != nil && errors.Is(err, cause) {
		return m.Team().Abandon(op, err)
	}
	return err
}

// moveTo brings this member's keys and values into another map. They are in nobody else's part, so each value is written once.
func (m *Map[V]) moveTo(ctx context.Context, next *Map[V]) error {
	keys, values := make([]uint64, 0, together), make([]V, 0, together)
	send := func() error {
		if err := ended(ctx); err != nil {
			return err
		}
		b := newBatch(next, keys)
		if err := b.take(ctx); err != nil {
			return err
		}
		for i := range keys {
			member, disp := next.place(keys[i], b.tries[i])
			if err := next.values.Put(member, disp, values[i:i+1]); err != nil { // as it is: a sum with 0 would lose the sign of -0
				return err
			}
		}
		keys, values = keys[:0], values[:0]
		return nil
	}
	for k, v := range m.Mine() {
		keys, values = append(keys, k), append(values, v)
		if len(keys) == together {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// Merge adds vs[i] to the value of keys[i] for all i, as AddAll does, for all members together, who may bring as many as they like; the map grows until
// all have room. Collective, and as Grow is: no other call of the map runs at the same time on this rank. It is a Fence before and after. It goes in rounds in which
// no more keys are added than there is room for, were they all new, so it costs a scan of the member's own keys and an AllReduce for each. Which keys a round
// adds does not go by their order: that of another map's Mine costs no more than any.
func (m *Map[V]) Merge(ctx context.Context, keys []uint64, vs []V) error {
	lengths := error(nil)
	if len(keys) != len(vs) {
		lengths = fmt.Errorf("merge: %w: %d keys and %d values", pgas.ErrRange, len(keys), len(vs))
		keys, vs = nil, nil
	}
	const op = "merge"
	rest := newDeal(keys, vs)
	for {
		if err := m.Fence(ctx); err != nil {
			return m.Team().Abandon(op, err)
		}
		now := make([]int, 5) // members that have refused, keys left, and what count says
		if lengths != nil {
			now[0] = 1
		}
		now[1] = rest.left
		mine := m.count()
		now[2], now[3], now[4] = mine.live, mine.taken, mine.spares
		if err := pgsync.AllReduce(ctx, m.Team(), now, now, pgsync.Sum); err != nil {
			return err
		}
		if now[0] > 0 {
			if lengths != nil {
				return lengths
			}
			return fmt.Errorf("merge: %w: keys and values of %d other members are not as many", pgas.ErrRange, now[0])
		}
		if now[1] == 0 {
			return nil
		}
		all := counts{live: now[2], taken: now[3], spares: now[4]}
		if capacity, grow := m.enough(now[1], all); grow {
			if err := m.grow(ctx, capacity); err != nil {
				return m.left(ctx, op, err)
			}
			all = counts{live: all.live, taken: all.live}
		}
		if err := rest.add(ctx, m, min(rest.left, m.share(now[1], all))); err != nil {
			return m.Team().Abandon(op, err)
		}
	}
}

// counts is how many keys there are, how many places of all are not free, and how many spare ones.
type counts struct{ live, taken, spares int }

// count says so of this member's part.
func (m *Map[V]) count() (c counts) {
	for disp, w := range m.keys.Local() {
		if _, ok := m.keyOf(w, disp); ok {
			c.live++
		}
		if w != free && disp >= m.per {
			c.spares++
		} else if w != free {
			c.taken++
		}
	}
	return c
}

// enough decides, before left more keys are added, whether there must be more room, and how much: a place for both lone keys, and half the capacity, or all
// that they can need. What one growth makes is enough for the next round: twice what lives, and what is asked for.
func (t table) enough(left int, c counts) (capacity int, grow bool) {
	need := min(left, max(t.capacity()/2, t.p))
	if t.capacity()-c.taken >= need && c.spares+2 <= t.p*spare {
		return t.capacity(), false
	}
	return max(t.capacity(), 2*c.live+need), true
}

// share is how many keys each member may add in a round, where enough says that there is room.
func (t table) share(left int, c counts) int {
	room := t.capacity() - c.taken
	if left <= room {
		return left
	}
	return room / t.p
}
