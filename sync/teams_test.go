package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
)

func TestSubTeams(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		n := w.Size()
		backwards := make([]int, n)
		for i := range backwards {
			backwards[i] = n - 1 - i
		}
		for _, list := range [][]int{backwards, {n - 1}, slices.Compact([]int{n / 2, 0}), {}} {
			team, err := w.Team().Sub(ctx, list)
			if err != nil {
				return err
			}
			if !slices.Contains(list, w.Rank()) {
				require.Nil(t, team)
				continue
			}
			if err := errors.Join(uses(ctx, t, w, team, list), team.Free(ctx)); err != nil {
				return err
			}
		}
		for _, c := range []struct {
			first, stride, n int
			want             []int
		}{
			{0, 2, (n + 1) / 2, nil}, {n - 1, -1, n, backwards}, {0, 1, 0, nil}, {n - 1, 7, 1, []int{n - 1}},
		} {
			team, err := w.Team().Strided(ctx, c.first, c.stride, c.n)
			if err != nil {
				return err
			}
			want := c.want
			for i := 0; c.stride == 2 && i < n; i += 2 {
				want = append(want, i)
			}
			if !slices.Contains(want, w.Rank()) {
				require.Nil(t, team)
				continue
			}
			if err := errors.Join(uses(ctx, t, w, team, want), team.Free(ctx)); err != nil {
				return err
			}
		}
		// Refused on all members, and the team is whole.
		for _, list := range [][]int{{0, 0}, {n}, {-1}} {
			_, err := w.Team().Sub(ctx, list)
			require.ErrorIs(t, err, pgsync.ErrMember)
		}
		for _, members := range []int{n + 1, -1, math.MinInt} {
			_, err := w.Team().Strided(ctx, 0, 1, members)
			require.ErrorIs(t, err, pgsync.ErrMember, members)
		}
		// On some members: all get an error.
		list := []int{0}
		if w.Rank() == 0 {
			list = []int{n + 5}
		}
		_, err := w.Team().Sub(ctx, list)
		require.Error(t, err)
		require.True(t, errors.Is(err, pgsync.ErrMember) || errors.Is(err, pgsync.ErrMismatch), "%v", err)
		_, err = w.Team().Sub(ctx, slices.Repeat([]int{0}, min(1, w.Rank())))
		if n > 1 {
			require.ErrorIs(t, err, pgsync.ErrMismatch)
		}
		return w.Barrier(ctx)
	}, 1, 2, 5)
}

// survivorsWork ends when the team of those who live is whole and used.
func survivorsWork(ctx context.Context, w *pgas.World, team *pgsync.Team, living []int) error {
	if team.Size() != len(living) {
		return fmt.Errorf("%d survivors, want %v", team.Size(), living)
	}
	src, dst := []int{w.Rank()}, make([]int, len(living))
	for range 3 {
		if err := pgsync.AllGather(ctx, team, dst, src); err != nil {
			return err
		}
		if !slices.Equal(dst, living) {
			return fmt.Errorf("survivors %v, want %v", dst, living)
		}
	}
	s, err := pgsync.NewSignals(ctx, team, 1)
	if err != nil {
		return err
	}
	if err := s.Signal(0).Set((team.Rank()+1)%team.Size(), 1); err != nil {
		return err
	}
	if _, err := s.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
		return err
	}
	r := team.BarrierNB()
	return errors.Join(r.Wait(ctx), s.Free(ctx), team.Free(ctx))
}

// TestSurvivors: ranks die one after the other, among them the lowest; those who live find each other after each death.
func TestSurvivors(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				order := []int{0, n - 1, 2}[:min(n-1, 3)]
				errDead := errors.New("made up")
				// Nobody dies before all have left the calls that need it: flags that it has sent die with it.
				var left [4]atomic.Int64
				var failed atomic.Bool
				all := func(stage, living int) {
					left[stage].Add(1)
					for left[stage].Load() < int64(living) && !failed.Load() {
						time.Sleep(50 * time.Microsecond)
					}
				}
				errs := pgastest.Errors(t, n, p.Config, func(ctx context.Context, w *pgas.World) (err error) {
					defer func() {
						if err != errDead {
							failed.Store(true)
						}
					}()
					living := make([]int, n)
					for r := range living {
						living[r] = r
					}
					// Of all, while all live:
					team, err := w.Team().Survivors(ctx)
					if err == nil {
						err = survivorsWork(ctx, w, team, living)
					}
					if err != nil {
						return err
					}
					all(0, len(living))
					for i, dead := range order {
						living = slices.DeleteFunc(living, func(r int) bool { return r == dead })
						if w.Rank() == dead {
							return errDead
						}
						if dead == order[0] {
							if err := w.Barrier(ctx); !errors.Is(err, pgas.ErrPeerGone) {
								return fmt.Errorf("barrier with a dead rank: %w", err)
							}
						}
						for w.Failed()[dead] == nil {
							time.Sleep(100 * time.Microsecond)
							if team, err := w.Team().Split(ctx, 0, 0); err == nil {
								return fmt.Errorf("split with a dead rank: %d", team.Size())
							}
						}
						if team, err = w.Team().Survivors(ctx); err != nil {
							return fmt.Errorf("after the death of %d: %w", dead, err)
						}
						if err := survivorsWork(ctx, w, team, living); err != nil {
							return fmt.Errorf("after the death of %d: %w", dead, err)
						}
						all(i+1, len(living))
					}
					return errDead
				})
				for r, err := range errs {
					require.Equal(t, errDead, err, "rank %d of %v", r, errs)
				}
			})
		}
	}
}

// TestSurvivorsOfManyDeaths kills ranks in virtual time, at moments that differ with the seed, while the others agree.
func TestSurvivorsOfManyDeaths(t *testing.T) {
	const n = 24
	seeds := uint64(12)
	if raceEnabled || testing.Short() {
		seeds = 1 // nothing is concurrent in a simulated world, and the detector makes it long
	}
	for seed := range seeds {
		for _, perNode := range []int{1, 4} {
			kill := map[int]int{}
			for i := range 5 {
				kill[(i*7+int(seed)*5)%n] = 20 + int(seed)*9*(i+1) // all have begun by then
			}
			c := pgastest.SimConfig{Ranks: n, RanksPerNode: perNode, Seed: seed, TimeLimit: 30 * time.Second}
			for r, ops := range kill {
				c.Faults.Kill = append(c.Faults.Kill, sim.Fault{Rank: r, Op: uint64(ops)})
			}
			teams := make([][]int, n)
			res := pgastest.SimErrors(t, c, func(ctx context.Context, w *pgas.World) error {
				team := w.Team()
				for {
					for range 5 {
						v := []int{1}
						if err := pgsync.AllReduce(ctx, team, v, v, pgsync.Sum); err != nil {
							if !errors.Is(err, pgas.ErrPeerGone) {
								return err
							}
							break
						}
					}
					next, err := team.Survivors(ctx)
					if err != nil {
						return fmt.Errorf("survivors: %w", err)
					}
					ranks := make([]int, next.Size())
					err = pgsync.AllGather(ctx, next, ranks, []int{w.Rank()})
					if err == nil {
						err = next.Barrier(ctx)
					}
					if err == nil {
						teams[w.Rank()] = ranks
						return nil
					}
					team = next
				}
			})
			require.Nil(t, res.Stuck, "seed %d", seed)
			for r, err := range res.Errors {
				if _, dead := kill[r]; !dead && teams[r] == nil {
					t.Errorf("seed %d: rank %d: %v", seed, r, err)
				}
			}
		}
	}
}
