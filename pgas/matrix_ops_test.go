package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// TestAccumulateArea: all members accumulate into areas of all shapes at once, rows long and short, and the sum is that of a plain matrix.
func TestAccumulateArea(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		all := grids(w.Size())
		for k, size := range [][2]int{{7, 9}, {3, 700}} {
			for _, g := range []pgas.Grid{all[k], all[len(all)-1]} {
				rows, cols := size[0], size[1]
				m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, g)
				if err != nil {
					return err
				}
				want := newPlain(rows, cols, func(_, _ int) int32 { return 0 })
				rng := rand.New(rand.NewPCG(uint64(k), 5)) // the same on all ranks
				for round := range 4 {
					a := randomArea(rng, rows, cols)
					if round == 0 {
						a = pgas.Area{Rows: rows, Cols: cols}
					}
					src := make([]int32, a.Rows*a.Cols)
					for member := range w.Size() {
						i := 0
						want.elements(a, func(x *int32) { *x += int32((member + 1) * (round + i)); i++ })
					}
					for i := range src {
						src[i] = int32((w.Rank() + 1) * (round + i))
					}
					if err := pgas.AccumulateArea(m, a, src, pgsync.Sum); err != nil {
						return err
					}
				}
				if err := matrixHolds(ctx, t, m, want, fmt.Sprintf("%+v", g)); err != nil {
					return err
				}
				one := pgas.Area{Row: rows - 1, Rows: 1, Cols: cols}
				line := make([]int32, cols)
				for i := range line {
					line[i] = int32(w.Rank())
					*want.at(rows-1, i) = max(*want.at(rows-1, i), int32(w.Size()-1))
				}
				if err := errors.Join(pgas.AccumulateArea(m, one, line, pgsync.Max), matrixHolds(ctx, t, m, want)); err != nil {
					return err
				}
				for _, bad := range []pgas.Area{{Rows: rows + 1, Cols: 1}, {Row: -1, Rows: 1, Cols: 1}, {Col: cols, Rows: 1, Cols: 1}, {Rows: 1, Cols: 2, ColStep: cols}} {
					require.ErrorIs(t, pgas.AccumulateArea(m, bad, make([]int32, bad.Rows*bad.Cols), pgsync.Sum), pgas.ErrRange)
				}
				require.ErrorIs(t, pgas.AccumulateArea(m, one, line[1:], pgsync.Sum), pgas.ErrRange)
				require.NoError(t, pgas.AccumulateArea(m, pgas.Area{}, nil, pgsync.Sum))
				if err := errors.Join(matrixHolds(ctx, t, m, want, "refused calls changed something"), m.Free(ctx)); err != nil {
					return err
				}
			}
		}
		return floatArea(ctx, t, w)
	})
}

// floatArea accumulates floats, with which not every operation works.
func floatArea(ctx context.Context, t *testing.T, w *pgas.World) error {
	m, err := pgas.NewMatrix[float64](ctx, w.Team(), 2, 300, pgas.Grid{})
	if err != nil {
		return err
	}
	for _, cols := range []int{3, 300} { // together, and row by row
		a := pgas.Area{Rows: 2, Cols: cols}
		src, got := make([]float64, 2*cols), make([]float64, 2*cols)
		for i := range src {
			src[i] = 0.5
		}
		require.Error(t, pgas.AccumulateArea(m, a, src, pgsync.Xor))
		err := errors.Join(m.Fill(ctx, 1), pgas.AccumulateArea(m, a, src, pgsync.Sum), m.Fence(ctx), m.Get(a, got), m.Fence(ctx))
		if err != nil {
			return err
		}
		for _, v := range got {
			require.Equal(t, 1+0.5*float64(w.Size()), v)
		}
	}
	return m.Free(ctx)
}

