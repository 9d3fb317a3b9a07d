package pgas_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestNilContext: a nil context is one that never ends, in calls of several collectives as in the others.
func TestNilContext(t *testing.T) {
	over := errors.New("the world has ended, and all is well")
	errs := pgastest.Errors(t, 2, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		s, err := newSpread(ctx, w.Team())
		if err != nil {
			return err
		}
		var none context.Context
		keys, ones := []uint64{1, 2, 3}, []int64{1, 1, 1}
		for name, err := range map[string]error{
			"barrier":    w.Team().Barrier(none),
			"array":      errors.Join(s.a.Fill(none, 3), s.a.CopyFrom(none, s.x), s.x.Resize(none, 5, pgas.Block()), algo.Sort(none, s.a)),
			"matrix":     errors.Join(s.m.Fill(none, 3), s.m.Transpose(none, s.y), s.m.UpdateGhosts(none)),
			"grid":       errors.Join(s.g.Fill(none, 3), s.g.CopyFrom(none, s.h), s.g.UpdateGhosts(none)),
			"map":        errors.Join(s.keys.Grow(none, 100), s.keys.AddAll(none, keys, ones), s.keys.Merge(none, keys, ones), s.keys.Fence(none)),
			"collective": pgsync.AllReduce(none, w.Team(), ones, ones, pgsync.Sum),
		} {
			require.NoError(t, err, name)
		}
		if err := w.Close(none); err != nil {
			return err
		}
		return over
	})
	require.Equal(t, []error{over, over}, errs)
}

// TestFreeWithoutContext frees what is registered in buckets with a nil context.
func TestFreeWithoutContext(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 10 << 20}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2<<20)
		if err != nil {
			return err
		}
		if err := errors.Join(win.Put(1-w.Rank(), 5, []int64{7}), win.Fence(ctx)); err != nil {
			return err
		}
		require.EqualValues(t, 7, win.Local()[5])
		var none context.Context
		return win.Free(none)
	})
}
