package grid_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestGhosts: a frame shows the neighbours' elements, corners and all unless they were left out, around the edges where the array is periodic; elsewhere it is left alone.
func TestGhosts(t *testing.T) {
	pgastest.Each(t, ranks, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		uneven := make([]int, w.Size()) // blocks that a frame reaches across
		uneven[0] = 7 - w.Size() + 1
		for k := 1; k < len(uneven); k++ {
			uneven[k] = 1
		}
		for _, c := range []struct {
			shape []int
			c     grid.Config
		}{
			{[]int{9}, grid.Config{Ghost: []int{3}, Periodic: []bool{true}}},
			{[]int{7, 5}, grid.Config{Ghost: []int{2, 1}, Periodic: []bool{true, false}, Blocks: [][]int{uneven, nil}}},
			{[]int{6, 5, 4}, grid.Config{Ghost: []int{1, 1, 1}}},
			{[]int{6, 5, 4}, grid.Config{Ghost: []int{1, 2, 1}, Periodic: []bool{true, true, true}}},
			{[]int{6, 5, 4}, grid.Config{Ghost: []int{1, 2, 1}, Periodic: []bool{true, true, false}, Faces: true}},
			{[]int{3, 4, 2, 5}, grid.Config{Ghost: []int{1, 0, 3, 2}, Periodic: []bool{false, true, true, false}}},
			{[]int{2, 0}, grid.Config{Ghost: []int{1, 1}, Periodic: []bool{true, true}}},
			{[]int{6, 6}, grid.Config{}},
		} {
			a, err := grid.New[int32](ctx, w.Team(), c.shape, c.c)
			if err != nil {
				return err
			}
			const untouched = -7
			part, strides := a.Local()
			for i := range part {
				part[i] = untouched
			}
			want := newPlain(c.shape)
			for round := range int32(2) { // the second time with the sections that the first one found
				i := int32(0)
				want.elements(a.Whole(), func(_ []int, x *int32) { *x = 100*round + i; i++ })
				for at, x := range a.Mine() {
					*x = *want.at(at)
				}
				if err := a.UpdateGhosts(ctx); err != nil {
					return err
				}
				const changed = -8 // all have their frames
				for _, x := range a.Mine() {
					*x = changed
				}
				b := a.Block(w.Rank())
				if b.Len() == 0 {
					for _, v := range part {
						require.EqualValues(t, untouched, v)
					}
					continue
				}
				frame, far := a.Block(w.Rank()), 0
				for d := range c.shape {
					frame.Lo[d] -= ghost(c.c, d)
					frame.Hi[d] += ghost(c.c, d)
				}
				want.elements(frame, func(at []int, x *int32) {
					v, place, own, beside := *x, 0, true, 0
					for d, i := range at {
						if i < b.Lo[d] || i >= b.Hi[d] {
							own = false
							beside++
						}
						if (i < 0 || i >= c.shape[d]) && (c.c.Periodic == nil || !c.c.Periodic[d]) {
							v = untouched
						}
						place += (i - frame.Lo[d]) * strides[d]
					}
					switch {
					case own:
						v = changed
					case beside > 1 && c.c.Faces:
						v = untouched
					}
					require.Equal(t, v, part[place], "%v of %v", at, a)
					far = max(far, place)
				})
				require.Len(t, part, far+1)
				last := len(strides) - 1
				first := make([]int, last)
				for d := range first { // the frame's first row, and the block's last one
					first[d] = -ghost(c.c, d)
				}
				require.Same(t, &part[0], &a.Row(first...)[0])
				for d := range first {
					first[d] = b.Hi[d] - b.Lo[d] - 1
				}
				row := a.Row(first...)
				require.Len(t, row, frame.Hi[last]-frame.Lo[last])
				_, disp := a.Owner(highest(b)...)
				require.Same(t, &part[disp], &row[len(row)-1-ghost(c.c, last)])
				if err := a.Fence(ctx); err != nil {
					return err
				}
			}
			if err := a.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestManySections: a box of more sections than are transferred at once.
func TestManySections(t *testing.T) {
	for _, nic := range []bool{false, true} {
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
			a, err := grid.New[int32](ctx, w.Team(), []int{65, 65, 2, 3}, grid.Config{Ghost: []int{0, 0, 1, 1}, Parts: []int{1, 1, 1, 2}})
			if err != nil {
				return err
			}
			want, got := make([]int32, a.Whole().Len()), make([]int32, a.Whole().Len())
			for i := range want {
				want[i] = int32(i)
			}
			if w.Rank() == 0 {
				err = errors.Join(a.Put(a.Whole(), want), a.Flush(), a.Get(a.Whole(), got))
				require.Equal(t, want, got)
			}
			if err := errors.Join(err, a.Fence(ctx)); err != nil {
				return err
			}
			return a.Free(ctx)
		})
	}
}

// TestLongAccumulate: what lies together in an owner's part is long enough to travel as one; around the edge it is in two pieces, and short.
func TestLongAccumulate(t *testing.T) {
	for _, nic := range []bool{false, true} {
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
			a, err := grid.New[int32](ctx, w.Team(), []int{4, 300}, grid.Config{Parts: []int{2, 1}, Ghost: []int{0, 1}})
			if err != nil {
				return err
			}
			want, src := newPlain(a.Shape()), make([]int32, 3*290)
			for i := range src {
				src[i] = int32(i)
			}
			b := grid.Box{Lo: []int{1, 5}, Hi: []int{4, 295}}
			around := grid.Box{Lo: []int{2, 299}, Hi: []int{5, 299 + 290}}
			err = errors.Join(grid.Accumulate(a, b, src, pgsync.Sum), grid.AccumulatePeriodic(a, around, src, pgsync.Sum), a.Fence(ctx))
			if err != nil {
				return err
			}
			for _, box := range []grid.Box{b, around} {
				i := 0
				want.elements(box, func(_ []int, x *int32) { *x += 2 * src[i]; i++ })
			}
			if err := mineIs(t, a, want); err != nil {
				return err
			}
			return a.Free(ctx)
		})
	}
}

