package window_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
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

// TestGetSignalOrders: for the race check the owner comes after the get when it has seen its signal, and does not without.
func TestGetSignalOrders(t *testing.T) {
	for name, c := range map[string]struct {
		told  bool
		races int
	}{"told": {true, 0}, "not told": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var races []string
			say := func(text string) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(text, "race: ") {
					races = append(races, text)
				}
			}
			pgastest.RunConfig(t, 2, pgastest.Config{Check: "races,declared", Say: say}, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int](ctx, w.Team(), 8)
				if err != nil {
					return err
				}
				sigs, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				read := sigs.Signal(0)
				if w.Rank() == 1 {
					dst := make([]int, 8)
					if c.told {
						err = win.GetSignal(0, 0, dst, read, 1)
					} else {
						err = errors.Join(read.Set(0, 1), win.Get(0, 0, dst))
					}
				} else if _, err = read.WaitUntil(ctx, pgsync.Equal, 1); err == nil {
					err = win.CheckWrite(0, 8)
				}
				return errors.Join(err, sigs.Free(ctx), win.Free(ctx))
			})
			require.Len(t, races, c.races)
		})
	}
}
