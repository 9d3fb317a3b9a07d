package pgas_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestLoneCallsLeaveNoMemory: where a call on a rank alone ends with its context, wherever that is, it gives back what it has made: nobody else can use it, and
// the team goes on.
func TestLoneCallsLeaveNoMemory(t *testing.T) { loneCallsLeaveNoMemory(t, pgastest.Config{}) }

// TestLoneCallsOverNICLeaveNoMemory: nor where something is under way there that the call had no time to wait for.
func TestLoneCallsOverNICLeaveNoMemory(t *testing.T) {
	loneCallsLeaveNoMemory(t, pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Seed: 1, Jitter: 20 * time.Microsecond}})
}

func loneCallsLeaveNoMemory(t *testing.T, c pgastest.Config) {
	pgastest.RunConfig(t, 1, c, func(ctx context.Context, w *pgas.World) error {
		team := w.Team()
		a, err := pgas.NewArray[int64](ctx, team, 1000, pgas.Block())
		if err != nil {
			return err
		}
		m, err := pgas.NewMatrix[int64](ctx, team, 30, 30, pgas.Grid{})
		if err != nil {
			return err
		}
		keys, err := hashmap.New[int64](ctx, team, 10)
		if err != nil {
			return err
		}
		_, err = keys.Add(7, 8)
		if err != nil {
			return err
		}
		free := func(err error, made interface {
			Free(ctx context.Context) error
		},
		) error {
			if err == nil {
				err = made.Free(ctx)
			}
			return err
		}
		calls := map[string]func(ctx context.Context) error{
			"window": func(ctx context.Context) error {
				x, err := window.AllocateConfig[int64](ctx, team, 1000, window.Config{Epochs: true})
				return free(err, x)
			},
			"signals": func(ctx context.Context) error {
				x, err := pgsync.NewSignals(ctx, team, 20)
				return free(err, x)
			},
			"lock": func(ctx context.Context) error {
				x, err := pgsync.NewLock(ctx, team)
				return free(err, x)
			},
			"new map": func(ctx context.Context) error {
				x, err := hashmap.New[int64](ctx, team, 1000)
				return free(err, x)
			},
			"resize":        func(ctx context.Context) error { return a.Resize(ctx, 1000, pgas.Cyclic()) },
			"matrix resize": func(ctx context.Context) error { return m.Resize(ctx, 30, 30, pgas.Grid{}) },
			"sort":          func(ctx context.Context) error { return algo.Sort(ctx, a) },
			"grow":          func(ctx context.Context) error { return keys.Grow(ctx, 10) },
		}
		for name, call := range calls {
			if err := call(ctx); err != nil {
				return err
			}
			_, before := team.Heap().Usage()
			require.Positive(t, ends(t, ctx, name, func(ctx context.Context) error {
				err := call(ctx)
				_, after := team.Heap().Usage()
				require.Equal(t, before, after, "%s leaves memory behind: %v", name, err)
				return err
			}))
		}
		v, _, err := keys.Load(7)
		require.Equal(t, int64(8), v)
		return errors.Join(err, keys.Free(ctx), m.Free(ctx), a.Free(ctx))
	})
}
