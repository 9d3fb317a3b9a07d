package window_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// both are the kinds of windows with epochs.
var both = []window.Config{{Epochs: true}, {StrictEpochs: true}}

// TestPostStartCompleteWait: in each round every rank puts to its neighbours on both sides, which see exactly that.
func TestPostStartCompleteWait(t *testing.T) {
	pgastest.EachReal(t, upTo4, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, c := range both {
			win, err := window.AllocateConfig[int64](ctx, w.Team(), 2, c)
			if err != nil {
				return err
			}
			left, right := (w.Rank()+w.Size()-1)%w.Size(), (w.Rank()+1)%w.Size()
			group := []int{left, right}
			if left == right {
				group = group[:1]
			}
			for round := int64(1); round <= 6; round++ {
				if err := errors.Join(win.Post(group), win.Start(ctx, group)); err != nil {
					return err
				}
				if err := errors.Join(win.Put(left, 1, []int64{round}), win.Put(right, 0, []int64{-round})); err != nil {
					return err
				}
				if err := win.Complete(); err != nil {
					return err
				}
				if round%3 == 0 {
					for ended := false; !ended; runtime.Gosched() {
						if ended, err = win.TryWait(); err != nil {
							return err
						}
					}
				} else if err := win.Wait(ctx); err != nil {
					return err
				}
				require.Equal(t, []int64{-round, round}, win.Local())
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestStrictEpochs: what no epoch allows is refused before anything moves.
func TestStrictEpochs(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.AllocateConfig[int64](ctx, w.Team(), 8, window.Config{StrictEpochs: true})
		if err != nil {
			return err
		}
		sigs, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		other := 1 - w.Rank()
		buf := []int64{77}
		all := func(target int) map[string]error {
			get, getNB := win.GetNB(target, w.Rank(), make([]int64, 1))
			put, putNB := win.PutNB(target, w.Rank(), []int64{77})
			require.NoError(t, get.Wait(ctx))
			require.NoError(t, put.Wait(ctx))
			_, add := window.FetchAdd(win, target, w.Rank(), 1)
			_, swap := window.Swap(win, target, w.Rank(), 1)
			_, load := window.Load(win, target, w.Rank())
			_, cas := window.CompareSwap(win, target, w.Rank(), 1, 1)
			at := func(int) (int, int) { return target, w.Rank() }
			return map[string]error{
				"put": win.Put(target, w.Rank(), buf), "get": win.Get(target, w.Rank(), buf), "get nb": getNB, "put nb": putNB,
				"add": add, "swap": swap, "cas": cas, "load": load, "store": window.Store(win, target, w.Rank(), 77), "flush": win.Flush(target), "order": win.Order(target),
				"accumulate":     window.Accumulate(win, target, w.Rank(), buf, pgsync.Sum),
				"get-accumulate": window.GetAccumulate(win, target, w.Rank(), buf, buf, pgsync.Sum),
				"strided":        win.PutStrided(target, w.Rank(), 1, buf, 1, 1), "indexed": win.GetIndexed(target, []int{w.Rank()}, buf),
				"scatter": win.Scatter(buf, at), "gather": win.Gather(buf, at),
				"signal": win.PutSignal(target, w.Rank(), buf, sigs.Signal(0), 1),
			}
		}
		refused := func(target int) {
			for name, err := range all(target) {
				require.ErrorIs(t, err, window.ErrEpoch, name)
				require.ErrorAs(t, err, new(*pgas.OpError), name)
			}
		}
		allowed := func(target int) {
			for name, err := range all(target) {
				require.NoError(t, err, name)
			}
		}
		_, ok := win.View(w.Rank())
		require.False(t, ok)
		_, ok = win.Shared(w.Rank())
		require.False(t, ok)
		refused(other)
		refused(w.Rank())
		require.Equal(t, make([]int64, 8), win.Local(), "something has moved")
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if err := win.Lock(ctx, w.Rank(), window.LockShared); err != nil {
			return err
		}
		refused(other)
		allowed(w.Rank())
		require.ErrorIs(t, win.Lock(ctx, w.Rank(), window.LockShared), window.ErrEpoch)
		require.ErrorIs(t, win.LockAll(ctx), window.ErrEpoch)
		require.ErrorIs(t, win.Fence(ctx), window.ErrEpoch)
		require.ErrorIs(t, win.Start(ctx, []int{other}), window.ErrEpoch)
		require.ErrorIs(t, win.Free(ctx), window.ErrEpoch)
		if err := win.Unlock(w.Rank()); err != nil {
			return err
		}
		refused(w.Rank())
		require.ErrorIs(t, win.Unlock(w.Rank()), window.ErrEpoch)
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		allowed(other)
		allowed(w.Rank())
		if err := errors.Join(win.UnlockAll(), win.Fence(ctx)); err != nil {
			return err
		}
		allowed(other)
		require.ErrorIs(t, win.Post([]int{other}), window.ErrEpoch, "a fence epoch is in use")
		if err := win.FenceEnd(ctx); err != nil {
			return err
		}
		refused(other)
		if err := errors.Join(win.Post([]int{other}), win.Start(ctx, []int{other})); err != nil {
			return err
		}
		allowed(other)
		refused(w.Rank())
		if err := errors.Join(win.Complete(), win.Wait(ctx)); err != nil {
			return err
		}
		refused(other)
		return errors.Join(win.Free(ctx), sigs.Free(ctx))
	})
}

func TestEpochArguments(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		plain, err := window.Allocate[int8](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		for _, err := range []error{
			plain.Lock(ctx, 0, 0), plain.Unlock(0), plain.LockAll(ctx), plain.UnlockAll(), plain.Post(nil), plain.Start(ctx, nil),
			plain.Complete(), plain.Wait(ctx),
		} {
			require.ErrorIs(t, err, window.ErrEpoch)
			require.ErrorContains(t, err, "Config{Epochs: true}")
		}
		win, err := window.AllocateConfig[int8](ctx, w.Team(), 0, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		require.ErrorIs(t, win.Lock(ctx, 2, window.LockShared), window.ErrTarget)
		require.ErrorIs(t, win.Lock(ctx, 0, 2), window.ErrEpoch)
		require.ErrorIs(t, win.Post([]int{0, -1}), window.ErrTarget)
		require.ErrorIs(t, win.Start(ctx, []int{1, 1}), pgsync.ErrMember)
		require.NoError(t, errors.Join(win.Post(nil), win.Start(ctx, nil), win.Complete(), win.Wait(ctx)), "empty groups")
		_, err = window.AllocateConfig[int8](ctx, w.Team(), 1, window.Config{Epochs: w.Rank() == 0})
		require.ErrorIs(t, err, pgsync.ErrMismatch)
		if err := errors.Join(win.Free(ctx), plain.Free(ctx)); err != nil {
			return err
		}
		require.ErrorIs(t, win.Lock(ctx, 0, window.LockShared), pgas.ErrClosed)
		return nil
	})
}

// TestLocks: writers change two words of one member, one after the other, and readers never see them apart.
func TestLocks(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rounds = 20
		win, err := window.AllocateConfig[int64](ctx, w.Team(), 2, window.Config{StrictEpochs: true})
		if err != nil {
			return err
		}
		two := make([]int64, 2)
		for i := range rounds {
			kind := window.LockExclusive
			if i%3 == 2 {
				kind = window.LockShared
			}
			if err := win.Lock(ctx, 0, kind); err != nil {
				return err
			}
			if err := win.Get(0, 0, two); err != nil {
				return err
			}
			require.Equal(t, two[0], two[1], "torn")
			if kind == window.LockExclusive {
				for k := range two {
					if err := win.Put(0, k, []int64{two[0] + 1}); err != nil {
						return err
					}
				}
			}
			if err := win.Unlock(0); err != nil {
				return err
			}
			if i%7 == 6 {
				if err := win.LockAll(ctx); err != nil {
					return err
				}
				for m := range w.Size() {
					if err := win.Get(m, 0, two); err != nil {
						return err
					}
					require.Equal(t, two[0], two[1], "torn")
				}
				if err := win.UnlockAll(); err != nil {
					return err
				}
			}
		}
		if err := win.FenceEnd(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			writes := int64(0)
			for i := range rounds {
				if i%3 != 2 {
					writes++
				}
			}
			require.Equal(t, []int64{writes * int64(w.Size()), writes * int64(w.Size())}, win.Local())
		}
		return win.Free(ctx)
	})
}

