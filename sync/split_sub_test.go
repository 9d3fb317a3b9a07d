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

// TestSplitAndSub: a member that divides the team and others that list members of it do not make the same call, however long the list is.
func TestSplitAndSub(t *testing.T) {
	const n = 17
	for listed := range n + 1 {
		c := pgastest.Config{TimeLimit: 20 * time.Second}
		pgastest.RunConfig(t, n, c, func(ctx context.Context, w *pgas.World) error {
			members := make([]int, listed)
			for i := range members {
				members[i] = i
			}
			var err error
			if w.Rank() == 0 {
				_, err = w.Team().Split(ctx, 0, 0)
			} else {
				_, err = w.Team().Sub(ctx, members)
			}
			require.ErrorIs(t, err, pgsync.ErrMismatch, "%d members listed", listed)
			return w.Barrier(ctx)
		})
	}
}
