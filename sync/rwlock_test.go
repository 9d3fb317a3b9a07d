package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestRWLockExcludes: writers change two elements on rank 0, readers find them equal, all by Put and Get.
func TestRWLockExcludes(t *testing.T) {
	f := func(ctx context.Context, w *pgas.World) error {
		const rounds = 10
		l, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		win, err := window.Allocate[int](ctx, w.Team(), 1000)
		if err != nil {
			return err
		}
		writes := 0
		for i := range rounds {
			var a, b [1]int
			if (i+w.Rank())%3 != 0 {
				if err := l.RLock(ctx); err != nil {
					return err
				}
				if err := errors.Join(win.Get(0, 0, a[:]), win.Get(0, 999, b[:])); err != nil {
					return err
				}
				if a != b {
					return fmt.Errorf("a reader sees %v and %v", a, b)
				}
				if err := l.RUnlock(); err != nil {
					return err
				}
				continue
			}
			writes++
			if err := l.Lock(ctx); err != nil {
				return err
			}
			if err := win.Get(0, 0, a[:]); err != nil {
				return err
			}
			a[0]++
			if err := errors.Join(win.Put(0, 0, a[:]), win.Put(0, 999, a[:]), l.Unlock()); err != nil {
				return err
			}
		}
		sum := []int{writes}
		if err := errors.Join(pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 && win.Local()[0] != sum[0] {
			return fmt.Errorf("%d of %d writes are left", win.Local()[0], sum[0])
		}
		return errors.Join(win.Free(ctx), l.Free(ctx))
	}
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return f(ctx, w) }, 1, 2, 4)
	t.Run("simulated", func(t *testing.T) {
		simulated(t, pgastest.SimConfig{Ranks: 24, RanksPerNode: 4, Mapped: true, Seed: 7}, f)
	})
}

// TestReadersShare: all readers are inside at once; a writer that waits holds later readers back, and gets in when they leave.
func TestReadersShare(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		require.ErrorIs(t, l.Unlock(), pgsync.ErrState)
		require.ErrorIs(t, l.RUnlock(), pgsync.ErrState)
		if err := l.RLock(ctx); err != nil {
			return err
		}
		require.ErrorIs(t, l.Unlock(), pgsync.ErrState, "held to read")
		if err := w.Barrier(ctx); err != nil { // all hold it
			return err
		}
		last := w.Size() - 1
		if w.Rank() == last { // leaves, and wants to write while the others read
			if err := l.RUnlock(); err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
			err := l.Lock(short)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var oe *pgas.OpError
			require.ErrorAs(t, err, &oe)
			// Its wait left nothing behind: it can read beside the others.
			if err := errors.Join(l.RLock(ctx), l.RUnlock()); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() != last {
			if err := l.RUnlock(); err != nil {
				return err
			}
		}
		if err := errors.Join(l.Lock(ctx), l.Unlock()); err != nil {
			return err
		}
		if err := l.Free(ctx); err != nil {
			return err
		}
		require.ErrorIs(t, l.Lock(ctx), pgas.ErrClosed)
		require.ErrorIs(t, l.RLock(ctx), pgas.ErrClosed)
		require.ErrorIs(t, l.RUnlock(), pgas.ErrClosed)
		require.ErrorIs(t, l.Free(ctx), pgas.ErrClosed)
		return nil
	}, 2, 3)
}

// TestRWLockGivenUpAtAnyMoment: waits that end by their context, at any moment, leave the lock to the others.
func TestRWLockGivenUpAtAnyMoment(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		for i := range 40 {
			short, cancel := context.WithTimeout(ctx, time.Duration((i*7+w.Rank()*13)%400)*time.Microsecond)
			lock, unlock := l.Lock, l.Unlock
			if i%2 == 0 {
				lock, unlock = l.RLock, l.RUnlock
			}
			err := lock(short)
			cancel()
			if err == nil {
				err = unlock()
			} else if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if err != nil {
				return err
			}
		}
		if err := errors.Join(l.Lock(ctx), l.Unlock()); err != nil {
			return err
		}
		return l.Free(ctx)
	}, 3)
}

