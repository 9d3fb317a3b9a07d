package pgsync_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestFreeAndBarrier: a member that frees a team while the others are in a barrier of it does not make the same call as they do.
func TestFreeAndBarrier(t *testing.T) {
	for _, path := range pgastest.PathsOf(t) {
		for _, n := range path.Worlds([]int{2, 3}) {
			t.Run(path.Name, func(t *testing.T) {
				path.TimeLimit = 20 * time.Second
				pgastest.RunConfig(t, n, path.Config, func(ctx context.Context, w *pgas.World) error {
					team, err := w.Team().Split(ctx, 0, 0)
					if err != nil {
						return err
					}
					if err := team.Barrier(ctx); err != nil { // all members have it
						return err
					}
					if w.Rank() == 0 {
						err = team.Free(ctx)
					} else {
						err = team.Barrier(ctx)
					}
					require.ErrorIs(t, err, pgsync.ErrMismatch)
					return w.Barrier(ctx)
				})
			})
		}
	}
}