// TestManyLocks: ranks lock all, and one after the other exclusively, in orders that would stop each other for ever if
// LockAll kept what it has while it waits.
func TestManyLocks(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.AllocateConfig[int32](ctx, w.Team(), 1, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		for range 10 {
			if w.Rank() == 0 {
				if err := errors.Join(win.LockAll(ctx), win.UnlockAll()); err != nil {
					return err
				}
				continue
			}
			for m := 2; m >= 0; m-- { // downwards, LockAll goes upwards
				if err := win.Lock(ctx, m, window.LockExclusive); err != nil {
					return err
				}
			}
			for m := range 3 {
				if _, err := window.FetchAdd(win, m, 0, 1); err != nil {
					return err
				}
				if err := win.Unlock(m); err != nil {
					return err
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.EqualValues(t, []int32{20}, win.Local())
		return win.Free(ctx)
	})
}

// TestLockWaitEnds: with the context, and for a lock whose holder is gone with an error that names it.
func TestLockWaitEnds(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			var held sync.WaitGroup
			held.Add(1)
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.AllocateConfig[int32](ctx, w.Team(), 1, window.Config{Epochs: true})
				if err != nil {
					return err
				}
				if w.Rank() == 2 {
					if err := win.Lock(ctx, 1, window.LockExclusive); err != nil {
						return err
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					held.Wait() // the others have tried
					return errors.New("holder gone")
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					return w.Barrier(ctx) // ends with the first that goes
				}
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				err = win.Lock(short, 1, window.LockExclusive)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NoError(t, win.Lock(ctx, 0, window.LockShared), "the epoch of the lock that was not had is not open")
				require.NoError(t, win.Unlock(0))
				held.Done()
				err = win.Lock(ctx, 1, window.LockShared)
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				return err
			})
			require.ErrorContains(t, errs[2], "holder gone")
		})
	}
}

