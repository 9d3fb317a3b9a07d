package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestRepeatedRowsMoveOnce: rows, or columns, that lie at one place at both ends are one, however many there are, on every path.
func TestRepeatedRowsMoveOnce(t *testing.T) {
	const many, square = 1 << 60, 1 << 32 // of which there are 2^64
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n = 4
		win, err := window.Allocate[int32](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		for i, c := range []struct {
			s    window.Section
			some int // elements that it has
		}{
			{window.Section{Rows: square, Cols: square}, 1},
			{window.Section{Rows: many, Cols: 1, Step: 1, NearStep: 1}, 1},
			{window.Section{Rows: many, Cols: 3, Step: 1, NearStep: 1}, 3},
			{window.Section{Rows: 2, Cols: many, Stride: 2, NearStride: 1}, 2},
			{window.Section{Rows: many, Cols: many}, 1},
			{window.Section{Rows: 1, Cols: many}, 1},
		} {
			src, dst := []int32{int32(10*i + 1), int32(10*i + 2), int32(10*i + 3)}, make([]int32, 3)
			want := make([]int32, len(src))
			copy(want, src[:c.some])
			for _, nb := range []bool{false, true} {
				if err := errors.Join(win.Put(next, 0, make([]int32, n)), win.Flush(next)); err != nil {
					return err
				}
				clear(dst)
				if err := errors.Join(putSection(ctx, win, nb, next, 0, src, c.s), win.Flush(next), getSection(ctx, win, nb, next, 0, dst, c.s)); err != nil {
					return err
				}
				require.Equal(t, want, dst, "%+v", c.s)
			}
		}
		return win.Free(ctx)
	})
}

// TestSectionsThatNeverEnd: what has more elements than there are anywhere, of places that are there, is refused.
func TestSectionsThatNeverEnd(t *testing.T) {
	const n = 1<<24 + 1
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int8](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		buf := make([]int8, n)
		s := window.Section{Rows: n, Cols: n, Stride: 1, NearStep: 1}
		require.ErrorIs(t, win.PutSection(0, 0, buf, s), window.ErrRange)
		require.ErrorIs(t, win.GetSections(buf, []window.Piece{{Section: s}}), window.ErrRange)
		return win.Free(ctx)
	})
}
