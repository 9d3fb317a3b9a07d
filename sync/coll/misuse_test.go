package coll_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

type collective = func(ctx context.Context, t *pgsync.Team) error

func gather(k, root int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.Gather(ctx, t, make([]int, k*t.Size()), make([]int, k), root)
	}
}

func scatter(k, root int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.Scatter(ctx, t, make([]int, k), make([]int, k*t.Size()), root)
	}
}

// typed are the calls that do not look into elements, of elements of a type.
func typed[T any]() map[string]collective {
	const k = 5
	return map[string]collective{
		"gather": func(ctx context.Context, t *pgsync.Team) error {
			return coll.Gather(ctx, t, make([]T, k*t.Size()), make([]T, k), 0)
		},
		"scatter": func(ctx context.Context, t *pgsync.Team) error {
			return coll.Scatter(ctx, t, make([]T, k), make([]T, k*t.Size()), 0)
		},
		"gatherv": func(ctx context.Context, t *pgsync.Team) error {
			return coll.GatherV(ctx, t, make([]T, k*t.Size()), equal(t, k), make([]T, k), 0)
		},
		"scatterv": func(ctx context.Context, t *pgsync.Team) error {
			return coll.ScatterV(ctx, t, make([]T, k), make([]T, k*t.Size()), equal(t, k), 0)
		},
		"allgatherv": func(ctx context.Context, t *pgsync.Team) error {
			return coll.AllGatherV(ctx, t, make([]T, k*t.Size()), equal(t, k), make([]T, k))
		},
		"alltoall": func(ctx context.Context, t *pgsync.Team) error {
			return coll.AllToAll(ctx, t, make([]T, k*t.Size()), make([]T, k*t.Size()))
		},
		"alltoallv": func(ctx context.Context, t *pgsync.Team) error {
			n := t.Size()
			return coll.AllToAllV(ctx, t, make([]T, k*n), equal(t, k), make([]T, k*n), equal(t, k))
		},
	}
}

// equal are counts of k for each member.
func equal(t *pgsync.Team, k int) []int { return slices.Repeat([]int{k}, t.Size()) }

func gatherV(counts, k, root int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.GatherV(ctx, t, make([]int, counts*t.Size()), equal(t, counts), make([]int, k), root)
	}
}

func allGatherV(counts, k int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.AllGatherV(ctx, t, make([]int, counts*t.Size()), equal(t, counts), make([]int, k))
	}
}

func scatterV(counts, k, root int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.ScatterV(ctx, t, make([]int, k), make([]int, counts*t.Size()), equal(t, counts), root)
	}
}

func allToAll(k int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.AllToAll(ctx, t, make([]int, k*t.Size()), make([]int, k*t.Size()))
	}
}

func allToAllV(recv, send int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		n := t.Size()
		return coll.AllToAllV(ctx, t, make([]int, recv*n), equal(t, recv), make([]int, send*n), equal(t, send))
	}
}

func scan(k int, op pgsync.Op) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.Scan(ctx, t, make([]int, k), make([]int, k), op)
	}
}

func exScan(k int) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		return coll.ExScan(ctx, t, make([]int, k), make([]int, k), pgsync.Sum)
	}
}

func barrier(ctx context.Context, t *pgsync.Team) error { return t.Barrier(ctx) }

func nothing(context.Context, *pgsync.Team) error { return nil }

// started makes calls one after the other, each in the background.
func started(fs ...collective) collective {
	return func(ctx context.Context, t *pgsync.Team) error {
		var rs []*pgsync.Request
		for _, f := range fs {
			rs = append(rs, t.Start(f))
		}
		var errs []error
		for _, r := range rs {
			errs = append(errs, r.Wait(ctx))
		}
		return errors.Join(errs...)
	}
}

// both makes one call and then another.
func both(a, b collective) collective {
	return func(ctx context.Context, t *pgsync.Team) error { return errors.Join(a(ctx, t), b(ctx, t)) }
}

