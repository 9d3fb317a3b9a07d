package pgsync_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestLockExcludes: goroutines of all ranks change a plain counter on rank 0 under the lock, by Put and Get; on mapped
// memory the race detector watches. Nobody starves.
func TestLockExcludes(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const gos, rounds = 3, 12
		l, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		win, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		errs := make([]error, gos)
		var wg sync.WaitGroup
		for g := range gos {
			wg.Go(func() {
				for i := range rounds {
					if (g+i)%5 == 0 { // some by trying
						ok := false
						for !ok && errs[g] == nil {
							if ok, errs[g] = l.TryLock(); !ok {
								time.Sleep(50 * time.Microsecond)
							}
						}
					} else {
						errs[g] = l.Lock(ctx)
					}
					if errs[g] != nil {
						return
					}
					var v [1]int64
					errs[g] = win.Get(0, 0, v[:])
					v[0]++
					if errs[g] = errors.Join(errs[g], win.Put(0, 0, v[:]), l.Unlock()); errs[g] != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			require.EqualValues(t, w.Size()*gos*rounds, win.Local()[0])
		}
		if err := errors.Join(win.Free(ctx), l.Free(ctx)); err != nil {
			return err
		}
		require.ErrorIs(t, l.Lock(ctx), pgas.ErrClosed)
		_, err = l.TryLock()
		require.ErrorIs(t, err, pgas.ErrClosed)
		require.ErrorIs(t, l.Unlock(), pgas.ErrClosed)
		require.ErrorIs(t, l.Free(ctx), pgas.ErrClosed)
		return nil
	}, 1, 2, 3, 4)
}

func TestLockStates(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		require.ErrorIs(t, l.Unlock(), pgsync.ErrState)
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			require.NoError(t, l.Lock(ctx))
			ok, err := l.TryLock()
			require.NoError(t, err)
			require.False(t, ok, "not by the holder's rank either")
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() != 1 {
			ok, err := l.TryLock()
			require.NoError(t, err)
			require.False(t, ok)
			require.ErrorIs(t, l.Unlock(), pgsync.ErrState, "another rank's lock")
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
		err = l.Lock(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var oe *pgas.OpError
		require.ErrorAs(t, err, &oe)
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			require.NoError(t, l.Unlock())
			require.ErrorIs(t, l.Unlock(), pgsync.ErrState)
		}
		// Those who gave up do not keep it from anybody.
		if err := errors.Join(l.Lock(ctx), l.Unlock()); err != nil {
			return err
		}
		return l.Free(ctx)
	}, 3)
}

// TestUnlockTwiceAtOnce: of two goroutines that release, one is told that it holds nothing, and the lock stays one lock.
func TestUnlockTwiceAtOnce(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		for range 30 {
			if err := l.Lock(ctx); err != nil {
				return err
			}
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for g := range errs {
				wg.Go(func() { errs[g] = l.Unlock() })
			}
			wg.Wait()
			good := 0
			for _, err := range errs {
				if err == nil {
					good++
				} else {
					require.ErrorIs(t, err, pgsync.ErrState)
				}
			}
			require.Equal(t, 1, good)
		}
		return l.Free(ctx)
	}, 2)
}

// TestGrantIsNotLost: waits for the lock that end by their context, at any moment, never take it with them.
func TestGrantIsNotLost(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		got, rounds := 0, 150
		if testing.Short() {
			rounds /= 3
		}
		for i := range rounds {
			short, cancel := context.WithTimeout(ctx, time.Duration((i*7+w.Rank()*13)%400)*time.Microsecond)
			err := l.Lock(short)
			cancel()
			if err == nil {
				got++
				if i%3 == 0 {
					time.Sleep(50 * time.Microsecond)
				}
				err = l.Unlock()
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
		}
		if err := errors.Join(l.Lock(ctx), l.Unlock()); err != nil { // hangs if a grant was lost
			return err
		}
		return l.Free(ctx)
	}, 2, 4)
}

