package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// plain is a matrix in ordinary memory.
type plain struct {
	rows, cols int
	v          []int32
}

func newPlain(rows, cols int, f func(i, j int) int32) *plain {
	p := &plain{rows, cols, make([]int32, rows*cols)}
	for i := range rows {
		for j := range cols {
			p.v[i*cols+j] = f(i, j)
		}
	}
	return p
}

func (p *plain) at(i, j int) *int32 { return &p.v[i*p.cols+j] }

// elements calls f for the elements of an area, which exist, in order.
func (p *plain) elements(a pgas.Area, f func(x *int32)) {
	for i := range a.Rows {
		for j := range a.Cols {
			f(p.at(a.Row+i*max(1, a.RowStep), a.Col+j*max(1, a.ColStep)))
		}
	}
}

// randomArea is an area of a matrix of rows by cols elements, with steps or without.
func randomArea(rng *rand.Rand, rows, cols int) pgas.Area {
	line := func(size int) (lo, n, step int) {
		if step = rng.IntN(4); step == 3 {
			step = 1 + rng.IntN(size+1)
		}
		lo = rng.IntN(size + 1)
		if lo < size {
			n = rng.IntN((size-1-lo)/max(1, step) + 2)
		}
		return lo, n, step
	}
	var a pgas.Area
	a.Row, a.Rows, a.RowStep = line(rows)
	a.Col, a.Cols, a.ColStep = line(cols)
	return a
}

// grids are grids for n members.
func grids(n int) []pgas.Grid {
	out := []pgas.Grid{{}, {Rows: 1, Ghost: 1}, {Cols: 1, Ghost: 2, PeriodicCols: true}}
	if n == 4 {
		out = append(out, pgas.Grid{Rows: 2, Cols: 2, Ghost: 3, PeriodicRows: true, PeriodicCols: true})
	}
	return out
}

// matrixHolds wants the whole of m to be want, and nobody to change it before all have looked.
func matrixHolds(ctx context.Context, t *testing.T, m *pgas.Matrix[int32], want *plain, text ...any) error {
	all := make([]int32, len(want.v))
	if err := errors.Join(m.Fence(ctx), m.Get(pgas.Area{Rows: want.rows, Cols: want.cols}, all), m.Fence(ctx)); err != nil {
		return err
	}
	require.Equal(t, want.v, all, text...)
	return nil
}

func TestMatrixAreas(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for k, g := range grids(w.Size()) {
			for _, size := range [][2]int{{9, 11}, {3, 2}, {0, 4}} {
				rows, cols := size[0], size[1]
				m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, g)
				if err != nil {
					return err
				}
				require.Equal(t, size, [2]int{m.Rows(), m.Cols()})
				want := newPlain(rows, cols, func(_, _ int) int32 { return 0 })
				rng := rand.New(rand.NewPCG(uint64(k), 9)) // the same on all ranks
				for round := range 7 {
					a := randomArea(rng, rows, cols)
					src := make([]int32, a.Rows*a.Cols)
					for i := range src {
						src[i] = int32(1000*round + i + 1)
					}
					i := 0
					want.elements(a, func(x *int32) { *x = src[i]; i++ })
					if round%w.Size() == w.Rank() {
						if round%2 == 0 {
							err = m.Put(a, src)
						} else if hs, nerr := m.PutNB(a, src); nerr == nil {
							err = hs.Wait(ctx)
						} else {
							err = nerr
						}
						if err != nil {
							return err
						}
					}
					if err := m.Fence(ctx); err != nil {
						return err
					}
					b := randomArea(rng, rows, cols)
					got := make([]int32, b.Rows*b.Cols)
					if round%3 == 0 {
						var hs window.Handles
						hs, err = m.GetNB(b, got)
						err = errors.Join(err, hs.Wait(ctx))
					} else {
						err = m.Get(b, got)
					}
					if err := errors.Join(err, m.Fence(ctx)); err != nil {
						return err
					}
					i = 0
					want.elements(b, func(x *int32) { require.Equal(t, *x, got[i], "%+v", b); i++ })
				}
				if err := matrixHolds(ctx, t, m, want, fmt.Sprintf("%+v", m.Grid())); err != nil {
					return err
				}
				mine := 0
				var owned []int32
				for row := range m.Owned() {
					owned = append(owned, row...)
				}
				for at, x := range m.Mine() {
					require.Equal(t, owned[mine], *x)
					require.Equal(t, *want.at(at[0], at[1]), *x)
					member, _ := m.Owner(at[0], at[1])
					require.Equal(t, w.Rank(), member)
					mine++
				}
				b := m.Block(w.Rank())
				require.Equal(t, b.Rows*b.Cols, mine)
				require.Len(t, owned, mine)
				for _, bad := range []pgas.Area{{Rows: rows + 1, Cols: 1}, {Row: -1, Rows: 1, Cols: 1}, {Col: cols, Rows: 1, Cols: 1}} {
					n := bad.Rows * bad.Cols
					require.ErrorIs(t, m.Get(bad, make([]int32, n)), pgas.ErrRange)
					require.ErrorIs(t, m.Put(bad, make([]int32, n)), pgas.ErrRange)
					_, err = m.GetNB(bad, make([]int32, n))
					require.ErrorIs(t, err, pgas.ErrRange)
					_, err = m.PutNB(bad, make([]int32, n))
					require.ErrorIs(t, err, pgas.ErrRange)
				}
				require.ErrorIs(t, m.Get(pgas.Area{}, make([]int32, 1)), pgas.ErrRange)
				require.Panics(t, func() { m.Owner(rows, 0) })
				require.Panics(t, func() { m.Row(b.Rows + m.Grid().Ghost) })
				require.Panics(t, func() { m.Block(w.Size()) })
				require.Panics(t, func() { m.Block(-1) })
				if rows == 9 {
					if err := m.Fence(ctx); err != nil { // all have looked
						return err
					}
					if err := elementsOf(ctx, t, w, m, want); err != nil {
						return err
					}
				}
				if err := m.Free(ctx); err != nil {
					return err
				}
			}
		}
		_, err := pgas.NewMatrix[int32](ctx, w.Team(), 3, 3, pgas.Grid{Rows: w.Size() + 1})
		require.ErrorIs(t, err, pgas.ErrConfig)
		if w.Size() > 1 {
			_, err = pgas.NewMatrix[int32](ctx, w.Team(), 3, 3+w.Rank()%2, pgas.Grid{})
			require.ErrorIs(t, err, pgsync.ErrMismatch)
		}
		return nil
	})
}

