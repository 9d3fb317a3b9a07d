package pgsync_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// TestPushThatHasFailed: where what a member has pushed ahead has failed by the time that its flag is to be set, no flag says that it is there: the others would take
// for it what their inbox held before.
func TestPushThatHasFailed(t *testing.T) {
	for _, over := range []string{"", "tcp"} {
		t.Run("over "+over, func(t *testing.T) {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: over, TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
				const n = 20_000 // more than is copied, so that there is a handle to wait for
				gone, err := window.NewDynamic[int](ctx, w.Team())
				if err != nil {
					return err
				}
				refs := make([]window.Ref, 2)
				ref, err := gone.Alloc(n)
				if err := errors.Join(err, pgsync.AllGather(ctx, w.Team(), refs, []window.Ref{ref})); err != nil {
					return err
				}
				far, err := gone.Reach(refs[1])
				if err := errors.Join(err, w.Barrier(ctx), gone.Detach(ref)); err != nil {
					return err
				}
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					h, err := far.PutNB(1, 0, make([]int, n))
					require.NoError(t, err)
					for !h.Done() {
						runtime.Gosched()
					}
					team.Mislay(1, h)
				}
				err = pgsync.AllGather(ctx, team, make([]int, 2000), make([]int, 1000))
				if w.Rank() == 0 {
					require.ErrorContains(t, err, "refused the access")
					var of *transport.OpError
					require.ErrorAs(t, err, &of)
					require.Equal(t, 1, of.Rank)
				} else {
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
				}
				return errors.Join(w.Barrier(ctx), far.Free(ctx), gone.Free(ctx))
			})
		})
	}
}
