package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// worlds runs f in worlds of 1, 3 and 4 ranks on every path, and in virtual time.
func worlds(t *testing.T, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	pgastest.Each(t, []int{1, 3, 4}, f)
}

func TestArrayPutGetAcrossOwners(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, l := range []pgas.Layout{pgas.Block(), pgas.Cyclic()} {
			for _, n := range []int{0, 1, 2, 5, 103} {
				a, err := pgas.NewArray[int32](ctx, w.Team(), n, l)
				if err != nil {
					return err
				}
				require.Equal(t, n, a.Len())
				// Everybody puts its share of the whole, cut where no owner's part ends.
				lo, hi := n*w.Rank()/w.Size(), n*(w.Rank()+1)/w.Size()
				lo, hi = max(0, lo-lo%3), hi-hi%3
				if w.Rank() == w.Size()-1 {
					hi = n
				}
				src := make([]int32, hi-lo)
				for i := range src {
					src[i] = int32(100 + lo + i)
				}
				if err := errors.Join(a.Put(lo, src), a.Fence(ctx)); err != nil {
					return err
				}
				k := 0
				for i, x := range a.Mine() {
					require.EqualValues(t, 100+i, *x)
					require.Equal(t, *x, a.Local()[k])
					m, disp := a.Owner(i)
					require.Equal(t, []int{w.Rank(), k}, []int{m, disp})
					require.Equal(t, i, a.Index(m, disp))
					k++
				}
				require.Len(t, a.Local(), k)
				got := make([]int32, n)
				if err := a.Get(0, got); err != nil {
					return err
				}
				for i, v := range got {
					require.EqualValues(t, 100+i, v)
				}
				for i := range n {
					v, err := a.At(i)
					require.NoError(t, err)
					require.EqualValues(t, 100+i, v)
				}
				covered := 0
				for m := range w.Size() {
					lo, hi := a.Range(m)
					if l == pgas.Block() {
						covered += hi - lo
					} else {
						for i := lo; i < hi; i += w.Size() {
							covered++
						}
					}
				}
				require.Equal(t, n, covered)
				for _, bad := range [][2]int{{-1, 1}, {n, 1}, {0, n + 1}, {n + 1, 0}} {
					_, getNB := a.GetNB(bad[0], make([]int32, bad[1]))
					_, putNB := a.PutNB(bad[0], make([]int32, bad[1]))
					for _, err := range []error{a.Put(bad[0], make([]int32, bad[1])), a.Get(bad[0], make([]int32, bad[1])), getNB, putNB} {
						require.ErrorIs(t, err, pgas.ErrRange)
						require.ErrorAs(t, err, new(*pgas.OpError))
					}
				}
				_, err = a.At(n)
				require.ErrorIs(t, err, pgas.ErrRange)
				require.ErrorIs(t, a.Set(-1, 0), pgas.ErrRange)
				_, err = pgas.FetchAdd(a, n, 1)
				require.ErrorIs(t, err, pgas.ErrRange)
				require.Panics(t, func() { a.Owner(n) })
				require.Panics(t, func() { a.Owner(-1) })
				for _, member := range []int{-1, w.Size()} {
					require.Panics(t, func() { a.Range(member) }, "%d", member)
					require.Panics(t, func() { a.Index(member, 0) }, "%d", member)
				}
				require.Panics(t, func() { a.Index(w.Rank(), len(a.Local())) }, "the place of another member's element, or of none")
				require.Panics(t, func() { a.Index(w.Rank(), -1) })
				if err := a.Fence(ctx); err != nil { // all have looked
					return err
				}
				for i := range n {
					if _, err := pgas.FetchAdd(a, i, 1); err != nil {
						return err
					}
				}
				if err := a.Fence(ctx); err != nil {
					return err
				}
				for i, x := range a.Mine() {
					require.EqualValues(t, 100+i+w.Size(), *x)
				}
				if err := a.Fence(ctx); err != nil {
					return err
				}
				if n > 2 && w.Rank() == 0 {
					was, err := pgas.Swap(a, 2, 7)
					require.NoError(t, err)
					require.EqualValues(t, 102+w.Size(), was)
					was, err = pgas.CompareSwap(a, 2, 7, 8)
					require.NoError(t, err)
					require.EqualValues(t, 7, was)
					was, err = pgas.FetchXor(a, 2, 1)
					require.NoError(t, err)
					require.EqualValues(t, 8, was)
					require.NoError(t, errors.Join(a.Set(1, -1), a.Flush()))
					v, err := a.At(1)
					require.NoError(t, err)
					require.EqualValues(t, -1, v)
				}
				if err := a.Free(ctx); err != nil {
					return err
				}
				if n > 0 {
					require.ErrorIs(t, a.Set(0, 1), pgas.ErrClosed)
				}
			}
		}
		return nil
	})
}