// TestEpochWaitsEnd: Start and Wait end with the context, after which they may be called again, and with an error that
// names whom they wait for when that rank is gone.
func TestEpochWaitsEnd(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.AllocateConfig[int32](ctx, w.Team(), 1, window.Config{Epochs: true})
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					if err := w.Barrier(ctx); err != nil { // rank 0 has waited in vain
						return err
					}
					err := errors.Join(win.Post([]int{0}), win.Start(ctx, []int{0}), win.Complete(), win.Wait(ctx))
					return errors.Join(err, errors.New("done"))
				}
				short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, win.Start(short, []int{1}), context.DeadlineExceeded)
				require.NoError(t, win.Post([]int{1}))
				require.ErrorIs(t, win.Wait(short), context.DeadlineExceeded)
				ended, err := win.TryWait()
				require.False(t, ended)
				require.NoError(t, err)
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if err := errors.Join(win.Start(ctx, []int{1}), win.Complete(), win.Wait(ctx)); err != nil {
					return err
				}
				for _, call := range []func() error{
					func() error { return win.Start(ctx, []int{1}) },
					func() error { return errors.Join(win.Post([]int{1}), win.Wait(ctx)) },
				} {
					err := call()
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					var oe *pgas.OpError
					require.ErrorAs(t, err, &oe)
					require.Equal(t, 1, oe.Rank)
				}
				return nil
			})
			require.EqualError(t, errs[1], "done")
		})
	}
}
