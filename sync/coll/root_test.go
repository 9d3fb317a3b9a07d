package coll_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// TestOneRootForLong: calls of one kind and length, all with the same root, as a program's main loop makes them: some members only ever give, others only take.
func TestOneRootForLong(t *testing.T) {
	const many, n = 200, 5000
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
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
	}, 2, 4)
}
