package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestFlushNB: when the handle is done, what was begun before it is at the target: puts short and long, of one call and of many, and sums.
func TestFlushNB(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const long, rounds = 30_000, 6
		win, err := window.Allocate[int64](ctx, w.Team(), long+20)
		if err != nil {
			return err
		}
		next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		src, more := make([]int64, long), make([]int64, 4)
		for round := range int64(rounds) {
			for i := range src {
				src[i] = round<<32 | int64(w.Rank())<<16 | int64(i)
			}
			hs := window.Handles{}
			add := func(h window.Handle, e error) { hs, err = append(hs, h), errors.Join(err, e) }
			add(win.PutNB(next, 0, src))
			err = errors.Join(err, win.Put(next, long, []int64{round + 1}), window.Accumulate(win, next, long+1, []int64{1}, pgsync.Sum))
			h, e := win.FlushNB(next)
			for i := range more { // which the handle says nothing about
				add(win.PutNB(next, long+2+i, more[i:i+1]))
			}
			for round%2 == 0 && !h.Done() {
			}
			if err := errors.Join(err, e, h.Wait(ctx), h.Wait(ctx), w.Barrier(ctx)); err != nil { // the barrier flushes nothing
				return err
			}
			for i, v := range win.Local()[:long] {
				if want := round<<32 | int64(before)<<16 | int64(i); v != want {
					require.Equal(t, want, v, "round %d, element %d", round, i)
				}
			}
			require.Equal(t, []int64{round + 1, round + 1}, win.Local()[long:long+2])
			if err := errors.Join(hs.Wait(ctx), win.Fence(ctx)); err != nil {
				return err
			}
		}
		_, err = win.FlushNB(3)
		require.ErrorIs(t, err, window.ErrTarget)
		return win.Free(ctx)
	})
}

// TestFlushNBOfTheDead: flushes that were begun to a rank that dies end, and those that are begun from then on fail.
func TestFlushNBOfTheDead(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			begun := make(chan struct{})
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 100_000)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					<-begun
					return errors.New("made up")
				}
				src := make([]int64, 100_000)
				for i := 0; err == nil; i++ {
					var h window.Handle
					if err = win.Put(1, 0, src); err == nil {
						h, err = win.FlushNB(1)
					}
					if i == 3 {
						close(begun)
					}
					if err == nil {
						err = h.Wait(ctx)
					}
				}
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				require.Eventually(t, func() bool { return len(w.Failed()) == 1 }, 10*time.Second, time.Millisecond)
				_, err = win.FlushNB(1)
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				return nil
			})
			require.ErrorIs(t, errs[0], pgas.ErrPeerGone, "of Close")
		})
	}
}
