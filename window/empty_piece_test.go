package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/window"
)

// TestEmptyPiecesMoveNothing: of several pieces some may be empty, by rows or by columns, wherever they would begin, on every path.
func TestEmptyPiecesMoveNothing(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n = 12
		win, err := window.Allocate[int32](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		full := window.Piece{Target: next, Disp: 3, Near: 1, Section: window.Packed(2, 2, 3)}
		src := []int32{-1, 11, 12, 13, 14}
		for _, empty := range []window.Piece{
			{Target: next, Disp: 1000, Section: window.Packed(3, 0, 1)},
			{Target: next, Disp: -7, Section: window.Packed(3, 0, 1)},
			{Target: next, Near: 5, Section: window.Section{Rows: 3, NearStride: 2, Step: 1, NearStep: 1}},
			{Target: next, Section: window.Section{Rows: 3, Stride: -2, Step: 1, NearStep: 1}},
			{Target: next, Disp: 1000, Section: window.Packed(0, 3, 1)},
		} {
			pieces := []window.Piece{empty, full, empty}
			dst := make([]int32, len(src))
			puts, perr := win.PutSectionsNB(src, pieces)
			gets, gerr := win.GetSectionsNB(make([]int32, len(src)), pieces)
			require.NoError(t, errors.Join(perr, gerr, puts.Wait(ctx), gets.Wait(ctx)))
			if err := errors.Join(win.PutSections(src, pieces), win.FlushAll(), win.GetSections(dst, pieces)); err != nil {
				return err
			}
			require.Equal(t, []int32{0, 11, 12, 13, 14}, dst, "%+v", empty)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.Equal(t, []int32{0, 0, 0, 11, 12, 0, 13, 14, 0, 0, 0, 0}, win.Local())
		return win.Free(ctx)
	})
}