// elementsOf has one rank use single elements and pointers.
func elementsOf(ctx context.Context, t *testing.T, w *pgas.World, m *pgas.Matrix[int32], want *plain) error {
	*want.at(8, 10), *want.at(4, 3) = -5, -6
	if w.Rank() == w.Size()-1 {
		if err := errors.Join(m.Set(8, 10, -5), m.Ptr(4, 3).Store(-6), m.Flush()); err != nil {
			return err
		}
		v, err := m.At(4, 3)
		require.NoError(t, err)
		require.EqualValues(t, -6, v)
		_, err = m.At(9, 0)
		require.ErrorIs(t, err, pgas.ErrRange)
		require.ErrorIs(t, m.Set(0, -1, 0), pgas.ErrRange)
	}
	return matrixHolds(ctx, t, m, want)
}

// TestGhosts compares every cell of every frame with the element that it shows.
func TestGhosts(t *testing.T) {
	pgastest.Each(t, []int{1, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for ghost := range 4 {
			for edges := range 4 {
				for _, size := range [][2]int{{7, 10}, {2, 3}} { // the second with frames that reach across blocks, and round
					g := pgas.Grid{Ghost: ghost, PeriodicRows: edges&1 != 0, PeriodicCols: edges&2 != 0}
					if ghost == 2 {
						g.Cols = 1
					}
					if err := ghosts(ctx, t, w, size[0], size[1], g); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func ghosts(ctx context.Context, t *testing.T, w *pgas.World, rows, cols int, g pgas.Grid) error {
	const untouched = -1
	m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, g)
	if err != nil {
		return err
	}
	b := m.Block(w.Rank())
	for i := -g.Ghost; i < b.Rows+g.Ghost; i++ {
		for j := range m.Row(i) {
			m.Row(i)[j] = untouched
		}
	}
	for round := range int32(2) {
		if err := m.Apply(ctx, func(i, j int, _ int32) int32 { return round*1000 + int32(i*cols+j) }); err != nil {
			return err
		}
		if err := m.UpdateGhosts(ctx); err != nil {
			return err
		}
		if b.Rows == 0 || b.Cols == 0 {
			continue
		}
		for i := -g.Ghost; i < b.Rows+g.Ghost; i++ {
			for j := -g.Ghost; j < b.Cols+g.Ghost; j++ {
				gi, gj := b.Row+i, b.Col+j
				if g.PeriodicRows {
					gi = (gi + 100*rows) % rows
				}
				if g.PeriodicCols {
					gj = (gj + 100*cols) % cols
				}
				want := int32(untouched)
				if gi >= 0 && gi < rows && gj >= 0 && gj < cols {
					want = round*1000 + int32(gi*cols+gj)
				}
				require.Equal(t, want, m.Row(i)[j+g.Ghost], "%d by %d, %+v, cell (%d, %d) of %+v", rows, cols, g, i, j, b)
			}
		}
	}
	return m.Free(ctx)
}

func TestMatrixCopyTransposeReduce(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rows, cols = 10, 13
		value := func(i, j int) int32 { return int32(100*i + j) }
		for _, from := range grids(w.Size()) {
			src, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, from)
			if err != nil {
				return err
			}
			if err := src.Apply(ctx, func(i, j int, _ int32) int32 { return value(i, j) }); err != nil {
				return err
			}
			sum, err := pgas.Reduce(ctx, src, pgsync.Sum)
			require.NoError(t, err)
			require.EqualValues(t, 13*100*45+10*78, sum)
			for _, to := range grids(w.Size()) {
				same, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, to)
				if err != nil {
					return err
				}
				turned, err := pgas.NewMatrix[int32](ctx, w.Team(), cols, rows, to)
				if err != nil {
					return err
				}
				if err := errors.Join(same.Fill(ctx, 4), same.CopyFrom(ctx, src), turned.Transpose(ctx, src)); err != nil {
					return err
				}
				if err := matrixHolds(ctx, t, same, newPlain(rows, cols, value)); err != nil {
					return err
				}
				back := newPlain(cols, rows, func(i, j int) int32 { return value(j, i) })
				if err := matrixHolds(ctx, t, turned, back); err != nil {
					return err
				}
				require.ErrorIs(t, turned.CopyFrom(ctx, src), pgsync.ErrMismatch)
				require.ErrorIs(t, same.Transpose(ctx, src), pgsync.ErrMismatch)
				require.ErrorIs(t, same.CopyFrom(ctx, same), pgsync.ErrMismatch)
				if err := errors.Join(same.Free(ctx), turned.Free(ctx)); err != nil {
					return err
				}
			}
			if err := src.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