// TestWaiterDies: the lock goes on to the living.
func TestWaiterDies(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = time.Minute
			var made, dead, done sync.WaitGroup
			made.Add(4) // nobody dies before all have left the calls of all
			dead.Add(1)
			done.Add(3)
			good := errors.New("all went well")
			errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
				l, err := pgsync.NewLock(ctx, w.Team())
				if err != nil {
					return err
				}
				held, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				made.Done()
				if w.Rank() == 2 { // waits for the lock, then dies
					made.Wait()
					if _, err := held.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
					short, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
					defer cancel()
					_ = l.Lock(short)
					dead.Done() // it has left the queue: who gave it the lock in the midst of that would lose it, and be right
					return errors.New("made up")
				}
				if w.Rank() == 1 {
					if err := errors.Join(l.Lock(ctx), held.Signal(0).Set(2, 1)); err != nil {
						return err
					}
					dead.Wait()
					time.Sleep(20 * time.Millisecond)
					if err := l.Unlock(); err != nil {
						return err
					}
				}
				for range 20 {
					if err := errors.Join(l.Lock(ctx), l.Unlock()); err != nil {
						return err
					}
				}
				done.Done()
				done.Wait()
				return good
			})
			for _, r := range []int{0, 1, 3} {
				require.ErrorIs(t, errs[r], good, "rank %d", r)
			}
		})
	}
}

// TestHolderDies: whoever wants the lock then, or wants it later, is told who held it.
func TestHolderDies(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = time.Minute
			var through, told sync.WaitGroup
			through.Add(3) // nobody dies before all have left the barrier
			told.Add(2)
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				l, err := pgsync.NewLock(ctx, w.Team())
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = l.Lock(ctx)
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				through.Done()
				if w.Rank() == 1 {
					through.Wait()
					time.Sleep(5 * time.Millisecond)
					return errors.New("made up")
				}
				first := l.Lock(ctx)
				again := l.Lock(ctx)
				told.Done()
				told.Wait()
				require.ErrorIs(t, again, pgas.ErrPeerGone)
				return first
			})
			for _, r := range []int{0, 2} {
				require.ErrorIs(t, errs[r], pgas.ErrPeerGone)
				var oe *pgas.OpError
				require.ErrorAs(t, errs[r], &oe)
				require.Equal(t, 1, oe.Rank, "%v", errs[r])
				require.ErrorContains(t, errs[r], "it held the lock")
			}
		})
	}
}

// TestErrorNamesWhoHeldTheLock: where another rank was gone before, the error of a wait still has the rank that its words are about.
func TestErrorNamesWhoHeldTheLock(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = time.Minute
			const bystander, holder = 3, 1
			var ready, told sync.WaitGroup
			ready.Add(4)
			told.Add(2)
			errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
				l, err := pgsync.NewLock(ctx, w.Team())
				if err == nil && w.Rank() == holder {
					err = l.Lock(ctx)
				}
				rw, rwErr := pgsync.NewRWLock(ctx, w.Team())
				if rwErr == nil && w.Rank() == holder {
					rwErr = rw.Lock(ctx)
				}
				if err := errors.Join(err, rwErr, w.Barrier(ctx)); err != nil {
					return err
				}
				ready.Done()
				ready.Wait()
				if w.Rank() == bystander {
					return errors.New("made up")
				}
				for w.Barrier(ctx) == nil { // until it is known
					time.Sleep(time.Millisecond)
				}
				if w.Rank() == holder {
					time.Sleep(20 * time.Millisecond)
					return errors.New("made up, too")
				}
				locked, read := l.Lock(ctx), rw.RLock(ctx)
				told.Done()
				told.Wait()
				return errors.Join(locked, read)
			})
			for _, r := range []int{0, 2} {
				joined, ok := errs[r].(interface{ Unwrap() []error })
				require.True(t, ok, "%v", errs[r])
				require.Len(t, joined.Unwrap(), 2)
				for _, err := range joined.Unwrap() {
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					require.ErrorContains(t, err, "it held the lock")
					require.ErrorContains(t, err, "rank 1 ")
					var oe *pgas.OpError
					require.ErrorAs(t, err, &oe)
					require.Equal(t, holder, oe.Rank, "%v", err)
				}
			}
		})
	}
}