func TestMatrixScatterAndGather(t *testing.T) {
	const rows, cols = 8, 11
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, g := range grids(w.Size())[1:] {
			m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, g)
			if err != nil {
				return err
			}
			want := newPlain(rows, cols, func(i, j int) int32 { return int32(1000 + 100*i + j) })
			rng := rand.New(rand.NewPCG(4, uint64(w.Rank())))
			var at [][2]int
			var src []int32
			for _, k := range rng.Perm(rows * cols) {
				if k%w.Size() == w.Rank() {
					at, src = append(at, [2]int{k / cols, k % cols}), append(src, want.v[k])
				}
			}
			if err := errors.Join(m.Scatter(src, at), matrixHolds(ctx, t, m, want, fmt.Sprintf("%+v", g))); err != nil {
				return err
			}
			at = at[:0]
			for range 100 { // with repetitions
				at = append(at, [2]int{rng.IntN(rows), rng.IntN(cols)})
			}
			dst := make([]int32, len(at))
			if err := m.Gather(dst, at); err != nil {
				return err
			}
			for k, x := range at {
				require.Equal(t, *want.at(x[0], x[1]), dst[k])
			}
			for _, bad := range [][2]int{{-1, 0}, {0, -1}, {rows, 0}, {0, cols}} {
				require.ErrorIs(t, m.Gather(make([]int32, 2), [][2]int{{0, 0}, bad}), pgas.ErrRange)
				require.ErrorIs(t, m.Scatter(make([]int32, 2), [][2]int{{0, 0}, bad}), pgas.ErrRange)
			}
			require.ErrorIs(t, m.Gather(make([]int32, 2), [][2]int{{0, 0}}), pgas.ErrRange)
			require.NoError(t, m.Scatter(nil, nil))
			if err := errors.Join(matrixHolds(ctx, t, m, want, "refused calls moved something"), m.Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMatrixCombine(t *testing.T) {
	const rows, cols = 9, 7
	f := func(x, y int32) int32 { return 10*x - y }
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		all := grids(w.Size())
		for _, k := range []int{0, len(all) - 1} {
			var m [3]*pgas.Matrix[int32]
			for i := range m {
				var err error
				if m[i], err = pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, all[(k+i)%len(all)]); err != nil {
					return err
				}
				if err := m[i].Apply(ctx, func(r, c int, _ int32) int32 { return int32(1000*i + 10*r + c) }); err != nil {
					return err
				}
			}
			value := func(i, r, c int) int32 { return int32(1000*i + 10*r + c) }
			if err := errors.Join(m[0].UpdateGhosts(ctx), m[0].Combine(ctx, m[1], m[2], f)); err != nil {
				return err
			}
			want := newPlain(rows, cols, func(r, c int) int32 { return f(value(1, r, c), value(2, r, c)) })
			if err := matrixHolds(ctx, t, m[0], want, fmt.Sprintf("%+v", all[k])); err != nil {
				return err
			}
			if err := errors.Join(m[1].Combine(ctx, m[1], m[2], f), m[2].Combine(ctx, m[2], m[2], f)); err != nil {
				return err
			}
			twice := newPlain(rows, cols, func(r, c int) int32 { return f(value(2, r, c), value(2, r, c)) })
			if err := errors.Join(matrixHolds(ctx, t, m[1], want, "into one of them"), matrixHolds(ctx, t, m[2], twice, "into both")); err != nil {
				return err
			}
			other, err := pgas.NewMatrix[int32](ctx, w.Team(), cols, rows, pgas.Grid{})
			if err != nil {
				return err
			}
			require.ErrorIs(t, m[0].Combine(ctx, m[1], other, f), pgsync.ErrMismatch)
			require.ErrorIs(t, other.Combine(ctx, m[1], other, f), pgsync.ErrMismatch)
			if err := errors.Join(other.Free(ctx), m[0].Free(ctx), m[1].Free(ctx), m[2].Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMatrixResize(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, g := range grids(w.Size())[2:] {
			m, err := pgas.NewMatrix[int32](ctx, w.Team(), 6, 5, pgas.Grid{})
			if err != nil {
				return err
			}
			value := func(i, j int) int32 { return int32(1 + 100*i + j) }
			if err := m.Apply(ctx, func(i, j int, _ int32) int32 { return value(i, j) }); err != nil {
				return err
			}
			kept := [2]int{6, 5}
			for _, size := range [][2]int{{9, 4}, {2, 12}, {0, 3}, {4, 4}} {
				if err := m.Resize(ctx, size[0], size[1], g); err != nil {
					return err
				}
				require.Equal(t, size, [2]int{m.Rows(), m.Cols()})
				require.Equal(t, g.Ghost, m.Grid().Ghost)
				kept = [2]int{min(kept[0], size[0]), min(kept[1], size[1])}
				want := newPlain(size[0], size[1], func(i, j int) int32 {
					if i < kept[0] && j < kept[1] {
						return value(i, j)
					}
					return 0
				})
				if err := matrixHolds(ctx, t, m, want, fmt.Sprintf("%v, %+v", size, g)); err != nil {
					return err
				}
			}
			require.ErrorIs(t, m.Resize(ctx, -1, 2, g), pgas.ErrRange)
			require.Equal(t, 4, m.Rows(), "as it was")
			if err := m.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