// disagreements are calls of member 0 and of the others. An element that is wrong alone is refused by member 0 itself.
var disagreements = map[string][2]collective{
	"gather lengths":            {gather(3, 0), gather(4, 0)},
	"gather long and short":     {gather(30_000, 0), gather(4, 0)},
	"gather roots":              {gather(3, 0), gather(3, 1)},
	"gather root of nobody":     {gather(3, -1), gather(3, 1)},
	"scatter lengths":           {scatter(3, 1), scatter(4, 1)},
	"scatter roots":             {scatter(3, 1), scatter(3, 0)},
	"gatherv counts":            {gatherV(3, 3, 0), gatherV(4, 4, 0)},
	"gatherv counts elsewhere":  {gatherV(3, 3, 1), gatherV(4, 4, 1)},
	"gatherv roots":             {gatherV(3, 3, 1), gatherV(3, 3, 0)},
	"gatherv refused":           {func(ctx context.Context, t *pgsync.Team) error { return coll.GatherV(ctx, t, []int{1}, nil, nil, 0) }, gatherV(3, 3, 0)},
	"allgatherv":                {allGatherV(3, 3), allGatherV(3, 4)},
	"scatterv counts":           {scatterV(3, 3, 0), scatterV(3, 4, 0)},
	"scatterv counts elsewhere": {scatterV(3, 5, 1), scatterV(3, 3, 1)},
	"alltoall lengths":          {allToAll(3), allToAll(4)},
	"alltoallv":                 {allToAllV(3, 3), allToAllV(4, 4)},
	"alltoallv refused": {func(ctx context.Context, t *pgsync.Team) error {
		return coll.AllToAllV[int](ctx, t, nil, nil, nil, nil)
	}, allToAllV(4, 4)},
	"scan lengths":              {scan(3, pgsync.Sum), scan(4, pgsync.Sum)},
	"scan operations":           {scan(3, pgsync.Sum), scan(3, pgsync.Max)},
	"scan and exscan":           {scan(3, pgsync.Sum), exScan(3)},
	"scan refused":              {scan(3, pgsync.Replace), scan(3, pgsync.Sum)},
	"gather and barrier":        {gather(3, 0), barrier},
	"scatter and gather":        {scatter(3, 0), gather(3, 0)},
	"started and another":       {started(scan(3, pgsync.Sum)), started(barrier)},
	"started and blocking":      {started(scan(3, pgsync.Sum)), barrier},
	"started in another order":  {started(scan(3, pgsync.Sum), barrier), started(barrier, scan(3, pgsync.Sum))},
	"started before and behind": {both(started(scan(3, pgsync.Sum)), gather(1, 0)), both(gather(1, 0), started(scan(3, pgsync.Sum)))},
	"fewer turns in a started":  {started(both(barrier, barrier)), both(started(barrier), both(barrier, barrier))},
	"more turns in a started":   {both(started(barrier), both(barrier, barrier)), started(both(barrier, barrier))},
	"no turns in a started":     {both(started(nothing), barrier), both(started(barrier), barrier)},
	"blocking and started":      {both(barrier, barrier), started(both(barrier, barrier))},
}

// TestDisagreements: members that do not make the same call, of the same lengths, to the same root, all get an error, and
// nobody hangs. They do so on a team of their own, so that the world outlives it and nobody's end helps the others.
func TestDisagreements(t *testing.T) {
	disagreements := maps.Clone(disagreements)
	for name, other := range typed[float64]() {
		disagreements["types of "+name] = [2]collective{typed[int64]()[name], other}
		disagreements["types of another size of "+name] = [2]collective{typed[[3]float64]()[name], other}
	}
	f := func(calls [2]collective, errs []error) body {
		return func(ctx context.Context, w *pgas.World) error {
			team, err := w.Team().Split(ctx, 0, w.Rank())
			if err != nil {
				return err
			}
			errs[w.Rank()] = calls[min(1, w.Rank())](ctx, team)
			if again := team.Barrier(ctx); again == nil && errs[w.Rank()] != nil {
				return errors.New("the team goes on")
			} else if errs[w.Rank()] == nil {
				errs[w.Rank()] = again // who was done before the others began, such as a root, learns of it next
			}
			return nil
		}
	}
	check := func(t *testing.T, errs []error) {
		for r, err := range errs {
			if !errors.Is(err, pgsync.ErrMismatch) && (r > 0 || err == nil) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
	for name, calls := range disagreements {
		for _, p := range pgastest.PathsOf(t) {
			for _, n := range []int{2, 3} {
				if p.Name != "mapped" && (n == 2 || testing.Short() && p.Name != "nic-good") {
					continue
				}
				t.Run(name+"/"+p.Name, func(t *testing.T) {
					p.TimeLimit = 10 * time.Second
					errs := make([]error, n)
					pgastest.RunConfig(t, n, p.Config, f(calls, errs))
					check(t, errs)
				})
			}
		}
		for _, c := range []pgastest.SimConfig{{Ranks: 11, Seed: 1}, {Ranks: 14, RanksPerNode: 4, Mapped: true, Seed: 2}} {
			t.Run(name+"/simulated", func(t *testing.T) {
				errs := make([]error, c.Ranks)
				pgastest.RunSim(t, c, f(calls, errs))
				check(t, errs)
			})
		}
	}
}

// TestDisagreementIsLearntLate: who is through with a call before another member finds that it is not the same learns that from the next one, though that member has left
// in the middle of it as well.
func TestDisagreementIsLearntLate(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			found := make(chan struct{})
			pgastest.RunConfig(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					defer close(found)
					require.ErrorIs(t, gather(30_000, 0)(ctx, team), pgsync.ErrMismatch)
					return nil
				}
				err = gather(4, 0)(ctx, team)
				<-found
				if err == nil {
					err = team.Barrier(ctx)
				}
				require.ErrorIs(t, err, pgsync.ErrMismatch)
				return nil
			})
		})
	}
}

