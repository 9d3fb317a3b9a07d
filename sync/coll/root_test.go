package coll_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// TestOneRootForLong: calls of one kind and length, all with the same root, as a program's main loop makes them: some members only ever give, others only take.
func TestOneRootForLong(t *testing.T) {
	const many, n = 150, 5000
	for _, ranks := range []int{2, 4} {
		pgastest.RunConfig(t, ranks, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
			mine, all := make([]int, n), make([]int, n*w.Size())
			if w.Rank() != 0 {
				all = nil
			}
			for round := range many {
				mine[n-1] = round
				steps := []func() error{
					func() error { return pgsync.Broadcast(ctx, w.Team(), mine, 0) },
					func() error { return coll.Gather(ctx, w.Team(), all, mine, 0) },
					func() error { return coll.Scatter(ctx, w.Team(), mine, all, 0) },
				}
				for _, step := range steps {
					if err := step(); err != nil {
						return err
					}
					require.Equal(t, round, mine[n-1])
				}
			}
			return nil
		})
	}
}
