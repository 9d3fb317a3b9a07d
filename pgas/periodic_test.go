package pgas_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// randomAround is an area that may lie anywhere, and go around a matrix of rows by cols elements several times.
func randomAround(rng *rand.Rand, rows, cols int) pgas.Area {
	return pgas.Area{
		Row: rng.IntN(6*rows) - 3*rows, Col: rng.IntN(6*cols) - 3*cols, Rows: rng.IntN(2*rows + 2), Cols: rng.IntN(2*cols + 2),
		RowStep: rng.IntN(rows + 3), ColStep: rng.IntN(cols + 3),
	}
}

// TestPeriodicAreas compares gets and puts around the edges with a plain matrix whose indices are taken modulo its size.
func TestPeriodicAreas(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rows, cols = 7, 5
		mod := func(i, n int) int { return (i%n + n) % n }
		for k, g := range grids(w.Size()) {
			m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, g)
			if err != nil {
				return err
			}
			want := newPlain(rows, cols, func(i, j int) int32 { return int32(10*i + j) })
			if err := m.Apply(ctx, func(i, j int, _ int32) int32 { return int32(10*i + j) }); err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(uint64(k), 7)) // equal on all ranks
			for range 6 {
				a := randomAround(rng, rows, cols)
				buf := make([]int32, a.Rows*a.Cols)
				at := func(i, j int) (int, int) {
					return mod(a.Row+i*max(1, a.RowStep), rows), mod(a.Col+j*max(1, a.ColStep), cols)
				}
				if err := m.GetPeriodic(a, buf); err != nil {
					return err
				}
				for i := range a.Rows {
					for j := range a.Cols {
						r, c := at(i, j)
						require.Equal(t, *want.at(r, c), buf[i*a.Cols+j], "%+v of %+v: (%d, %d)", a, g, i, j)
					}
				}
				for i := range a.Rows { // the same value wherever the area meets the same element
					for j := range a.Cols {
						r, c := at(i, j)
						buf[i*a.Cols+j] = *want.at(r, c)*3 + int32(len(buf))
					}
				}
				for i := range a.Rows {
					for j := range a.Cols {
						r, c := at(i, j)
						*want.at(r, c) = buf[i*a.Cols+j]
					}
				}
				if err := m.Fence(ctx); err != nil { // all have looked
					return err
				}
				if w.Rank() == rng.IntN(w.Size()) {
					if err := m.PutPeriodic(a, buf); err != nil {
						return err
					}
				}
				if err := m.Fence(ctx); err != nil {
					return err
				}
				op := []pgsync.Op{pgsync.Sum, pgsync.Max, pgsync.Xor, pgsync.Prod}[rng.IntN(4)] // in any order the same
				for i := range a.Rows {
					for j := range a.Cols {
						buf[i*a.Cols+j] = rng.Int32N(50)
						r, c := at(i, j)
						*want.at(r, c) = apply(op, *want.at(r, c), buf[i*a.Cols+j])
					}
				}
				if w.Rank() == rng.IntN(w.Size()) {
					if err := pgas.AccumulatePeriodic(m, a, buf, op); err != nil {
						return err
					}
				}
				if err := m.Fence(ctx); err != nil {
					return err
				}
			}
			if err := matrixHolds(ctx, t, m, want); err != nil {
				return err
			}
			for _, bad := range []pgas.Area{
				{Rows: 2, Cols: 2}, {Rows: -1, Cols: -3}, {Rows: 1, Cols: 3, RowStep: -1}, {Rows: math.MaxInt, Cols: math.MaxInt},
			} {
				require.ErrorIs(t, m.GetPeriodic(bad, make([]int32, 3)), pgas.ErrRange, "%+v", bad)
				require.ErrorIs(t, m.PutPeriodic(bad, make([]int32, 3)), pgas.ErrRange, "%+v", bad)
				require.ErrorIs(t, pgas.AccumulatePeriodic(m, bad, make([]int32, 3), pgsync.Sum), pgas.ErrRange, "%+v", bad)
			}
			far := pgas.Area{Row: math.MinInt, Col: math.MaxInt, Rows: 2, Cols: 2, RowStep: math.MaxInt, ColStep: math.MaxInt}
			require.NoError(t, m.GetPeriodic(far, make([]int32, 4)))
			if err := m.Fence(ctx); err != nil { // they are the same elements for all
				return err
			}
			require.NoError(t, pgas.AccumulatePeriodic(m, far, make([]int32, 4), pgsync.Sum))
			if err := m.Free(ctx); err != nil {
				return err
			}
		}
		none, err := pgas.NewMatrix[int32](ctx, w.Team(), 0, 3, pgas.Grid{})
		if err != nil {
			return err
		}
		require.ErrorIs(t, none.GetPeriodic(pgas.Area{Rows: 1, Cols: 1}, make([]int32, 1)), pgas.ErrRange)
		require.NoError(t, errors.Join(none.GetPeriodic(pgas.Area{}, nil), none.PutPeriodic(pgas.Area{Cols: 9}, nil),
			pgas.AccumulatePeriodic(none, pgas.Area{}, nil, pgsync.Sum)))
		return none.Free(ctx)
	})
}