// TestRefusedByAll: what is wrong by itself is refused on all members, and the team is whole.
func TestRefusedByAll(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, n := w.Team(), w.Size()
		is := func(want error, calls ...collective) {
			for i, f := range calls {
				require.ErrorIs(t, f(ctx, team), want, "call %d", i)
			}
		}
		is(pgsync.ErrMember, gather(3, n), gather(3, -1), scatter(3, n), scatterV(3, 3, -1), gatherV(3, 3, n), gatherV(3, 3, -1), gatherV(3, 3, -2))
		short := func(ctx context.Context, t *pgsync.Team) error {
			return coll.AllToAll(ctx, t, make([]int, n), make([]int, 2*n))
		}
		odd := func(ctx context.Context, t *pgsync.Team) error {
			return coll.AllToAll(ctx, t, make([]int, n+1), make([]int, n+1))
		}
		negative := func(ctx context.Context, t *pgsync.Team) error {
			counts := equal(t, 1)
			counts[0], counts[n-1] = -1, 3
			return coll.AllGatherV(ctx, t, make([]int, n), counts, make([]int, 1))
		}
		prefix := func(ctx context.Context, t *pgsync.Team) error {
			return coll.Scan(ctx, t, make([]int, 2), make([]int, 3), pgsync.Sum)
		}
		is(pgsync.ErrMismatch, short, odd, negative, prefix)
		require.Error(t, coll.AllToAll(ctx, team, make([]string, n), make([]string, n)), "elements with pointers")
		sum := []int{1}
		if err := coll.Scan(ctx, team, sum, sum, pgsync.Sum); err != nil {
			return err
		}
		require.Equal(t, w.Rank()+1, sum[0])
		return nil
	}, 2, 3)
}

// TestDeathInTheMiddle: a rank that dies while the others are in a collective, or computing beside one, is named to all.
func TestDeathInTheMiddle(t *testing.T) {
	calls := map[string]collective{
		"gather": gather(5000, 0), "scatter": scatter(5000, 2), "gatherv": gatherV(10, 10, 1), "allgatherv": allGatherV(10, 10),
		"scatterv": scatterV(10, 10, 2), "alltoall": allToAll(2000), "alltoallv": allToAllV(2000, 2000),
		"scan": scan(5000, pgsync.Sum), "exscan": exScan(1),
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		calls["started "+name] = started(barrier, calls[name])
	}
	for name, call := range calls {
		for _, p := range pgastest.PathsOf(t) {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				const n, dead = 4, 2
				p.TimeLimit = 15 * time.Second
				var ready, told sync.WaitGroup
				ready.Add(n)
				told.Add(n - 1)
				errs := pgastest.Errors(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
					err := call(ctx, w.Team()) // once while all live
					ready.Done()
					ready.Wait()
					if w.Rank() == dead || err != nil {
						return errors.Join(errors.New("made up"), err)
					}
					err = call(ctx, w.Team())
					for err == nil { // its part was done
						err = w.Barrier(ctx)
					}
					told.Done()
					told.Wait()
					return err
				})
				for r, err := range errs {
					if r == dead {
						continue
					}
					require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", r)
					var oe *pgas.OpError
					require.ErrorAs(t, err, &oe)
					require.Equal(t, dead, oe.Rank, "rank %d: %v", r, err)
				}
			})
		}
	}
}
