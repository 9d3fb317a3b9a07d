package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestGetSignal: who writes over memory again and again, as soon as all others have told that they have read it, is never read half written.
func TestGetSignal(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n, rounds = 200, 30
		win, err := window.Allocate[uint64](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		sigs, err := pgsync.NewSignals(ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		written, read := sigs.Signal(0), sigs.Signal(1)
		dst := make([]uint64, n)
		for round := uint64(1); round <= rounds; round++ {
			if w.Rank() == 0 {
				if _, err := read.WaitUntil(ctx, pgsync.Equal, (round-1)*uint64(w.Size()-1)); err != nil {
					return err
				}
				for i := range win.Local() {
					win.Local()[i] = round
				}
				for m := 1; m < w.Size(); m++ {
					if err := written.Set(m, round); err != nil {
						return err
					}
				}
				continue
			}
			if _, err := written.WaitUntil(ctx, pgsync.Equal, round); err != nil {
				return err
			}
			if err := win.GetSignalAdd(0, 0, dst, read, 1); err != nil {
				return err
			}
			for i, v := range dst {
				if v != round {
					return fmt.Errorf("element %d is %d in round %d", i, v, round)
				}
			}
		}
		last := w.Size() - 1
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := win.GetSignal(last, 0, dst, written, 99); err != nil {
				return err
			}
			dst[0] = 7
			require.ErrorIs(t, win.GetSignal(last, 1, dst, written, 100), window.ErrRange)
			require.ErrorIs(t, win.GetSignal(w.Size(), 0, dst, written, 100), window.ErrTarget)
			require.Error(t, win.GetSignal(last, 0, dst, pgsync.Signal{}, 100), "no such signal")
			require.Error(t, win.GetSignalAdd(last, 0, dst, pgsync.Signal{}, 100), "no such signal")
			require.EqualValues(t, 7, dst[0], "refused, but the data was brought")
		}
		if w.Rank() == last {
			if _, err := written.WaitUntil(ctx, pgsync.Equal, 99); err != nil {
				return err
			}
		}
		return errors.Join(sigs.Free(ctx), win.Free(ctx))
	})
}
