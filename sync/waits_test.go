package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestWaitsOverSignals: member 0 takes the others' news in whatever order it comes.
func TestWaitsOverSignals(t *testing.T) {
	f := func(ctx context.Context, w *pgas.World) error {
		s, err := pgsync.NewSignals(ctx, w.Team(), w.Size())
		if err != nil {
			return err
		}
		if w.Rank() > 0 {
			if err := s.Signal(w.Rank()).Set(0, uint64(w.Rank())); err != nil {
				return err
			}
		} else {
			for range w.Size() - 1 {
				i, have, err := s.WaitAny(ctx, pgsync.Greater, 0)
				if err != nil {
					return err
				}
				if have != uint64(i) {
					return fmt.Errorf("signal %d is %d", i, have)
				}
				s.Signal(i).Store(0)
			}
			if err := s.WaitAll(ctx, pgsync.Equal, 0); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		// The next one's signals, all of them but the first.
		for i := 1; i < w.Size(); i++ {
			if err := s.Signal(i).Set((w.Rank()+1)%w.Size(), 7); err != nil {
				return err
			}
		}
		for got := 1; got < w.Size(); {
			some, err := s.WaitSome(ctx, pgsync.Equal, 7)
			if err != nil {
				return err
			}
			for _, i := range some {
				s.Signal(i).Store(8)
				got++
			}
		}
		if s.Signal(0).Is(pgsync.Equal, 8) || w.Size() > 1 && !s.Signal(1).Is(pgsync.Equal, 8) {
			return errors.New("wrong signals")
		}
		return s.Free(ctx)
	}
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return f(ctx, w) }, 1, 2, 5)
	t.Run("simulated", func(t *testing.T) { simulated(t, pgastest.SimConfig{Ranks: 64, RanksPerNode: 4, Seed: 5}, f) })
}

// TestWaitsWhileRacesAreLookedFor: two goroutines of a rank wait for any of some signals. What they look at for the race check wakes nobody, least of all each
// other without end: in virtual time the signal would never come.
func TestWaitsWhileRacesAreLookedFor(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *pgas.World, *pgsync.Signals) (int, error){
		"a set": func(ctx context.Context, _ *pgas.World, s *pgsync.Signals) (int, error) {
			i, _, err := s.WaitAny(ctx, pgsync.Equal, 1)
			return i, err
		},
		"some of it": func(ctx context.Context, w *pgas.World, s *pgsync.Signals) (int, error) {
			i, err := w.Team().WaitAny(ctx, 2, func(i int) bool { return s.Signal(1+i).Is(pgsync.Equal, 1) })
			return 1 + i, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := pgastest.SimConfig{Ranks: 2, RanksPerNode: 2, Mapped: true, Check: "races", TimeLimit: 10 * time.Second}
			pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
				s, err := pgsync.NewSignals(ctx, w.Team(), 3)
				if err != nil {
					return err
				}
				r := w.Team().Start(func(ctx context.Context, _ *pgsync.Team) error {
					if w.Rank() == 0 {
						return nil
					}
					_, err := wait(ctx, w, s)
					return err
				})
				if w.Rank() == 0 {
					pgastest.Compute(w, time.Millisecond)
					err = s.Signal(2).Set(1, 1)
				} else if i, failed := wait(ctx, w, s); failed != nil || i != 2 {
					err = fmt.Errorf("signal %d, and not 2: %w", i, failed)
				}
				return errors.Join(err, r.Wait(ctx), s.Free(ctx))
			})
		})
	}
}

