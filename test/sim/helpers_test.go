package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestGoroutinesOfARankShareItsNIC: a goroutine that is given time for its operation holds nothing that another one of its
// rank needs to run at all.
func TestGoroutinesOfARankShareItsNIC(t *testing.T) {
	const ranks, helpers, times = 4, 3, 12
	f := func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[float32](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		s := w.Team().Engine().Sched
		left, errs := helpers, [helpers]error{}
		for h := range helpers {
			s.Go(func() {
				defer func() { left-- }()
				for i := range times * ranks {
					if err := window.Accumulate(win, i%ranks, 0, []float32{1}, pgsync.Sum); err != nil {
						errs[h] = err
						return
					}
				}
				errs[h] = win.FlushAll()
			})
		}
		if err := s.WaitUntil(ctx, func() bool { return left == 0 }); err != nil {
			return err
		}
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if have := win.Local()[0]; have != ranks*helpers*times {
			return fmt.Errorf("the sum is %v, not %d", have, ranks*helpers*times)
		}
		return win.Free(ctx)
	}
	for _, mapped := range []bool{false, true} {
		for seed := range uint64(4) {
			r := pgastest.RunSim(t, pgastest.SimConfig{Ranks: ranks, RanksPerNode: 2, Mapped: mapped, Seed: seed}, f)
			require.Zero(t, r.Sched.LostRings, "mapped %v, seed %d", mapped, seed)
		}
	}
}