// TestDeadHolderOfARWLock: whoever needs the lock is told who held it; a rank that is gone while it waits keeps nobody.
func TestDeadHolderOfARWLock(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for _, how := range []string{"writes", "reads", "waits"} {
			t.Run(p.Name+"/"+how, func(t *testing.T) {
				p.TimeLimit = time.Minute
				const dead = 2
				var through, held, told sync.WaitGroup
				through.Add(4) // nobody dies before all have left the barrier
				held.Add(1)
				told.Add(3)
				errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
					l, err := pgsync.NewRWLock(ctx, w.Team())
					if err != nil {
						return err
					}
					if how == "waits" && w.Rank() == 0 {
						if err := l.Lock(ctx); err != nil {
							return err
						}
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					through.Done()
					if w.Rank() == dead {
						through.Wait()
						switch how {
						case "writes":
							err = l.Lock(ctx)
						case "reads":
							err = l.RLock(ctx)
						default:
							go func() { // stands in the queue when it is gone
								_ = l.Lock(ctx)
							}()
							for !slices.ContainsFunc(w.Waits(), func(x pgas.Wait) bool { return x.Op == "lock" }) {
								time.Sleep(100 * time.Microsecond)
							}
						}
						held.Done()
						return errors.Join(errors.New("made up"), err)
					}
					held.Wait()
					if how == "waits" {
						for len(w.Failed()) == 0 {
							time.Sleep(time.Millisecond)
						}
						if w.Rank() == 0 {
							err = l.Unlock()
						} else {
							err = errors.Join(l.Lock(ctx), l.Unlock())
						}
					} else {
						err = l.Lock(ctx)
						var oe *pgas.OpError
						require.ErrorAs(t, err, &oe)
						require.Equal(t, dead, oe.Rank, "%v", err)
						require.ErrorContains(t, err, "it held the lock")
					}
					told.Done()
					told.Wait()
					return err
				})
				for r, err := range errs {
					switch {
					case r == dead:
					case how == "waits":
						// Closing the world needs the dead one, which may also have been about to stand in line and hold the guard.
						require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", r)
						require.Regexp(t, "close|it held the lock", err.Error(), "rank %d", r)
					default:
						require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", r)
					}
				}
			})
		}
	}
}

// TestRWTry: who tries gets the lock where nobody stands in the way, and waits for nobody.
func TestRWTry(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		l, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		first, last := w.Rank() == 0, w.Rank() == w.Size()-1
		try := func(f func() (bool, error), want bool, text string) {
			ok, err := f()
			require.NoError(t, err, text)
			require.Equal(t, want, ok, text)
		}
		// All read at once; nobody may write then, not even one who reads.
		try(l.TryRLock, true, "beside readers")
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		try(l.TryLock, false, "while others read")
		if err := errors.Join(w.Barrier(ctx), l.RUnlock(), w.Barrier(ctx)); err != nil {
			return err
		}
		// One writes.
		if first {
			try(l.TryLock, true, "free")
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		try(l.TryRLock, false, "while one writes")
		try(l.TryLock, false, "while one writes")
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if first {
			if err := l.Unlock(); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		// A reader that tries does not pass a writer that waits.
		if w.Size() > 2 {
			if first {
				try(l.TryRLock, true, "free")
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			switch {
			case last:
				if err := l.Lock(ctx); err != nil {
					return err
				}
			case first: // a try succeeds until the writer stands in the queue, or has the lock
				for ok := true; ok; {
					if err := l.RUnlock(); err != nil {
						return err
					}
					var err error
					if ok, err = l.TryRLock(); err != nil {
						return err
					}
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if last {
				if err := l.Unlock(); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			try(l.TryRLock, true, "after the writer")
			if err := l.RUnlock(); err != nil {
				return err
			}
		}
		if err := l.Free(ctx); err != nil {
			return err
		}
		_, err = l.TryLock()
		require.ErrorIs(t, err, pgas.ErrClosed)
		return nil
	}, 1, 2, 3)
}
