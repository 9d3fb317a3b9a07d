package pgsync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestDifferentCalls: members that do not make the same call get an error before anybody takes wrong data for right, and
// nobody hangs: at least one learns of it from its neighbour, and ends; the others learn that, or make no further call.
func TestDifferentCalls(t *testing.T) {
	type pair struct {
		a, b func(ctx context.Context, w *pgas.World) error
	}
	all := func(n int) func(context.Context, *pgas.World) error {
		return func(ctx context.Context, w *pgas.World) error {
			v := make([]int32, n)
			return pgsync.AllReduce(ctx, w.Team(), v, v, pgsync.Sum)
		}
	}
	cast := func(n, root int) func(context.Context, *pgas.World) error {
		return func(ctx context.Context, w *pgas.World) error {
			return pgsync.Broadcast(ctx, w.Team(), make([]int32, n), root)
		}
	}
	bar := func(ctx context.Context, w *pgas.World) error { return w.Barrier(ctx) }
	signals := func(n int) func(context.Context, *pgas.World) error {
		return func(ctx context.Context, w *pgas.World) error {
			_, err := pgsync.NewSignals(ctx, w.Team(), n)
			return err
		}
	}
	for name, p := range map[string]pair{
		"lengths":              {all(10), all(11)},
		"lengths in rounds":    {all(100_000), all(10)},
		"lengths of long ones": {all(100_000), all(99_999)},
		"operations": {all(10), func(ctx context.Context, w *pgas.World) error {
			v := make([]int32, 10)
			return pgsync.AllReduce(ctx, w.Team(), v, v, pgsync.Max)
		}},
		"types": {all(10), func(ctx context.Context, w *pgas.World) error {
			v := make([]int64, 10)
			return pgsync.AllReduce(ctx, w.Team(), v, v, pgsync.Sum)
		}},
		"types of a broadcast":  {cast(3, 0), castOf[float32]},
		"types of a gather":     {gatherOf[int64], gatherOf[[8]byte]},
		"structs of a gather":   {gatherOf[struct{ A, B int32 }], gatherOf[struct{ A, C int32 }]},
		"roots":                 {cast(3, 0), cast(3, 1)},
		"roots of a reduce":     {reduceTo(0), reduceTo(1)},
		"two roots elsewhere":   {reduceTo(1), reduceTo(0)},
		"broadcast and barrier": {cast(3, 0), bar},
		"barrier and broadcast": {bar, cast(3, 0)},
		"reduce and broadcast":  {all(3), cast(3, 1)},
		"split and barrier":     {func(ctx context.Context, w *pgas.World) error { _, err := w.Team().Split(ctx, 0, 0); return err }, bar},
		"sets of signals":       {signals(1), signals(9)},
		"sets in chunks":        {signals(1), signals(100_000)},
		"signals and barrier":   {signals(1), bar},
	} {
		for _, path := range pgastest.PathsOf(t) {
			for _, n := range path.Worlds([]int{2, 3}) {
				t.Run(name+"/"+path.Name, func(t *testing.T) {
					path.TimeLimit = 20 * time.Second
					errs := pgastest.Errors(t, n, path.Config, func(ctx context.Context, w *pgas.World) error {
						if w.Rank() == 0 {
							return p.a(ctx, w)
						}
						return p.b(ctx, w)
					})
					found := 0
					for r, err := range errs {
						if err == nil {
							t.Errorf("rank %d closed its world as if nothing was", r)
							continue
						}
						for _, want := range []error{pgsync.ErrMismatch, pgas.ErrPeerGone} {
							if isError(err, want) {
								found++
								break
							}
						}
						var oe *pgas.OpError
						require.ErrorAs(t, err, &oe, "rank %d: %v", r, err)
					}
					require.Equal(t, n, found, "%v", errs)
					require.True(t, anyMismatch(errs), "%v", errs)
				})
			}
		}
	}
}

// castOf and gatherOf are calls that differ by the type of their elements only.
func castOf[T any](ctx context.Context, w *pgas.World) error {
	return pgsync.Broadcast(ctx, w.Team(), make([]T, 3), 0)
}

func gatherOf[T any](ctx context.Context, w *pgas.World) error {
	return pgsync.AllGather(ctx, w.Team(), make([]T, 3*w.Size()), make([]T, 3))
}

func reduceTo(root int) func(context.Context, *pgas.World) error {
	return func(ctx context.Context, w *pgas.World) error {
		v := make([]int32, 4)
		return pgsync.Reduce(ctx, w.Team(), v, v, pgsync.Sum, root)
	}
}