func ghost(c grid.Config, d int) int {
	if c.Ghost == nil {
		return 0
	}
	return c.Ghost[d]
}

// highest is the index of the last element of a box, which has some.
func highest(b grid.Box) (at []int) {
	for _, hi := range b.Hi {
		at = append(at, hi-1)
	}
	return at
}

// TestCopies: whole arrays, and boxes at different places, between any layouts.
func TestCopies(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, a *grid.Array[int32], rng *rand.Rand) error {
		shape := a.Shape()
		parts := make([]int, len(shape))
		parts[len(parts)-1] = a.Team().Size() // another layout than any of the cases
		other := make([]int, len(shape))
		for d, n := range shape {
			other[d] = n + 3
		}
		src, err := grid.New[int32](ctx, a.Team(), shape, grid.Config{Parts: parts})
		if err != nil {
			return err
		}
		larger, err := grid.New[int32](ctx, a.Team(), other, grid.Config{})
		if err != nil {
			return err
		}
		value := func(at []int) (v int32) {
			for _, i := range at {
				v = 31*v + int32(i) + 1
			}
			return v
		}
		set := func(at []int, _ int32) int32 { return value(at) }
		if err := src.Apply(ctx, set); err != nil {
			return err
		}
		if err := larger.Apply(ctx, set); err != nil {
			return err
		}
		want, from := newPlain(shape), newPlain(other)
		want.elements(a.Whole(), func(at []int, x *int32) { *x = value(at) })
		from.elements(larger.Whole(), func(at []int, x *int32) { *x = value(at) })
		if err := a.CopyFrom(ctx, src); err != nil {
			return err
		}
		if err := mineIs(t, a, want); err != nil {
			return err
		}
		rounds := 6
		if testing.Short() {
			rounds = 4
		}
		for range rounds {
			to := randomBox(rng, shape, false)
			b := grid.Box{Lo: make([]int, len(shape)), Hi: make([]int, len(shape)), Step: make([]int, len(shape))}
			for d, n := range to.Shape() { // as many, elsewhere and with other steps
				b.Step[d] = 1 + rng.IntN(2)
				if n*b.Step[d] > other[d] {
					b.Step[d] = 1
				}
				b.Lo[d] = rng.IntN(other[d] - n*b.Step[d] + 1)
				b.Hi[d] = b.Lo[d] + n*b.Step[d]
			}
			values, i := from.get(b), 0
			want.elements(to, func(_ []int, x *int32) { *x = values[i]; i++ })
			if err := a.CopyBox(ctx, to, larger, b); err != nil {
				return err
			}
			if err := mineIs(t, a, want); err != nil {
				return err
			}
		}
		for _, e := range []error{a.CopyFrom(ctx, a), a.CopyFrom(ctx, larger)} {
			require.ErrorIs(t, e, pgsync.ErrMismatch)
		}
		require.ErrorIs(t, a.CopyBox(ctx, a.Whole(), larger, grid.Box{Lo: make([]int, len(shape)), Hi: []int{1 << 40, 1, 1, 1, 1}[:len(shape)]}), pgas.ErrRange)
		require.ErrorIs(t, a.CopyBox(ctx, grid.Box{}, larger, larger.Whole()), pgas.ErrRange)
		if err := larger.Free(ctx); err != nil {
			return err
		}
		return src.Free(ctx)
	})
}

