package window_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestDeathShutsTheDirectWay: calls stop to use a part directly when its owner is gone, and no other part. A view of it stays, with what the owner
// has left; so does a window that was made when the death was known already. Survivors' windows are as fast as any.
func TestDeathShutsTheDirectWay(t *testing.T) {
	const dead = 2
	var ready, told sync.WaitGroup
	ready.Add(4)
	told.Add(3)
	errs := pgastest.Errors(t, 4, pgastest.Config{TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 10)
		require.NoError(t, err)
		own, err := w.Team().Split(ctx, w.Rank()%2, 0)
		require.NoError(t, err)
		half, err := window.Allocate[int](ctx, own, 10)
		require.NoError(t, err)
		win.Local()[7] = 100 + w.Rank()
		require.NoError(t, win.Fence(ctx))
		ready.Done()
		ready.Wait()
		if w.Rank() == dead {
			return errors.New("made up")
		}
		require.Eventually(t, func() bool { part, flush := window.Direct(win, dead); return !part && !flush }, 10*time.Second, time.Millisecond)
		for _, r := range []int{0, 1, 3} {
			part, _ := window.Direct(win, r)
			require.True(t, part, "rank %d lives", r)
			require.NoError(t, errors.Join(win.Put(r, w.Rank(), []int{1}), win.Flush(r)))
		}
		require.ErrorIs(t, win.Put(dead, 0, []int{1}), pgas.ErrPeerGone)
		require.ErrorIs(t, win.FlushAll(), pgas.ErrPeerGone)
		require.ErrorIs(t, win.Put(dead, 10, []int{1}), window.ErrRange, "a mistake is still one")
		require.NoError(t, win.Put(dead, 0, nil), "nothing needs nobody")
		v, ok := win.View(dead)
		require.True(t, ok)
		require.Equal(t, 100+dead, v.Load(7))
		if _, flush := window.Direct(half, 0); w.Rank()%2 != dead%2 {
			require.True(t, flush, "its members all live")
			require.NoError(t, half.FlushAll())
		} else {
			require.ErrorIs(t, half.FlushAll(), pgas.ErrPeerGone)
		}
		team, err := w.Team().Survivors(ctx)
		require.NoError(t, err)
		fast, err := window.Allocate[int](ctx, team, 10)
		require.NoError(t, err)
		for m := range team.Size() {
			part, flush := window.Direct(fast, m)
			require.True(t, part && flush, "member %d", m)
		}
		told.Done()
		told.Wait()
		return nil
	})
	for r, err := range errs {
		if r == dead {
			require.ErrorContains(t, err, "made up")
		} else {
			require.NoError(t, err, "rank %d", r)
		}
	}
}

// TestFlushLocalOfTheDead: where a target dies before it has answered a get whose handle was dropped, who waits for the data by FlushLocal hears that it is
// not there, also when all has ended by then.
func TestFlushLocalOfTheDead(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			var begun sync.WaitGroup
			begun.Add(1)
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 100)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					begun.Wait()
					return errors.New("made up")
				}
				h, err := win.GetNB(1, 0, make([]int64, 100))
				begun.Done()
				if err != nil {
					return err
				}
				require.Eventually(t, func() bool { return len(w.Failed()) == 1 && h.Done() }, 10*time.Second, time.Millisecond)
				require.ErrorIs(t, win.FlushLocal(1), pgas.ErrPeerGone)
				return nil
			})
			require.ErrorIs(t, errs[0], pgas.ErrPeerGone, "of Close")
		})
	}
}

// TestEpochOfTheDead: who opens or ends an epoch with several members hears of one that is gone, though another, which lives, is the one that it waits for.
func TestEpochOfTheDead(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			told := make(chan struct{})
			var ready sync.WaitGroup
			ready.Add(3)
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.AllocateConfig[int64](ctx, w.Team(), 1, window.Config{Epochs: true})
				if err == nil && w.Rank() == 1 {
					err = win.Lock(ctx, 1, window.LockExclusive)
				}
				ready.Done()
				ready.Wait()
				if err != nil {
					return err
				}
				switch w.Rank() {
				case 1:
					<-told
					return win.Unlock(1)
				case 2:
					return errors.New("made up")
				}
				defer close(told)
				names := func(err error) {
					var of *pgas.OpError
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					require.ErrorAs(t, err, &of)
					require.Equal(t, 2, of.Rank)
				}
				within, end := context.WithTimeout(ctx, 5*time.Second)
				defer end()
				require.ErrorIs(t, win.LockAll(within), pgas.ErrPeerGone)
				require.ErrorIs(t, win.UnlockAll(), window.ErrEpoch, "it was not opened")
				names(win.Start(within, []int{1, 2}))
				require.ErrorIs(t, win.Complete(), window.ErrEpoch, "likewise")
				_ = win.Post([]int{1, 2}) // which may tell of the death
				names(win.Wait(within))
				_, err = win.TryWait()
				names(err)
				return nil
			})
			require.ErrorContains(t, errs[2], "made up")
			require.ErrorIs(t, errs[0], pgas.ErrPeerGone, "of Close")
		})
	}
}
