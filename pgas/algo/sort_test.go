package algo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// layouts are those of n elements over p members, one with members that have none.
func layouts(n, p int) []pgas.Layout {
	counts := make([]int, p)
	for m := range counts {
		if m%2 == 0 {
			counts[m] = n / p / 2
		}
	}
	rest := n
	for _, c := range counts {
		rest -= c
	}
	counts[p/2/2*2] += rest
	return []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(3), pgas.Irregular(counts...)}
}

// input is a kind of elements.
type input struct {
	name string
	of   func(n int) []float64
}

// inputs are the same on all ranks.
func inputs() []input {
	of := func(f func(rng *rand.Rand, i int) float64) func(n int) []float64 {
		return func(n int) []float64 {
			rng, out := rand.New(rand.NewPCG(1, uint64(n))), make([]float64, n)
			for i := range out {
				out[i] = f(rng, i)
			}
			return out
		}
	}
	return []input{
		{"random", of(func(rng *rand.Rand, _ int) float64 { return rng.NormFloat64() })},
		{"ascending", of(func(_ *rand.Rand, i int) float64 { return float64(i) })},
		{"descending", of(func(_ *rand.Rand, i int) float64 { return float64(-i) })},
		{"equal", of(func(*rand.Rand, int) float64 { return 7 })},
		{"few values, and no numbers", of(func(rng *rand.Rand, _ int) float64 {
			return []float64{math.NaN(), -1, 0, math.Inf(1)}[rng.IntN(4)]
		})},
	}
}

// same compares an array, on this member, with a plain slice.
func same[T any](a *pgas.Array[T], want []T, equal func(x, y T) bool) error {
	got := make([]T, len(want))
	if err := a.Get(0, got); err != nil {
		return err
	}
	for i := range want {
		if !equal(got[i], want[i]) {
			return fmt.Errorf("element %d of %d is %v, and should be %v", i, len(want), got[i], want[i])
		}
	}
	return nil
}

// filled is an array with these elements.
func filled[T any](ctx context.Context, w *pgas.World, l pgas.Layout, values []T) (*pgas.Array[T], error) {
	a, err := pgas.NewArray[T](ctx, w.Team(), len(values), l)
	if err != nil {
		return nil, err
	}
	return a, a.Apply(ctx, func(i int, _ T) T { return values[i] })
}

// sorts sorts an array and compares it with a plain slice.
func sorts(ctx context.Context, w *pgas.World, l pgas.Layout, values []float64) error {
	a, err := filled(ctx, w, l, values)
	if err != nil {
		return err
	}
	if err := algo.Sort(ctx, a); err != nil {
		return err
	}
	slices.Sort(values)
	return errors.Join(same(a, values, func(x, y float64) bool { return cmp.Compare(x, y) == 0 }), a.Free(ctx))
}

// TestSort: each kind of elements in some layout, each layout with some kind, and no elements or few.
func TestSort(t *testing.T) {
	pgastest.Each(t, []int{1, 3, 4}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		for i, in := range inputs() {
			for j, n := range []int{103, i} {
				l := layouts(n, w.Size())[(i+j)%4]
				if err := sorts(ctx, w, l, in.of(n)); err != nil {
					return fmt.Errorf("%d %s, %s: %w", n, in.name, l, err)
				}
			}
		}
		return nil
	})
}

// parcel is an element with more than what it is sorted by.
type parcel struct {
	weight int16
	name   [5]byte
}

// TestSortFunc: what belongs together stays together, in the order asked for.
func TestSortFunc(t *testing.T) {
	pgastest.Each(t, []int{3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		values := make([]parcel, 200)
		for i := range values {
			values[i] = parcel{int16(i * 37 % 200), [5]byte(fmt.Appendf(nil, "%05d", i*37%200))}
		}
		heavyFirst := func(x, y parcel) int { return cmp.Compare(y.weight, x.weight) }
		for _, l := range layouts(len(values), w.Size()) {
			a, err := filled(ctx, w, l, values)
			if err != nil {
				return err
			}
			want := slices.SortedFunc(slices.Values(values), heavyFirst)
			if err := algo.SortFunc(ctx, a, heavyFirst); err != nil {
				return err
			}
			if err := errors.Join(same(a, want, func(x, y parcel) bool { return x == y }), a.Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestSortOfNodes: many ranks, some of which share nodes.
func TestSortOfNodes(t *testing.T) {
	ranks := 20
	if raceEnabled || testing.Short() {
		ranks = 9
	}
	pgastest.RunSim(t, pgastest.SimConfig{Ranks: ranks, RanksPerNode: 4, Mapped: true, Seed: 1}, func(ctx context.Context, w *pgas.World) error {
		for _, l := range layouts(3000, w.Size()) {
			if err := sorts(ctx, w, l, inputs()[0].of(3000)); err != nil {
				return fmt.Errorf("%s: %w", l, err)
			}
		}
		return nil
	})
}
