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

// teamCalls are collectives of a team of four.
var teamCalls = map[string]func(ctx context.Context, t *pgsync.Team) error{
	"barrier": func(ctx context.Context, t *pgsync.Team) error { return t.Barrier(ctx) },
	"sum": func(ctx context.Context, t *pgsync.Team) error {
		return pgsync.AllReduce(ctx, t, make([]int64, 8), make([]int64, 8), pgsync.Sum)
	},
	"long sum": func(ctx context.Context, t *pgsync.Team) error {
		return pgsync.AllReduce(ctx, t, make([]int64, 64<<10), make([]int64, 64<<10), pgsync.Sum)
	},
	"broadcast": func(ctx context.Context, t *pgsync.Team) error { return pgsync.Broadcast(ctx, t, make([]int64, 8), 1) },
	"long broadcast": func(ctx context.Context, t *pgsync.Team) error {
		return pgsync.Broadcast(ctx, t, make([]int64, 64<<10), 1)
	},
	"gather": func(ctx context.Context, t *pgsync.Team) error {
		return pgsync.AllGather(ctx, t, make([]int64, 32), make([]int64, 8))
	},
}

// TestCloseMeetsTeamCalls: a member of a team that closes its world while the others are in a collective of the team comes to none: they get ErrMismatch, and nobody
// waits for ever. Who is done with the team's calls may close his world however late the others come to them.
func TestCloseMeetsTeamCalls(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for name, call := range teamCalls {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				p.TimeLimit = 10 * time.Second
				pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
					team, err := w.Team().Split(ctx, 0, w.Rank())
					if err != nil || w.Rank() == 1 {
						return err
					}
					err = call(ctx, team)
					require.ErrorIs(t, err, pgsync.ErrMismatch)
					return nil
				})
			})
			t.Run(p.Name+"/late "+name, func(t *testing.T) {
				pgastest.RunConfig(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
					team, err := w.Team().Split(ctx, 0, w.Rank())
					if err != nil {
						return err
					}
					if w.Rank() != 1 {
						time.Sleep(time.Duration(w.Rank()) * 15 * time.Millisecond)
					}
					return call(ctx, team)
				})
			})
		}
	}
}