// TestRefusedAlone: arguments that are wrong by themselves are refused before anything is sent, and the team is whole.
func TestRefusedAlone(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, v := w.Team(), make([]int, 4)
		for _, root := range []int{-1, w.Size()} {
			require.ErrorIs(t, pgsync.Broadcast(ctx, team, v, root), pgsync.ErrMember)
			require.ErrorIs(t, pgsync.Reduce(ctx, team, v, v, pgsync.Sum, root), pgsync.ErrMember)
		}
		require.ErrorIs(t, pgsync.AllGather(ctx, team, v, make([]int, 5)), pgsync.ErrMismatch)
		require.ErrorIs(t, pgsync.AllReduce(ctx, team, v[:3], v, pgsync.Sum), pgsync.ErrMismatch)
		require.Error(t, pgsync.Broadcast(ctx, team, make([]string, 1), 0))
		require.Error(t, pgsync.Broadcast(ctx, team, make([]struct{}, 1), 0))
		_, err := pgsync.NewSignals(ctx, team, 0)
		require.ErrorIs(t, err, pgsync.ErrState)
		v[0] = 1
		if err := pgsync.AllReduce(ctx, team, v, v, pgsync.Sum); err != nil {
			return err
		}
		require.Equal(t, w.Size(), v[0])
		return nil
	}, 2)
}

// TestMismatchIsNamed: meetings for different purposes do not match each other, and the error says what each member is in.
func TestMismatchIsNamed(t *testing.T) {
	type calls struct {
		w       *pgas.World
		windows [2]*window.Window[int]
		v       []int32
	}
	type call func(ctx context.Context, c calls) error
	barrier := func(ctx context.Context, c calls) error { return c.w.Barrier(ctx) }
	fence := func(i int) call { return func(ctx context.Context, c calls) error { return c.windows[i].Fence(ctx) } }
	reduce := func(op pgsync.Op) call {
		return func(ctx context.Context, c calls) error { return pgsync.AllReduce(ctx, c.w.Team(), c.v, c.v, op) }
	}
	float := func(ctx context.Context, c calls) error { // as long, and not the same
		return pgsync.AllReduce(ctx, c.w.Team(), make([]float32, 3), make([]float32, 3), pgsync.Sum)
	}
	cast := func(root int) call {
		return func(ctx context.Context, c calls) error { return pgsync.Broadcast(ctx, c.w.Team(), c.v, root) }
	}
	long := func(op pgsync.Op) call {
		return func(ctx context.Context, c calls) error {
			v := make([]int32, 100_000)
			return pgsync.AllReduce(ctx, c.w.Team(), v, v, op)
		}
	}
	paths := pgastest.Paths()
	end := func(context.Context, calls) error { return nil } // the world is closed then
	const sum, most, bytes = "allreduce (sum) of 3 elements of int32", "allreduce (max) of 3 elements of int32", "broadcast of 3 elements of int32"
	for _, c := range []struct {
		a, b       call
		isIn, isAt string
	}{
		{barrier, fence(0), "barrier", "fence of the team's window 1"},
		{barrier, end, "barrier", "close"},
		{fence(0), end, "fence of the team's window 1", "close"},
		{fence(0), fence(1), "fence of the team's window 1", "fence of the team's window 2"},
		{reduce(pgsync.Sum), barrier, sum, "barrier"},
		{long(pgsync.Sum), barrier, "allreduce (sum) of 100000 elements of int32", "barrier"},
		{long(pgsync.Sum), long(pgsync.Max), "allreduce (sum) of 100000 elements of int32", "allreduce (max) of 100000 elements of int32"},
		{long(pgsync.Sum), reduce(pgsync.Sum), "allreduce (sum) of 100000 elements of int32", sum},
		{reduce(pgsync.Sum), reduce(pgsync.Max), sum, most},
		{reduce(pgsync.Sum), float, sum, "allreduce (sum) of 3 elements of float32"},
		{cast(0), cast(1), bytes, bytes + " with root 1"},
		{cast(0), func(ctx context.Context, c calls) error { return castOf[uint32](ctx, c.w) }, bytes, "broadcast of 3 elements of uint32"},
		{
			func(ctx context.Context, c calls) error { return c.windows[0].Free(ctx) }, fence(0),
			"free of the team's window 1", "fence of the team's window 1",
		},
		{
			func(ctx context.Context, c calls) error { return c.w.Team().BarrierNB().Wait(ctx) }, barrier,
			"barrier of a started call", "barrier",
		},
	} {
		for _, path := range paths[:min(3, len(paths))] {
			t.Run(c.isIn+"/"+c.isAt+"/"+path.Name, func(t *testing.T) {
				path.TimeLimit = 10 * time.Second
				errs := pgastest.Errors(t, 2, path.Config, func(ctx context.Context, w *pgas.World) error {
					made := calls{w: w, v: make([]int32, 3)}
					for i := range made.windows {
						var err error
						if made.windows[i], err = window.Allocate[int](ctx, w.Team(), 8); err != nil {
							return err
						}
					}
					if w.Rank() == 0 {
						return c.a(ctx, made)
					}
					return c.b(ctx, made)
				})
				said := errors.Join(errs...).Error()
				require.True(t, anyMismatch(errs), said)
				if !strings.Contains(said, "this rank is in "+c.isIn+", rank 1 in "+c.isAt) {
					require.Contains(t, said, "this rank is in "+c.isAt+", rank 0 in "+c.isIn)
				}
				for rank, err := range errs {
					require.Error(t, err, "rank %d has closed its world as if nothing was", rank)
				}
			})
		}
	}
}
