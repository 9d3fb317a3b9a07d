package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

func TestFillAndApply(t *testing.T) {
	eachLayout(t, 37, func(ctx context.Context, t *testing.T, _ *pgas.World, a *pgas.Array[int32]) error {
		want := make([]int32, 37)
		if err := a.Fill(ctx, 3); err != nil {
			return err
		}
		for i := range want {
			want[i] = 3
		}
		if err := holds(ctx, t, a, want); err != nil {
			return err
		}
		if err := a.Apply(ctx, func(i int, v int32) int32 { return v*100 + int32(i) }); err != nil {
			return err
		}
		for i := range want {
			want[i] = 300 + int32(i)
		}
		return holds(ctx, t, a, want)
	})
}

// TestBetweenLayouts copies and combines arrays of every pair of layouts.
func TestBetweenLayouts(t *testing.T) {
	const n = 83
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, from := range layouts(n, w.Size()) {
			x, err := pgas.NewArray[int64](ctx, w.Team(), n, from)
			if err != nil {
				return err
			}
			for _, to := range layouts(n, w.Size()) {
				y, err := pgas.NewArray[int64](ctx, w.Team(), n, to)
				if err != nil {
					return err
				}
				want := make([]int64, n)
				for i := range want {
					want[i] = int64(i * i)
				}
				name := fmt.Sprintf("%s to %s", from, to)
				if err := x.Apply(ctx, func(i int, _ int64) int64 { return int64(i * i) }); err != nil {
					return err
				}
				if err := errors.Join(y.CopyFrom(ctx, x), holds(ctx, t, y, want, name)); err != nil {
					return err
				}
				for i := range want {
					want[i] -= 10 * want[i]
				}
				if err := y.Combine(ctx, y, x, func(a, b int64) int64 { return a - 10*b }); err != nil {
					return err
				}
				if err := errors.Join(holds(ctx, t, y, want, name), y.Free(ctx)); err != nil {
					return err
				}
			}
			short, err := pgas.NewArray[int64](ctx, w.Team(), n-1, pgas.Block())
			if err != nil {
				return err
			}
			require.ErrorIs(t, short.CopyFrom(ctx, x), pgsync.ErrMismatch)
			require.ErrorIs(t, x.Combine(ctx, x, short, func(a, _ int64) int64 { return a }), pgsync.ErrMismatch)
			if err := errors.Join(short.Free(ctx), x.Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestResize(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, err := pgas.NewArray[int16](ctx, w.Team(), 20, pgas.Block())
		if err != nil {
			return err
		}
		if err := a.Apply(ctx, func(i int, _ int16) int16 { return int16(i + 1) }); err != nil {
			return err
		}
		want := make([]int16, 20)
		for i := range want {
			want[i] = int16(i + 1)
		}
		for k, n := range []int{20, 45, 45, 7, 0, 9, 100} {
			l := layouts(n, w.Size())[k%5]
			if err := a.Resize(ctx, n, l); err != nil {
				return err
			}
			for len(want) < n {
				want = append(want, 0)
			}
			want = want[:n]
			if err := holds(ctx, t, a, want, "%d elements, %s", n, l); err != nil {
				return err
			}
			if n == 9 { // after 0
				if err := a.Fill(ctx, 5); err != nil {
					return err
				}
				for i := range want {
					want[i] = 5
				}
			}
		}
		require.ErrorIs(t, a.Resize(ctx, -1, pgas.Block()), pgas.ErrRange)
		return errors.Join(holds(ctx, t, a, want, "a refused resize"), a.Free(ctx))
	})
}

// reduces compares every reduction that T has with the same on a slice.
func reduces[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World, n int, value func(i int) T) error {
	for _, l := range layouts(n, w.Size())[2:] { // the last leaves some members without elements
		a, err := pgas.NewArray[T](ctx, w.Team(), n, l)
		if err != nil {
			return err
		}
		if err := a.Apply(ctx, func(i int, _ T) T { return value(i) }); err != nil {
			return err
		}
		isFloat := T(1)/T(2) != 0
		for op := pgsync.Sum; op <= pgsync.Replace+1; op++ {
			got, err := pgas.Reduce(ctx, a, op)
			bits := op == pgsync.And || op == pgsync.Or || op == pgsync.Xor
			switch {
			case op >= pgsync.Replace || bits && isFloat:
				require.Error(t, err)
				continue
			case n == 0:
				require.ErrorIs(t, err, pgas.ErrRange)
				continue
			}
			require.NoError(t, err)
			want := value(0)
			for i := 1; i < n; i++ {
				v := value(i)
				switch op {
				case pgsync.Sum:
					want += v
				case pgsync.Prod:
					want *= v
				case pgsync.Min:
					want = min(want, v)
				case pgsync.Max:
					want = max(want, v)
				case pgsync.And:
					want = T(int64(want) & int64(v))
				case pgsync.Or:
					want = T(int64(want) | int64(v))
				case pgsync.Xor:
					want = T(int64(want) ^ int64(v))
				}
			}
			require.Equal(t, want, got, "%T, %d elements, %s, operation %d", want, n, l, op)
		}
		if err := a.Free(ctx); err != nil {
			return err
		}
	}
	return nil
}

func TestReduce(t *testing.T) {
	pgastest.Each(t, []int{3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, n := range []int{0, 2, 29} {
			if err := reduces(ctx, t, w, n, func(i int) int32 { return int32(i*i%11 - 3) }); err != nil {
				return err
			}
			if err := reduces(ctx, t, w, n, func(i int) uint8 { return uint8(7 * i) }); err != nil {
				return err
			}
			// Powers of two, so that every order of the factors gives the same.
			if err := reduces(ctx, t, w, n, func(i int) float64 { return []float64{-2, 0.5, 4, -1}[i%4] }); err != nil {
				return err
			}
		}
		return nil
	})
}
