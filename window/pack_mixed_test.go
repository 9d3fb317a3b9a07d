package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestOthersTravelBesidePacked: what is not packed is under way together, and with what is packed: in virtual time, one packed piece more makes a call little longer.
func TestOthersTravelBesidePacked(t *testing.T) {
	const ranks, most = 8, 64
	pgastest.RunSim(t, pgastest.SimConfig{Ranks: ranks, Seed: 1}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2*most)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			var pieces []window.Piece // each but the last is too short to be packed
			near := 0
			for i := range most {
				rows := 7 + i/(most-1)
				pieces = append(pieces, window.Piece{Target: 1 + i%(ranks-1), Disp: 2 * i % most, Near: near, Section: window.Section{
					Rows: rows, Cols: 1, Stride: 1, Step: 1, NearStride: 2, NearStep: 1,
				}})
				near += 2 * rows
			}
			buf := make([]int64, near)
			for _, c := range []struct {
				name string
				call func(p []window.Piece) error
			}{
				{"get", func(p []window.Piece) error { return win.GetSections(buf, p) }},
				{"put", func(p []window.Piece) error { return errors.Join(win.PutSections(buf, p), win.FlushAll()) }},
				{"put-nb", func(p []window.Piece) error {
					hs, err := win.PutSectionsNB(buf, p)
					return errors.Join(err, hs.Wait(ctx), win.FlushAll())
				}},
			} {
				var took [2]time.Duration
				for range 3 { // the first ones connect
					for i, p := range [][]window.Piece{pieces[:most-1], pieces} {
						begin := virtual(w)
						if err := c.call(p); err != nil {
							return fmt.Errorf("%s: %w", c.name, err)
						}
						took[i] = virtual(w) - begin
					}
				}
				require.Less(t, took[1], 2*took[0], "%s: without a packed piece %v", c.name, took[0])
			}
		}
		return errors.Join(win.Fence(ctx), win.Free(ctx))
	})
}

// virtual is the time of a simulation.
func virtual(w *pgas.World) time.Duration { return w.Team().Engine().Sched.Now() }
