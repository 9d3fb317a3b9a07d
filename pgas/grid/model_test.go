package grid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// ranks are the sizes of the worlds that everything is tried in.
var ranks = []int{1, 2, 3, 4, 6}

// plain is an array in ordinary memory.
type plain struct {
	shape []int
	v     []int32
}

func newPlain(shape []int) *plain {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return &plain{shape, make([]int32, n)}
}

// at is the element at an index, which may lie around the edges.
func (p *plain) at(at []int) *int32 {
	i := 0
	for d, size := range p.shape {
		i = i*size + (at[d]%size+size)%size
	}
	return &p.v[i]
}

// elements calls f for the elements of a box in order.
func (p *plain) elements(b grid.Box, f func(at []int, x *int32)) {
	shape := b.Shape()
	at, i := slices.Clone(b.Lo), 0
	for all := b.Len(); i < all; i++ {
		k := i
		for d := len(shape) - 1; d >= 0; d-- {
			step := 1
			if b.Step != nil && b.Step[d] > 1 {
				step = b.Step[d]
			}
			at[d] = b.Lo[d] + k%shape[d]*step
			k /= shape[d]
		}
		f(at, p.at(at))
	}
}

// get is what a Get of the box returns.
func (p *plain) get(b grid.Box) []int32 {
	out := make([]int32, 0, b.Len())
	p.elements(b, func(_ []int, x *int32) { out = append(out, *x) })
	return out
}

// randomBox is a box of an array of this shape, with steps or without, or of the array that goes around.
func randomBox(rng *rand.Rand, shape []int, around bool) grid.Box {
	b := grid.Box{Lo: make([]int, len(shape)), Hi: make([]int, len(shape))}
	if rng.IntN(2) == 0 {
		b.Step = make([]int, len(shape))
	}
	for d, size := range shape {
		b.Lo[d] = rng.IntN(size + 1)
		b.Hi[d] = b.Lo[d] + rng.IntN(size-b.Lo[d]+1)
		if rng.IntN(3) == 0 {
			b.Lo[d], b.Hi[d] = 0, size
		}
		if around && size > 0 {
			b.Lo[d] = rng.IntN(3*size) - size
			b.Hi[d] = b.Lo[d] + rng.IntN(size+1) // no element twice
		}
		if b.Step != nil {
			b.Step[d] = rng.IntN(4)
		}
	}
	return b
}

// shapes and settings that are tried; parts and lengths of blocks are for any number of ranks.
func cases(ranks int) (shapes [][]int, configs []grid.Config) {
	first := make([]int, ranks) // all in the first block but one in the last
	first[0] = 10
	first[ranks-1]++
	return [][]int{{37}, {9, 11}, {11, 5, 6}, {5, 6, 3, 4}, {2, 3, 4, 3, 5}, {3, 0, 2}},
		[]grid.Config{
			{Ghost: []int{2}, Periodic: []bool{true}},
			{Parts: []int{1, 0}},
			{Blocks: [][]int{first, nil, nil}, Ghost: []int{1, 0, 2}},
			{},
			{Ghost: []int{1, 1, 0, 2, 1}, Periodic: []bool{true, false, true, true, false}},
			{Ghost: []int{1, 1, 1}},
		}
}

// each runs f in worlds of all sizes over all paths, for arrays of all cases.
func each(t *testing.T, f func(ctx context.Context, t *testing.T, a *grid.Array[int32], rng *rand.Rand) error) {
	pgastest.Each(t, ranks, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		shapes, configs := cases(w.Size())
		for i, shape := range shapes {
			a, err := grid.New[int32](ctx, w.Team(), shape, configs[i])
			if err != nil {
				return err
			}
			if err := f(ctx, t, a, rand.New(rand.NewPCG(uint64(i), 77))); err != nil { // the same on all ranks
				return err
			}
			if err := a.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// write is a way to change a box; the elements become, or are increased by, those of src.
type write struct {
	name        string
	around, add bool
	do          func(ctx context.Context, a *grid.Array[int32], b grid.Box, src []int32) error
}

var writes = []write{
	{name: "put", do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error { return a.Put(b, src) }},
	{name: "put-flush", do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		if err := errors.Join(a.Put(b, src), a.Flush()); err != nil { // without a Fence the one who puts sees it
			return err
		}
		got := make([]int32, len(src))
		if err := a.Get(b, got); err != nil || !slices.Equal(src, got) {
			return errors.Join(err, fmt.Errorf("put %v to %v, and found %v", src, b, got))
		}
		return nil
	}},
	{name: "put-nb", do: func(ctx context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		hs, err := a.PutNB(b, src)
		return errors.Join(err, hs.Wait(ctx))
	}},
	{name: "put-periodic", around: true, do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		return a.PutPeriodic(b, src)
	}},
	{name: "accumulate", add: true, do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		return grid.Accumulate(a, b, src, pgsync.Sum)
	}},
	{name: "accumulate-periodic", around: true, add: true, do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		return grid.AccumulatePeriodic(a, b, src, pgsync.Sum)
	}},
	{name: "scatter", do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		return a.Scatter(src, list(b))
	}},
	{name: "scatter-accumulate", add: true, do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		return grid.ScatterAccumulate(a, list(b), src, pgsync.Sum)
	}},
	{name: "set", do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		for i, at := range list(b) {
			if err := a.Set(src[i], at...); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "fetch-add", add: true, do: func(_ context.Context, a *grid.Array[int32], b grid.Box, src []int32) error {
		for i, at := range list(b) {
			if _, err := grid.FetchAdd(a, src[i], at...); err != nil {
				return err
			}
		}
		return nil
	}},
}

