package pgsync_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// callsOfEach are the collectives, on memory of the caller's own.
func callsOfEach() map[string]func(ctx context.Context, t *pgsync.Team) error {
	one, all, mine := []int{1}, []int{0}, []int{1}
	return map[string]func(ctx context.Context, t *pgsync.Team) error{
		"barrier":   func(ctx context.Context, t *pgsync.Team) error { return t.Barrier(ctx) },
		"meet":      func(ctx context.Context, t *pgsync.Team) error { return t.Meet(ctx, "fence", 1) },
		"exchange":  func(ctx context.Context, t *pgsync.Team) error { _, err := t.Exchange(ctx, nil); return err },
		"broadcast": func(ctx context.Context, t *pgsync.Team) error { return pgsync.Broadcast(ctx, t, one, 0) },
		"allgather": func(ctx context.Context, t *pgsync.Team) error { return pgsync.AllGather(ctx, t, all, mine) },
		"reduce": func(ctx context.Context, t *pgsync.Team) error {
			return pgsync.Reduce(ctx, t, all, mine, pgsync.Sum, 0)
		},
		"allreduce": func(ctx context.Context, t *pgsync.Team) error {
			return pgsync.AllReduce(ctx, t, all, mine, pgsync.Sum)
		},
		"long": func(ctx context.Context, t *pgsync.Team) error {
			long := make([]int, 1<<16)
			return pgsync.AllReduce(ctx, t, long, long, pgsync.Sum)
		},
		"scan":     func(ctx context.Context, t *pgsync.Team) error { return coll.Scan(ctx, t, all, mine, pgsync.Sum) },
		"gather":   func(ctx context.Context, t *pgsync.Team) error { return coll.Gather(ctx, t, all, mine, 0) },
		"scatter":  func(ctx context.Context, t *pgsync.Team) error { return coll.Scatter(ctx, t, all, mine, 0) },
		"alltoall": func(ctx context.Context, t *pgsync.Team) error { return coll.AllToAll(ctx, t, all, mine) },
		"split": func(ctx context.Context, t *pgsync.Team) error {
			s, err := t.Split(ctx, 0, 0)
			if err == nil {
				err = s.Free(ctx)
			}
			return err
		},
		"lock": func(ctx context.Context, t *pgsync.Team) error {
			l, err := pgsync.NewLock(ctx, t)
			if err == nil {
				err = l.Free(ctx)
			}
			return err
		},
	}
}

// TestLoneEnds: a member that is alone waits for nobody, and learns from its calls all the same that their context has ended; nothing has begun
// then, so the team is whole. What gives memory back goes on. It is so in a world of one and in a team of one.
func TestLoneEnds(t *testing.T) {
	for _, n := range []int{1, 2} {
		pgastest.Run(t, n, func(ctx context.Context, w *pgas.World) error {
			team, err := w.Team().Split(ctx, w.Rank(), 0)
			if err != nil {
				return err
			}
			lock, err := pgsync.NewLock(ctx, team)
			if err != nil {
				return err
			}
			cause := errors.New("told to end")
			ended, end := context.WithCancelCause(ctx)
			end(cause)
			for name, call := range callsOfEach() {
				require.ErrorIs(t, call(ended, team), cause, name)
				require.NoError(t, call(ctx, team), name)
			}
			require.NoError(t, lock.Free(ended))
			return team.Free(ended)
		})
	}
}