// TestWaitsOverHandles mixes transfers with started calls.
func TestWaitsOverHandles(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team := w.Team()
		win, err := window.Allocate[int](ctx, team, 5000)
		if err != nil {
			return err
		}
		win.Local()[4999] = w.Rank()
		if err := win.Fence(ctx); err != nil {
			return err
		}
		var things []interface {
			Done() bool
			Wait(ctx context.Context) error
		}
		got := make([][]int, w.Size())
		for m := range got {
			got[m] = make([]int, 5000)
			h, err := win.GetNB(m, 0, got[m])
			if err != nil {
				return err
			}
			things = append(things, h)
		}
		things = append(things, team.BarrierNB(), team.BarrierNB())
		left := len(things)
		for left > 0 {
			some, err := team.WaitSome(ctx, left, func(i int) bool { return things[i].Done() })
			if err != nil {
				return err
			}
			require.NotEmpty(t, some)
			i, err := team.WaitAny(ctx, left, func(i int) bool { return things[i].Done() })
			require.NoError(t, err)
			require.LessOrEqual(t, i, some[0])
			if err := things[i].Wait(ctx); err != nil {
				return err
			}
			left--
			things[i] = things[left]
		}
		require.NoError(t, team.WaitAll(ctx, len(things), func(i int) bool { return things[i].Done() }))
		for m := range got {
			require.Equal(t, m, got[m][4999])
		}
		require.NoError(t, team.WaitAll(ctx, 0, nil))
		_, err = team.WaitAny(ctx, 0, nil)
		require.ErrorIs(t, err, pgsync.ErrState)
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = team.WaitSome(short, 3, func(int) bool { return false })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, team.WaitAll(short, 1, func(int) bool { return false }), context.DeadlineExceeded)
		return win.Free(ctx)
	}, 1, 3)
}

// TestEvents: posts are counted, taken once, and show what was put before them.
func TestEvents(t *testing.T) {
	f := func(ctx context.Context, w *pgas.World) error {
		n := w.Size()
		e, err := pgsync.NewEvent(ctx, w.Team())
		if err != nil {
			return err
		}
		win, err := window.Allocate[int](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		const rounds = 8
		for round := range rounds {
			for m := range n {
				if err := errors.Join(win.Put(m, w.Rank(), []int{round + 1}), e.Post(m, uint64(1+m%2))); err != nil {
					return err
				}
			}
			if err := e.Wait(ctx, uint64(n*(1+w.Rank()%2))); err != nil {
				return err
			}
			if got := win.Local()[w.Rank()]; got < round+1 {
				return fmt.Errorf("own element is %d in round %d", got, round)
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if e.Count() != 0 || e.TryWait(1) || !e.TryWait(0) {
			return fmt.Errorf("%d posts left", e.Count())
		}
		return errors.Join(win.Free(ctx), e.Free(ctx))
	}
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return f(ctx, w) }, 1, 2, 5)
	t.Run("simulated", func(t *testing.T) { simulated(t, pgastest.SimConfig{Ranks: 64, Seed: 6}, f) })
}

// TestEventOrdersData: what was put before a post is there when the post is taken, on every transport.
func TestEventOrdersData(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		full, err := pgsync.NewEvent(ctx, w.Team())
		if err != nil {
			return err
		}
		empty, err := pgsync.NewEvent(ctx, w.Team())
		if err != nil {
			return err
		}
		win, err := window.Allocate[int](ctx, w.Team(), 600)
		if err != nil {
			return err
		}
		data := make([]int, 600)
		for round := 1; round <= 20 && w.Rank() < 2; round++ {
			for i := range data {
				data[i] = round
			}
			if w.Rank() == 0 {
				if round > 1 {
					if err := empty.Wait(ctx, 1); err != nil {
						return err
					}
				}
				if err := errors.Join(win.Put(1, 0, data), full.Post(1, 1)); err != nil {
					return err
				}
				continue
			}
			if err := full.Wait(ctx, 1); err != nil {
				return err
			}
			require.Equal(t, data, win.Local())
			if err := empty.Post(0, 1); err != nil {
				return err
			}
		}
		require.ErrorIs(t, full.Post(-1, 1), pgsync.ErrMember)
		require.ErrorIs(t, full.Post(w.Size(), 1), pgsync.ErrMember)
		if err := errors.Join(win.Free(ctx), full.Free(ctx), empty.Free(ctx)); err != nil {
			return err
		}
		require.ErrorIs(t, full.Post(0, 1), pgas.ErrClosed)
		require.ErrorIs(t, full.Wait(ctx, 1), pgas.ErrClosed)
		require.ErrorIs(t, full.Free(ctx), pgas.ErrClosed)
		require.False(t, full.TryWait(0))
		return nil
	}, 2, 3)
}
