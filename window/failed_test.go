package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestFailedPutAndTheOthers: a put of one member has failed, and its fence, or the end of a window or of signals, says so. The others learn no less than
// that it was there: nobody waits, and the members go on together.
func TestFailedPutAndTheOthers(t *testing.T) {
	c := pgastest.Config{NIC: true, TimeLimit: 10 * time.Second}
	for name, call := range map[string]func(ctx context.Context, win *window.Window[window.Ref], s *pgsync.Signals) error{
		"fence": func(ctx context.Context, win *window.Window[window.Ref], _ *pgsync.Signals) error {
			return win.Fence(ctx)
		},
		"free": func(ctx context.Context, win *window.Window[window.Ref], _ *pgsync.Signals) error {
			return win.Free(ctx)
		},
		"free of signals": func(ctx context.Context, _ *window.Window[window.Ref], s *pgsync.Signals) error {
			return s.Free(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
				d, err := window.NewDynamic[int64](ctx, w.Team())
				if err != nil {
					return err
				}
				refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					ref, err := d.Attach(make([]int64, 4))
					if err != nil {
						return err
					}
					if err := errors.Join(refs.Put(0, 0, []window.Ref{ref}), refs.Fence(ctx), d.Detach(ref), w.Barrier(ctx)); err != nil {
						return err
					}
				} else if err := errors.Join(refs.Fence(ctx), w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 0 {
					win, err := d.Reach(refs.Local()[0])
					if err != nil {
						return err
					}
					if err := win.Put(1, 0, []int64{1}); err != nil {
						return err
					}
				}
				switch err := call(ctx, refs, signals); w.Rank() {
				case 0:
					require.ErrorContains(t, err, "the memory was freed, or its key is wrong")
				default:
					require.NoError(t, err)
				}
				sum := []int{1}
				if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
					return err
				}
				require.Equal(t, 3, sum[0])
				if name == "free of signals" {
					require.ErrorIs(t, signals.Free(ctx), pgas.ErrClosed)
				}
				return nil
			})
		})
	}
}
