package hashmap

import (
	"context"

	"gopgas/window"
)

// deal hands out the keys of a Merge with their values, some in a round, each time from all over the slices. In order they may have neighbouring homes, as what
// another map's Mine yields has: the first ones would all crowd at one end of a table that is to grow yet, and each look at the places of all before it.
type deal[V window.Word] struct {
	keys []uint64
	vs   []V
	left int // keys that have not been handed out
	at   int // the next one's index
	step int // from each to the one behind it, around the end: the golden section, whose multiples leave no gap much larger than others (Knuth 6.4, theorem S)
}

func newDeal[V window.Word](keys []uint64, vs []V) deal[V] {
	n := len(keys)
	step := max(1, int(float64(n)*0.618033988749895))
	for common(step, n) > 1 { // else not all would have their turn
		step++
	}
	return deal[V]{keys: keys, vs: vs, left: n, step: step}
}

// common returns the greatest common divisor.
func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// add adds the next n keys to m; all of them, where they are, as they come.
func (d *deal[V]) add(ctx context.Context, m *Map[V], n int) error {
	if n == len(d.keys) {
		d.left = 0
		return m.AddAll(ctx, d.keys, d.vs)
	}
	keys, vs := make([]uint64, min(n, together)), make([]V, min(n, together))
	for n > 0 {
		k := min(n, together)
		d.take(keys[:k], vs[:k])
		if err := m.AddAll(ctx, keys[:k], vs[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// take fills keys and vs with the next ones.
func (d *deal[V]) take(keys []uint64, vs []V) {
	for i := range keys {
		keys[i], vs[i] = d.keys[d.at], d.vs[d.at]
		if d.at += d.step; d.at >= len(d.keys) {
			d.at -= len(d.keys)
		}
	}
	d.left -= len(keys)
}
