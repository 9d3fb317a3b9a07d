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
	"gopgas/window"
)

// TestScan: prefixes of arrays in every layout are those of a slice.
func TestScan(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, n := range []int{0, 1, 2, 83, 700} {
			for _, l := range layouts(n, w.Size()) {
				for _, op := range []pgsync.Op{pgsync.Sum, pgsync.Min, pgsync.Xor} {
					if err := scans(ctx, t, w, n, l, op, func(i int) int32 { return int32(i*i%29 - 7) }); err != nil {
						return err
					}
				}
				if err := scans(ctx, t, w, n, l, pgsync.Prod, func(i int) uint8 { return uint8(2*i + 1) }); err != nil {
					return err
				}
				if err := scans(ctx, t, w, n, l, pgsync.Sum, func(i int) float64 { return float64(i) / 4 }); err != nil { // exactly
					return err
				}
			}
		}
		a, err := pgas.NewArray[float32](ctx, w.Team(), 9, pgas.Cyclic())
		if err != nil {
			return err
		}
		require.ErrorIs(t, pgas.Scan(ctx, a, pgsync.And), window.ErrType)
		require.ErrorIs(t, pgas.Scan(ctx, a, pgsync.Replace), window.ErrType)
		return a.Free(ctx)
	})
}

// TestTwoOps: members that combine by different operations all learn of it.
func TestTwoOps(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 9, pgas.Block())
		if err != nil {
			return err
		}
		op := []pgsync.Op{pgsync.Max, pgsync.Min, pgsync.Max}[w.Rank()]
		_, err = pgas.Reduce(ctx, a, op)
		require.ErrorIs(t, err, pgsync.ErrMismatch)
		require.ErrorIs(t, pgas.Scan(ctx, a, op), pgsync.ErrMismatch)
		if _, err := pgas.Reduce(ctx, a, pgsync.Sum); err != nil {
			return err
		}
		return a.Free(ctx)
	})
}

// scans compares a scan of an array with that of a slice.
func scans[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World, n int, l pgas.Layout, op pgsync.Op, value func(i int) T) error {
	a, err := pgas.NewArray[T](ctx, w.Team(), n, l)
	if err != nil {
		return err
	}
	want := make([]T, n)
	for i := range want {
		want[i] = value(i)
		if i > 0 {
			want[i] = pairwise(op, want[i-1], want[i])
		}
	}
	err = errors.Join(a.Apply(ctx, func(i int, _ T) T { return value(i) }), pgas.Scan(ctx, a, op))
	if err != nil {
		return err
	}
	return errors.Join(holds(ctx, t, a, want, fmt.Sprintf("%v of %d, %v", op, n, l)), a.Free(ctx))
}

// pairwise combines two numbers.
func pairwise[T pgsync.Number](op pgsync.Op, x, y T) T {
	switch op {
	case pgsync.Sum:
		return x + y
	case pgsync.Prod:
		return x * y
	case pgsync.Min:
		return min(x, y)
	default: // of integers
		return T(int64(x) ^ int64(y))
	}
}
