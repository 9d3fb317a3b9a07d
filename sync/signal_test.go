package pgsync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestSignals(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s, err := pgsync.NewSignals(ctx, w.Team(), 3)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		if err := s.Signal(0).Set(next, 5); err != nil {
			return err
		}
		for cmp, v := range map[pgsync.Cmp]uint64{
			pgsync.Equal: 5, pgsync.NotEqual: 0, pgsync.Greater: 4, pgsync.GreaterOrEqual: 5, pgsync.Less: 6, pgsync.LessOrEqual: 5,
		} {
			if cmp == pgsync.Less || cmp == pgsync.LessOrEqual {
				continue // holds before the signal too: below
			}
			got, err := s.Signal(0).WaitUntil(ctx, cmp, v)
			require.NoError(t, err)
			require.EqualValues(t, 5, got)
		}
		// Everybody adds to everybody.
		for m := range w.Size() {
			for range 10 {
				if err := s.Signal(1).Add(m, uint64(w.Rank()+1)); err != nil {
					return err
				}
			}
		}
		total := uint64(10 * w.Size() * (w.Size() + 1) / 2)
		got, err := s.Signal(1).WaitUntil(ctx, pgsync.GreaterOrEqual, total)
		if err != nil {
			return err
		}
		require.Equal(t, total, got)
		require.Zero(t, s.Signal(2).Load(), "signals do not meet")
		// Downwards, from the owner's own store.
		s.Signal(2).Store(9)
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		for _, c := range []struct {
			cmp pgsync.Cmp
			v   uint64
			set uint64
		}{{pgsync.Less, 9, 8}, {pgsync.LessOrEqual, 7, 7}, {pgsync.NotEqual, 7, 6}} {
			if err := s.Signal(2).Set(next, c.set); err != nil {
				return err
			}
			got, err := s.Signal(2).WaitUntil(ctx, c.cmp, c.v)
			if err != nil {
				return err
			}
			require.Equal(t, c.set, got)
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = s.Signal(0).WaitUntil(short, pgsync.Equal, 99)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, target := range []int{-1, w.Size()} {
			require.ErrorIs(t, s.Signal(0).Set(target, 1), pgsync.ErrMember)
			require.ErrorIs(t, s.Signal(0).Add(target, 1), pgsync.ErrMember)
		}
		require.Panics(t, func() { s.Signal(3) })
		require.Panics(t, func() { s.Signal(-1) })
		g := s.Signal(0)
		if err := s.Free(ctx); err != nil {
			return err
		}
		require.ErrorIs(t, g.Set(0, 1), pgas.ErrClosed)
		require.ErrorIs(t, g.Add(0, 1), pgas.ErrClosed)
		_, err = g.WaitUntil(ctx, pgsync.Equal, 0)
		require.ErrorIs(t, err, pgas.ErrClosed)
		require.ErrorIs(t, s.Free(ctx), pgas.ErrClosed)
		require.ErrorIs(t, pgsync.Signal{}.Set(0, 1), pgas.ErrClosed)
		return nil
	}, 1, 2, 3, 4)
}

// TestSignalInFlightAtFree: a signal that nobody waited for does not land in what is allocated in its place.
func TestSignalInFlightAtFree(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for round := range 40 {
			s, err := pgsync.NewSignals(ctx, w.Team(), 4)
			if err != nil {
				return err
			}
			for m := range w.Size() {
				for i := range 4 {
					if err := s.Signal(i).Set(m, ^uint64(0)); err != nil {
						return err
					}
				}
			}
			if err := s.Free(ctx); err != nil {
				return err
			}
			win, err := window.Allocate[uint64](ctx, w.Team(), 32)
			if err != nil {
				return err
			}
			for i := range 3 {
				for _, v := range win.Local() {
					if v != 0 {
						t.Fatalf("round %d, look %d: a late signal landed in a new window", round, i)
					}
				}
				time.Sleep(30 * time.Microsecond)
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	}, 4)
}

func TestCounter(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const tasks = 200
		c, err := pgsync.NewCounter(ctx, w.Team())
		if err != nil {
			return err
		}
		done, err := window.Allocate[int32](ctx, w.Team(), tasks)
		if err != nil {
			return err
		}
		for {
			lo, err := c.Next(3)
			if err != nil {
				return err
			}
			if lo >= tasks {
				break
			}
			for i := lo; i < min(lo+3, tasks); i++ {
				if _, err := window.FetchAdd(done, 0, int(i), 1); err != nil {
					return err
				}
			}
		}
		if err := done.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for i, n := range done.Local() {
				require.EqualValues(t, 1, n, "task %d", i)
			}
			v, err := c.Value()
			require.NoError(t, err)
			require.GreaterOrEqual(t, v, int64(tasks))
			require.Zero(t, v%3)
		}
		if err := errors.Join(done.Free(ctx), c.Free(ctx)); err != nil {
			return err
		}
		_, err = c.Next(1)
		require.ErrorIs(t, err, pgas.ErrClosed)
		require.ErrorIs(t, c.Free(ctx), pgas.ErrClosed)
		return nil
	}, 1, 2, 4)
}

// TestSignalsNameRanksOfTheWorld: errors of signals and events name the target's rank in the world, also in a team whose members have other numbers.
func TestSignalsNameRanksOfTheWorld(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, min(w.Rank(), 1), -w.Rank()) // 0, and 2 and 1
		if err != nil {
			return err
		}
		s, err := pgsync.NewSignals(ctx, team, 1)
		if err != nil {
			return err
		}
		e, err := pgsync.NewEvent(ctx, team)
		if err != nil {
			return err
		}
		require.ErrorIs(t, s.Signal(0).Set(team.Size(), 1), pgsync.ErrMember)
		require.ErrorIs(t, e.Post(-1, 1), pgsync.ErrMember)
		if err := errors.Join(s.Free(ctx), e.Free(ctx)); err != nil {
			return err
		}
		for target := range team.Size() {
			for _, err := range []error{s.Signal(0).Set(target, 1), s.Signal(0).Add(target, 1), e.Post(target, 1)} {
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				require.ErrorIs(t, err, pgas.ErrClosed)
				require.Equal(t, team.WorldRank(target), oe.Rank, "%v", err)
			}
		}
		return nil
	}, 3)
}
