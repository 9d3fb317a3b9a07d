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

// TestBarrierBehindAFailedPut: a put that has failed is told by a flush, and not by a barrier, also where something is under way that the target's CPU performs: the others would wait for ever.
func TestBarrierBehindAFailedPut(t *testing.T) {
	for _, over := range []string{"", "soft", "tcp"} {
		t.Run("over "+over, func(t *testing.T) {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: over, TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
				d, err := window.NewDynamic[int](ctx, w.Team())
				if err != nil {
					return err
				}
				refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				sums, err := window.Allocate[int](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				var ref window.Ref
				if w.Rank() == 1 {
					if ref, err = d.Alloc(100); err == nil {
						err = errors.Join(refs.Put(0, 0, []window.Ref{ref}), refs.Flush(0))
					}
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				var gone *window.Window[int]
				if w.Rank() == 0 {
					gone, err = d.Reach(refs.Local()[0])
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = d.Detach(ref)
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 0 {
					require.NoError(t, gone.Put(1, 0, make([]int, 100)))
					require.NoError(t, refs.Get(1, 0, make([]window.Ref, 1)), "it comes back when the put has failed")
					require.NoError(t, window.Accumulate(sums, 1, 0, []int{7}, pgsync.Max))
				}
				require.NoError(t, w.Barrier(ctx), "rank %d", w.Rank())
				if w.Rank() == 0 {
					require.ErrorContains(t, gone.Flush(1), "refused the access")
					require.NoError(t, errors.Join(sums.Flush(1), gone.Free(ctx)))
				}
				return errors.Join(sums.Free(ctx), refs.Free(ctx), d.Free(ctx))
			})
		})
	}
}