// TestFillReduceAtomics: what works on whole arrays, and on words.
func TestFillReduceAtomics(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, a *grid.Array[int32], _ *rand.Rand) error {
		n, size, me := int32(a.Whole().Len()), int32(a.Team().Size()), int32(a.Team().Rank())
		if err := a.Fill(ctx, 3); err != nil {
			return err
		}
		sum, err := pgas.Reduce(ctx, a, pgsync.Sum)
		if n == 0 {
			require.ErrorIs(t, err, pgas.ErrRange)
			return nil
		}
		if err != nil {
			return err
		}
		require.Equal(t, 3*n, sum)
		last := a.Shape()
		for d := range last {
			last[d]--
		}
		if err := a.Fence(ctx); err != nil {
			return err
		}
		old, err := grid.FetchAdd(a, 10, last...)
		if err != nil {
			return err
		}
		require.Zero(t, (old-3)%10)
		var was int32
		h, err := grid.FetchAddNB(a, 100, &was, last...)
		if err != nil {
			return err
		}
		if err := h.Wait(ctx); err != nil {
			return err
		}
		require.GreaterOrEqual(t, was, int32(13))
		if err := a.Fence(ctx); err != nil {
			return err
		}
		v, err := a.At(last...)
		if err != nil {
			return err
		}
		require.Equal(t, 3+110*size, v)
		if err := a.Fence(ctx); err != nil {
			return err
		}
		was, err = grid.CompareSwap(a, v, -1-me, last...) // one of them wins
		if err != nil {
			return err
		}
		won := []int{0}
		if was == v {
			won[0] = 1
		}
		if err := pgsync.AllReduce(ctx, a.Team(), won, won, pgsync.Sum); err != nil {
			return err
		}
		require.Equal(t, 1, won[0])
		if was, err = grid.Swap(a, me, last...); err != nil {
			return err
		}
		require.True(t, was >= -size && was < size)
		if err := a.Fence(ctx); err != nil {
			return err
		}
		if v, err = a.At(last...); err != nil {
			return err
		}
		require.True(t, v >= 0 && v < size)
		return a.Fence(ctx)
	})
}

// TestApplyGivesIndices: an index is the function's until it returns, which may count with it.
func TestApplyGivesIndices(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[int](ctx, w.Team(), []int{4, 3, 5}, grid.Config{Ghost: []int{1, 0, 1}})
		if err != nil {
			return err
		}
		err = a.Apply(ctx, func(at []int, _ int) int {
			for d := range at[1:] {
				at[d+1] += 10 * at[d]
				at[d] = -1
			}
			return at[len(at)-1]
		})
		if err != nil {
			return err
		}
		for at, x := range a.Mine() {
			require.Equal(t, 100*at[0]+10*at[1]+at[2], *x)
		}
		return a.Free(ctx)
	})
}

// TestApplyEnds: Apply ends with its context also on a rank alone, which waits for nobody.
func TestApplyEnds(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[int](ctx, w.Team(), []int{400, 500}, grid.Config{})
		require.NoError(t, err)
		cause, calls := errors.New("told to end"), 0
		short, end := context.WithCancelCause(ctx)
		require.ErrorIs(t, a.Apply(short, func([]int, int) int { calls++; end(cause); return 0 }), cause)
		require.Less(t, calls, 400*500)
		require.ErrorIs(t, a.Fill(short, 1), cause)
		return a.Free(short)
	})
}
