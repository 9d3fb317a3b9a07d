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

// TestInitWithoutContext joins a world of one rank, and looks at the machine, with a nil context.
func TestInitWithoutContext(t *testing.T) {
	var none context.Context
	w, err := pgas.Init(none, &pgas.Config{Environ: []string{}})
	require.NoError(t, err)
	require.NoError(t, w.Barrier(none))
	require.NoError(t, w.Close(none))
	require.NotEmpty(t, pgas.Describe(none, []string{}, 2))
}

// TestOpenWithoutContext: the NIC of ranks that map each other's memory is opened by the first call that needs it, which may have a nil context.
func TestOpenWithoutContext(t *testing.T) {
	for name, open := range map[string]func(ctx context.Context, t *pgas.Team) error{
		"create": func(ctx context.Context, t *pgas.Team) error {
			win, err := window.Create(ctx, t, make([]int64, 10))
			if err != nil {
				return err
			}
			return errors.Join(win.Put(1-t.Rank(), 5, []int64{7}), win.Fence(ctx), win.Free(ctx))
		},
		"dynamic": func(ctx context.Context, t *pgas.Team) error {
			d, err := window.NewDynamic[int64](ctx, t)
			if err != nil {
				return err
			}
			return d.Free(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunProcs(t, 2, func(_ context.Context, w *pgas.World) error {
				var none context.Context
				return open(none, w.Team())
			})
		})
	}
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