// list are the indices of a box.
func list(b grid.Box) (at [][]int) {
	one := &plain{shape: make([]int, len(b.Lo)), v: make([]int32, 1)}
	for d := range one.shape {
		one.shape[d] = 1
	}
	one.elements(b, func(i []int, _ *int32) { at = append(at, slices.Clone(i)) })
	return at
}

// reads are the ways to get a box.
var reads = []struct {
	name   string
	around bool
	do     func(ctx context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error
}{
	{"get", false, func(_ context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error { return a.Get(b, dst) }},
	{"get-periodic", true, func(_ context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error {
		return a.GetPeriodic(b, dst)
	}},
	{"get-nb", false, func(ctx context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error {
		hs, err := a.GetNB(b, dst)
		return errors.Join(err, hs.Wait(ctx))
	}},
	{"gather", false, func(_ context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error {
		return a.Gather(dst, list(b))
	}},
	{"at", false, func(_ context.Context, a *grid.Array[int32], b grid.Box, dst []int32) error {
		for i, at := range list(b) {
			v, err := a.At(at...)
			if err != nil {
				return err
			}
			dst[i] = v
		}
		return nil
	}},
}

// TestAgainstPlain: random boxes are written in all ways, one rank after the other, and read by all in all ways; always it is as in ordinary memory, and each
// member's own elements are those that it owns.
func TestAgainstPlain(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, a *grid.Array[int32], rng *rand.Rand) error {
		want, team := newPlain(a.Shape()), a.Team()
		rounds := 2 * len(writes)
		if testing.Short() {
			rounds = len(writes)
		}
		for round := range rounds {
			how := writes[round%len(writes)]
			b := randomBox(rng, want.shape, how.around)
			src := make([]int32, b.Len())
			for i := range src {
				src[i] = int32(1000*round + i + 1)
			}
			i := 0
			want.elements(b, func(_ []int, x *int32) {
				if !how.add {
					*x = 0
				}
				*x += src[i]
				i++
			})
			if round%team.Size() == team.Rank() {
				if err := how.do(ctx, a, b, src); err != nil {
					return err
				}
				clear(src) // it is the caller's again
			}
			if err := a.Fence(ctx); err != nil {
				return err
			}
			for k, as := range reads {
				if (k+round)%len(reads) > 1 {
					continue // two of them each time
				}
				c := randomBox(rng, want.shape, as.around)
				got := make([]int32, c.Len())
				if err := as.do(ctx, a, c, got); err != nil {
					return err
				}
				require.Equal(t, want.get(c), got, "round %d: %s of %v after %s of %v of %v", round, as.name, c, how.name, b, a)
			}
			if err := a.Fence(ctx); err != nil { // nobody writes before all have read
				return err
			}
		}
		return mineIs(t, a, want)
	})
}

// mineIs wants this rank's elements to be those of want, each with its index, and as many as its block has.
func mineIs(t *testing.T, a *grid.Array[int32], want *plain) error {
	me, seen := a.Team().Rank(), 0
	var owned []int32
	for row := range a.Owned() {
		owned = append(owned, row...)
	}
	b := a.Block(me)
	elements, strides := a.Local()
	require.Len(t, strides, len(want.shape))
	for at, x := range a.Mine() {
		owner, disp := a.Owner(at...)
		inside := true
		for d, i := range at {
			inside = inside && i >= b.Lo[d] && i < b.Hi[d]
		}
		if *x != *want.at(at) || *x != owned[seen] || owner != me || x != &elements[disp] || !inside {
			require.Fail(t, "wrong", "element %v of %v: %d, wanted %d; owner %d on %d", at, a, *x, *want.at(at), owner, me)
		}
		seen++
	}
	require.Equal(t, b.Len(), seen)
	require.Len(t, owned, seen)
	members := 1
	for _, k := range a.Parts() {
		members *= k
	}
	require.Equal(t, a.Team().Size(), members)
	return nil
}

// TestAllAtOnce: all ranks accumulate into overlapping boxes at the same time, and all is counted.
func TestAllAtOnce(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, a *grid.Array[int32], rng *rand.Rand) error {
		want, team := newPlain(a.Shape()), a.Team()
		for r := range team.Size() {
			for range 4 {
				b := randomBox(rng, want.shape, false)
				src := make([]int32, b.Len())
				for i := range src {
					src[i] = int32(r + i)
				}
				if r == team.Rank() {
					if err := grid.Accumulate(a, b, src, pgsync.Sum); err != nil {
						return err
					}
				}
				i := 0
				want.elements(b, func(_ []int, x *int32) { *x += src[i]; i++ })
			}
		}
		if err := a.Fence(ctx); err != nil {
			return err
		}
		got := make([]int32, len(want.v))
		if err := a.Get(a.Whole(), got); err != nil {
			return err
		}
		require.Equal(t, want.v, got)
		return a.Fence(ctx)
	})
}
