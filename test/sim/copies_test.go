package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/window"
)

// TestCopiesInPiecesAreCharged: what is copied in pieces from or to mapped memory takes as long as what is copied in one.
func TestCopiesInPiecesAreCharged(t *testing.T) {
	const rows, cols = 256, 128 // of 1 KiB
	m := sim.Modern()
	took := map[string]time.Duration{}
	pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, RanksPerNode: 2, Mapped: true, Model: m}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2*rows*cols)
		if err != nil {
			return err
		}
		a, err := pgas.NewArray[int64](ctx, w.Team(), 2*rows*cols, pgas.Block())
		if err != nil {
			return err
		}
		buf, at := make([]int64, rows*cols), make([]int, rows*cols)
		for i := range at {
			at[i] = rows*cols + i*7%(rows*cols) // of rank 1
		}
		pieces := []window.Piece{{Target: 1, Section: window.Section{Rows: rows, Cols: cols, Stride: 2 * cols, NearStride: cols, Step: 1, NearStep: 1}}}
		for name, f := range map[string]func() error{
			"put-sections": func() error { return win.PutSections(buf, pieces) },
			"get-sections": func() error { return win.GetSections(buf, pieces) },
			"gather":       func() error { return a.Gather(buf, at) },
			"scatter":      func() error { return a.Scatter(buf, at) },
		} {
			if w.Rank() == 0 {
				began := w.Elapsed()
				if err := f(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				took[name] = w.Elapsed() - began
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	require.Len(t, took, 4)
	for name, d := range took {
		require.Equal(t, m.CopyCost(8*rows*cols, 8*rows*cols), d, name)
	}
}
