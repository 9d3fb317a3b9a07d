package pgas_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
)

// howMany returns how many pieces there are.
func howMany[T any](seq iter.Seq[T]) (n int) {
	for range seq {
		n++
	}
	return n
}

// keysOf are the first values of pairs.
func keysOf[K, V any](seq iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range seq {
			if !yield(k) {
				return
			}
		}
	}
}

// A rank that iterates over what it owns finds nothing after Free, of arrays of any kind.
func TestNothingOwnedAfterFree(t *testing.T) {
	pgastest.Each(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, aerr := pgas.NewArray[int64](ctx, w.Team(), 10, pgas.Cyclic())
		m, merr := pgas.NewMatrix[int64](ctx, w.Team(), 4, 6, pgas.Grid{Ghost: 1})
		g, gerr := grid.New[int64](ctx, w.Team(), []int{4, 6}, grid.Config{Ghost: []int{1, 1}})
		if err := errors.Join(aerr, merr, gerr); err != nil {
			return err
		}
		owned := func() []int {
			return []int{
				howMany(keysOf(a.Mine())), howMany(a.Owned()), howMany(keysOf(m.Mine())), howMany(m.Owned()), howMany(keysOf(g.Mine())), howMany(g.Owned()),
			}
		}
		for i, n := range owned() {
			require.Positive(t, n, i)
		}
		if err := errors.Join(a.Free(ctx), m.Free(ctx), g.Free(ctx)); err != nil {
			return err
		}
		for i, n := range owned() {
			if i != 1 { // one piece, without elements
				require.Zero(t, n, i)
			}
		}
		return nil
	})
}

// Resize of what was freed is refused, and takes no memory for it.
func TestResizeAfterFree(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, aerr := pgas.NewArray[int64](ctx, w.Team(), 1000, pgas.Cyclic())
		m, merr := pgas.NewMatrix[int64](ctx, w.Team(), 40, 60, pgas.Grid{})
		if err := errors.Join(aerr, merr, a.Free(ctx), m.Free(ctx)); err != nil {
			return err
		}
		_, before := w.HeapUsage()
		for range 3 {
			require.ErrorIs(t, a.Resize(ctx, 2000, pgas.Block()), pgas.ErrClosed)
			require.ErrorIs(t, m.Resize(ctx, 50, 60, pgas.Grid{}), pgas.ErrClosed)
		}
		_, after := w.HeapUsage()
		require.Equal(t, before, after)
		return w.Barrier(ctx)
	})
}