// TestAllPrefetches: in order, across owners, ended early, and with an ended context.
func TestAllPrefetches(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, l := range []pgas.Layout{pgas.Block(), pgas.Cyclic()} {
			n := 3*8192 + 17 // more than two pieces of 64 KiB
			if l == pgas.Cyclic() {
				n = 1000 // a get for each element
			}
			a, err := pgas.NewArray[uint64](ctx, w.Team(), n, l)
			if err != nil {
				return err
			}
			for i, x := range a.Mine() {
				*x = uint64(i) * 3
			}
			if err := a.Fence(ctx); err != nil {
				return err
			}
			for _, r := range [][2]int{{0, n}, {n, n}, {n / 2, n/2 + 1}, {1, n - 1}, {0, 0}} {
				i := r[0]
				for v, err := range a.All(ctx, r[0], r[1]) {
					if err != nil || v != uint64(i)*3 {
						t.Fatalf("element %d is %d, %v", i, v, err)
					}
					i++
				}
				require.Equal(t, r[1], i)
			}
			seen := 0
			for range a.All(ctx, 0, n) {
				if seen++; seen == 10 {
					break
				}
			}
			for _, r := range [][2]int{{-1, 3}, {0, n + 1}, {5, 4}} {
				calls := 0
				for _, err := range a.All(ctx, r[0], r[1]) {
					require.ErrorIs(t, err, pgas.ErrRange)
					calls++
				}
				require.Equal(t, 1, calls)
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			for _, err := range a.All(ended, 0, n) { // what has come already needs no wait; a wait is an error
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
			}
			if err := errors.Join(a.Fence(ctx), a.Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestArraysThatDiffer: other lengths or layouts on other members are an error even where the parts are equally large.
func TestArraysThatDiffer(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			pgastest.RunConfig(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
				_, err := pgas.NewArray[int](ctx, w.Team(), 10+2*(w.Rank()%2), pgas.Block())
				require.ErrorIs(t, err, pgsync.ErrMismatch)
				l := pgas.Block()
				if w.Rank() == 3 {
					l = pgas.Cyclic()
				}
				_, err = pgas.NewArray[int](ctx, w.Team(), 12, l)
				require.ErrorIs(t, err, pgsync.ErrMismatch)
				_, err = pgas.NewArray[int](ctx, w.Team(), -1, pgas.Block())
				require.ErrorIs(t, err, pgas.ErrRange)
				return nil
			})
		})
	}
}

// TestOtherCalls: a window on one member and an array or a matrix on the others is an error of all, in words.
func TestOtherCalls(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		var err error
		want := "rank 0 something else"
		switch w.Rank() {
		case 0:
			_, err = window.AllocateConfig[int](ctx, w.Team(), 4, window.Config{Epochs: true})
			want = "this rank makes 4 elements with Epochs of int, rank 1 something else"
		case 1:
			_, err = pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
		default:
			_, err = pgas.NewMatrix[int](ctx, w.Team(), 3, 3, pgas.Grid{})
		}
		require.ErrorIs(t, err, pgsync.ErrMismatch)
		require.ErrorContains(t, err, want)
		_, err = window.AllocateConfig[int](ctx, w.Team(), 4, window.Config{StrictEpochs: w.Rank() == 0})
		require.ErrorContains(t, err, "4 elements with StrictEpochs")
		require.NotContains(t, err.Error(), "another type")
		return nil
	})
}

func TestPtr(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		p, err := pgas.Alloc[float32](ctx, w.Team(), 6)
		if err != nil {
			return err
		}
		require.True(t, pgas.Ptr[float32]{}.IsNil())
		require.False(t, p.IsNil())
		next := (w.Rank() + 1) % w.Size()
		q := p.On(next).Add(4)
		require.Equal(t, []int{next, 4}, []int{q.Member(), q.Disp()})
		require.Equal(t, q, p.Add(7).On(next).Add(-3), "pointers compare")
		if err := errors.Join(q.Store(2.5), q.Add(-4).Put([]float32{1, 2}), p.Window().Fence(ctx)); err != nil {
			return err
		}
		v, err := q.Load()
		require.NoError(t, err)
		require.EqualValues(t, 2.5, v)
		got := make([]float32, 6)
		require.NoError(t, p.On(next).Get(got))
		require.Equal(t, []float32{1, 2, 0, 0, 2.5, 0}, got)
		mine, ok := p.Local()
		require.True(t, ok)
		require.Equal(t, got, mine)
		mine, ok = p.Add(4).Local()
		require.True(t, ok)
		require.Equal(t, []float32{2.5, 0}, mine)
		_, ok = p.Add(7).Local()
		require.False(t, ok)
		_, ok = p.Add(-1).Local()
		require.False(t, ok)
		_, ok = p.On(next).Local()
		require.Equal(t, w.Size() == 1, ok)
		require.ErrorIs(t, p.Add(6).Store(1), pgas.ErrRange)
		_, err = p.Add(-1).Load()
		require.ErrorIs(t, err, pgas.ErrRange)
		require.ErrorIs(t, p.On(w.Size()).Store(1), window.ErrTarget)
		if err := errors.Join(p.Window().Fence(ctx), p.Free(ctx)); err != nil {
			return err
		}
		require.ErrorIs(t, p.Store(1), pgas.ErrClosed)
		return nil
	})
}

// TestBeyondAllNumbers: elements whose end is no number are refused in words that hold.
func TestBeyondAllNumbers(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
		if err != nil {
			return err
		}
		_, at := a.At(math.MaxInt)
		for want, err := range map[string]error{"at: out of range: 1 elements from ": at, "get: out of range: 3 elements from ": a.Get(math.MaxInt, make([]int, 3))} {
			require.ErrorIs(t, err, pgas.ErrRange)
			require.EqualError(t, err, want+fmt.Sprint(math.MaxInt)+" on, of an array of 10")
		}
		return a.Free(ctx)
	})
}
