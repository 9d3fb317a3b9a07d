package pgsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// shaped are worlds in virtual time with nodes of all sorts.
func shaped() []pgastest.SimConfig {
	return []pgastest.SimConfig{
		{Ranks: 5, Seed: 1},
		{Ranks: 7, RanksPerNode: 3, Mapped: true, Seed: 2},
		{Ranks: 13, RanksPerNode: 4, Mapped: true, Seed: 3},
		{Ranks: 23, RanksPerNode: 5, Mapped: true, Seed: 4}, // five nodes
	}
}

// word is what a member has for another at place i.
func word(from, to, i int) uint64 { return uint64(from)<<32 | uint64(to)<<16 | uint64(i) }

func words(n int, f func(i int) uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// steps are the collectives that go in steps, whatever the size of the team, against what they must give.
func steps(ctx context.Context, t *pgsync.Team, k int, levels bool) error {
	n, me := t.Size(), t.Rank()
	for _, root := range slices.Compact([]int{0, n / 2, n - 1}) {
		c, err := t.Collective(ctx, "gather")
		if err != nil {
			return err
		}
		all := make([]uint64, n*k)
		mine := words(k, func(i int) uint64 { return word(me, root, i) })
		if err := c.End(c.GatherTo(ctx, 8, 0, k, root, mem.Of(mine).Data(), mem.Of(all).Data())); err != nil {
			return err
		}
		want := words(n*k, func(i int) uint64 { return word(i/k, root, i%k) })
		if me == root && !slices.Equal(all, want) {
			return fmt.Errorf("gather of %d to %d of %d: %x", k, root, n, all)
		}
	}
	if levels {
		return prefix(ctx, t, k) // an all-to-all in steps is of members that are all alike
	}
	c, err := t.Collective(ctx, "alltoall")
	if err != nil {
		return err
	}
	dst, src := make([]uint64, n*k), words(n*k, func(i int) uint64 { return word(me, i/k, i%k) })
	if err := c.End(c.Shuffle(ctx, 8, n*k, mem.Of(dst), mem.Of(src))); err != nil {
		return err
	}
	if !slices.Equal(dst, words(n*k, func(i int) uint64 { return word(i/k, me, i%k) })) {
		return fmt.Errorf("alltoall of %d among %d: %x", k, n, dst)
	}
	return prefix(ctx, t, k)
}

// prefix computes sums of what the members before have, and with them.
func prefix(ctx context.Context, t *pgsync.Team, k int) error {
	me := t.Rank()
	for _, inclusive := range []bool{true, false} {
		c, err := t.Collective(ctx, "scan")
		if err != nil {
			return err
		}
		if c.PrefixBytes() == 0 {
			return c.End(errors.New("the members of nodes are not in order"))
		}
		of := words(k, func(i int) uint64 { return word(me, 0, i) })
		err = c.End(c.Prefix(ctx, 8, 0, k, inclusive, mem.Of(of), mem.Of(of), func(into, from mem.Range) {
			a, b := mem.Slice[uint64](into), mem.Slice[uint64](from)
			for i := range a {
				a[i] += b[i]
			}
		}))
		if err != nil {
			return err
		}
		want := words(k, func(i int) uint64 {
			var sum uint64
			for m := range me {
				sum += word(m, 0, i)
			}
			if inclusive || me == 0 { // the first one's stays
				sum += word(me, 0, i)
			}
			return sum
		})
		if !slices.Equal(of, want) {
			return fmt.Errorf("prefix of %d at %d of %d, inclusive %v: %x", k, me, t.Size(), inclusive, of)
		}
	}
	return nil
}

// TestSteps: what goes in steps, which only large teams would choose.
func TestSteps(t *testing.T) {
	run := func(ctx context.Context, w *pgas.World, levels bool) error {
		for _, k := range []int{0, 1, 5} {
			if err := steps(ctx, w.Team(), k, levels); err != nil {
				return err
			}
		}
		return nil
	}
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		last := 0
		for r := range w.Size() {
			n, _ := w.Node(r)
			if n < last {
				return nil // what goes in steps takes the members of nodes in order
			}
			last = n
		}
		return run(ctx, w, last > 0)
	}, 1, 3, 8)
	for _, c := range shaped() {
		t.Run(fmt.Sprintf("simulated %d by %d", c.Ranks, c.RanksPerNode), func(t *testing.T) {
			simulated(t, c, func(ctx context.Context, w *pgas.World) error { return run(ctx, w, c.Mapped) })
		})
	}
}

// gathered compares an all-gather with what it must give.
func gathered(ctx context.Context, t *pgsync.Team, k int) error {
	all := make([]uint64, t.Size()*k)
	if err := pgsync.AllGather(ctx, t, all, words(k, func(i int) uint64 { return word(t.Rank(), 0, i) })); err != nil {
		return err
	}
	if !slices.Equal(all, words(len(all), func(i int) uint64 { return word(i/k, 0, i%k) })) {
		return fmt.Errorf("allgather of %d among %d on rank %d", k, t.Size(), t.Rank())
	}
	return nil
}

// TestReductionsOfNodes: reductions, and all-gathers, by every way there is where ranks share nodes, and of teams whose members lie across them.
func TestReductionsOfNodes(t *testing.T) {
	for _, c := range append(shaped(), pgastest.SimConfig{Ranks: 11, Seed: 5}, pgastest.SimConfig{Ranks: 18, RanksPerNode: 2, Mapped: true, Seed: 7},
		pgastest.SimConfig{Ranks: 8, RanksPerNode: 4, Mapped: true, Seed: 6}) {
		t.Run(fmt.Sprintf("simulated %d by %d", c.Ranks, c.RanksPerNode), func(t *testing.T) {
			simulated(t, c, func(ctx context.Context, w *pgas.World) error {
				across, err := w.Team().Split(ctx, 0, w.Rank()%4)
				if err != nil {
					return err
				}
				for _, n := range []int{0, 3, 300, 3001} {
					for _, team := range []*pgsync.Team{w.Team(), across} {
						if err := errors.Join(reduced[int64](ctx, team, n), reduced[float64](ctx, team, n), gathered(ctx, team, n)); err != nil {
							return err
						}
					}
				}
				return across.Free(ctx)
			})
		})
	}
}

// reduced compares sums with those in the order of ranks, bit by bit.
func reduced[T pgsync.Number](ctx context.Context, t *pgsync.Team, n int) error {
	want := inputs[T](0, n)
	for m := 1; m < t.Size(); m++ {
		for i, v := range inputs[T](m, n) {
			want[i] += v
		}
	}
	src := inputs[T](t.Rank(), n)
	dst, root := make([]T, n), t.Size()/2
	if err := pgsync.Reduce(ctx, t, dst, src, pgsync.Sum, root); err != nil {
		return err
	}
	if t.Rank() == root && !bytes.Equal(mem.Of(dst).Data(), mem.Of(want).Data()) {
		return fmt.Errorf("reduction of %d to %d of %d: %v", n, root, t.Size(), dst)
	}
	if err := pgsync.AllReduce(ctx, t, src, src, pgsync.Sum); err != nil {
		return err
	}
	if !bytes.Equal(mem.Of(src).Data(), mem.Of(want).Data()) {
		return fmt.Errorf("reduction of %d among %d on rank %d: %v", n, t.Size(), t.Rank(), src)
	}
	return nil
}
