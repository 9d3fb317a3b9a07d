package window_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestManyHandles: more transfers in flight than the library has places for, waited for in any order or dropped.
func TestManyHandles(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n, flights = 500, 700
		win, err := window.Allocate[uint32](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = uint32(w.Rank()*n + i)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		target := (w.Rank() + 1) % w.Size()
		var hs []window.Handle
		var dst [][]uint32
		for i := range flights {
			d := make([]uint32, 1+i%7)
			h, err := win.GetNB(target, i%(n-7), d)
			if err != nil {
				return err
			}
			hs, dst = append(hs, h), append(dst, d)
		}
		for k := range flights {
			i := (k*37 + 11) % flights
			if k%5 == 0 {
				continue // dropped
			}
			for k%3 == 0 && !hs[i].Done() {
			}
			if err := hs[i].Wait(ctx); err != nil {
				return err
			}
			for j, v := range dst[i] {
				require.EqualValues(t, target*n+i%(n-7)+j, v)
			}
			require.NoError(t, hs[i].Wait(context.Background()), "a second time")
		}
		for _, h := range hs {
			if err := h.Wait(ctx); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

// TestContextEndsTheWaitOnly: the transfer goes on and its buffer is written.
func TestContextEndsTheWaitOnly(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Jitter: 60 * time.Millisecond, Seed: 4}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = int64(i)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		ended := 0
		for i := 0; i < 5 || ended == 0; i++ { // with a jitter of 60 ms some wait of 1 ms ends early; if none ever does the world's limit ends this
			dst := make([]int64, 100)
			h, err := win.GetNB(1-w.Rank(), 0, dst)
			if err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			err = h.Wait(short)
			cancel()
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				require.Equal(t, 1-w.Rank(), oe.Rank)
				ended++
			}
			if err := h.Wait(ctx); err != nil {
				return err
			}
			require.True(t, h.Done())
			require.EqualValues(t, 99, dst[99])
		}
		return win.Free(ctx)
	})
}

// TestContextEndsAFlush: the put and the atomic go on, and another flush waits for them.
func TestContextEndsAFlush(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Jitter: 60 * time.Millisecond, Seed: 4}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		next, ended, i := 1-w.Rank(), 0, int64(0)
		var old int64
		for ; ended == 0 || i < 3; i++ { // with a jitter of 60 ms some flush of 1 ms ends early
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			_, e := window.FetchAddNB(win, next, 1, 1, &old)
			err := errors.Join(win.Put(next, 0, []int64{i}), e)
			if err == nil {
				err = win.FlushContext(short, next)
			}
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				require.Equal(t, next, oe.Rank)
				ended++
				err = win.FlushContext(ctx, next)
			}
			if err != nil {
				return err
			}
			require.Equal(t, i, old)
		}
		require.ErrorIs(t, win.FlushContext(ctx, 2), window.ErrTarget)
		got := make([]int64, 2)
		if err := win.Get(next, 0, got); err != nil {
			return err
		}
		require.Equal(t, []int64{i - 1, i}, got)
		return win.Free(ctx)
	})
}

// TestManyGoroutinesGetLargely: blocking gets of many pieces by more goroutines than there are slots for.
func TestManyGoroutinesGetLargely(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const gos = 24
		n := 1 << 20
		if w.Transport(1-w.Rank()) != "shm" {
			n = 12 * 64 << 10
		}
		if strings.Contains(t.Name(), "poor") {
			n = 30_000 // of slots of 1000 bytes
		}
		win, err := window.Allocate[byte](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = byte(i * 7)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		errs := make([]error, gos)
		var wg sync.WaitGroup
		for g := range gos {
			wg.Go(func() {
				dst := make([]byte, n)
				if g%3 == 0 {
					h, err := win.GetNB(1-w.Rank(), 0, dst)
					errs[g] = errors.Join(err, h.Wait(ctx))
				} else {
					errs[g] = win.Get(1-w.Rank(), 0, dst)
				}
				for i := 0; i < n && errs[g] == nil; i += 1001 {
					if dst[i] != byte(i*7) {
						errs[g] = errors.New("wrong bytes")
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// relay is a ring of ranks in which each puts to the next one, and tells the one before it what it has seen.
type relay struct {
	win        *window.Window[uint64]
	data, ack  pgsync.Signal
	next, prev int
}

// run puts n elements, all of them the number of the round, in each round, as put does it with the signal behind them; whoever sees the signal must see them.
func (r relay) run(ctx context.Context, n int, rounds uint64, put func(src []uint64, round uint64) error) error {
	src := make([]uint64, n)
	for round := uint64(1); round <= rounds; round++ {
		for i := range src {
			src[i] = round
		}
		if err := put(src, round); err != nil {
			return err
		}
		if v, err := r.data.WaitUntil(ctx, pgsync.GreaterOrEqual, round); err != nil || v != round {
			return errors.Join(err, fmt.Errorf("the signal is %d in round %d", v, round))
		}
		for i, v := range r.win.Local()[:n] {
			if v != round {
				return fmt.Errorf("round %d: element %d is %d behind the signal", round, i, v)
			}
		}
		if err := r.ack.Set(r.prev, round); err != nil {
			return err
		}
		if _, err := r.ack.WaitUntil(ctx, pgsync.Equal, round); err != nil {
			return err
		}
	}
	return nil
}

// TestPutSignalOfAnotherTeam: a signal whose member of that number is another rank is refused, and nothing moves.
func TestPutSignalOfAnotherTeam(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		backwards, err := w.Team().Split(ctx, 0, -w.Rank())
		if err != nil {
			return err
		}
		win, err := window.Allocate[uint64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		sigs, err := pgsync.NewSignals(ctx, backwards, 1)
		if err != nil {
			return err
		}
		for target := range w.Size() {
			if target == 1 && w.Rank() != 0 {
				continue // one puts there
			}
			err := win.PutSignal(target, 0, []uint64{7}, sigs.Signal(0), 1)
			if target == 1 { // in the middle of both
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, pgsync.ErrMember)
			require.ErrorContains(t, err, "it is of another team")
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() != 1 {
			require.Zero(t, win.Local()[0])
			require.Zero(t, sigs.Signal(0).Load())
		}
		return errors.Join(sigs.Free(ctx), win.Free(ctx))
	})
}

// TestPutSignal: whoever sees the signal sees the data.
func TestPutSignal(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n, rounds = 300, 40
		win, err := window.Allocate[uint64](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		sigs, err := pgsync.NewSignals(ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		data := sigs.Signal(0)
		next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		put := func(src []uint64, round uint64) error { return win.PutSignal(next, 0, src, data, round) }
		if err := (relay{win, data, sigs.Signal(1), next, prev}).run(ctx, n, rounds, put); err != nil {
			return err
		}
		src := make([]uint64, n)
		// Refused as a whole: neither data nor signal.
		require.ErrorIs(t, win.PutSignal(next, n-1, src, data, 99), window.ErrRange)
		require.ErrorIs(t, win.PutSignal(w.Size(), 0, src, data, 99), window.ErrTarget)
		src[0] = 77
		require.Error(t, win.PutSignal(next, 0, src[:1], pgsync.Signal{}, 99), "no such signal")
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.EqualValues(t, rounds, win.Local()[0], "refused, but the data was put")
		require.EqualValues(t, rounds, data.Load())
		return errors.Join(sigs.Free(ctx), win.Free(ctx))
	})
}

func TestCallsOfAWorldAllocateNothing(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 64)
		if err != nil {
			return err
		}
		if w.Rank() == 0 && !raceEnabled {
			src, dst := make([]int64, 40), make([]int64, 40)
			place := func(i int) (int, int) { return i % 2, i }
			var failed error
			note := func(err error) {
				if err != nil && failed == nil {
					failed = err
				}
			}
			for name, f := range map[string]func(){
				"put 1": func() { note(win.Put(1, 3, src[:1])) }, "put": func() { note(win.Put(1, 3, src)) },
				"get 1": func() { note(win.Get(1, 3, dst[:1])) }, "get": func() { note(win.Get(1, 3, dst)) },
				"flush": func() { note(win.Put(1, 3, src)); note(win.Flush(1)) }, "order": func() { note(win.Order(1)) },
				"add":   func() { _, err := window.FetchAdd(win, 1, 3, 1); note(err) },
				"load":  func() { _, err := window.Load(win, 1, 3); note(err) },
				"store": func() { note(window.Store(win, 1, 3, 1)) },
				"swap":  func() { _, err := window.Swap(win, 1, 3, 1); note(err) },
				"cas":   func() { _, err := window.CompareSwap(win, 1, 3, 1, 2); note(err) },
				"or":    func() { _, err := window.FetchOr(win, 1, 3, 1); note(err) },
				"acc":   func() { note(window.Accumulate(win, 1, 3, src[:4], pgsync.Max)) },
				"add nb": func() {
					for i := range dst[:10] {
						_, err := window.FetchAddNB(win, 1, i, 1, &dst[i])
						note(err)
					}
					note(win.FlushLocal(1))
				},
				"xor nb": func() {
					h, err := window.FetchXorNB(win, 1, 3, 1, &dst[0])
					note(err)
					note(h.Wait(context.Background()))
				},
				"scatter acc": func() { note(window.ScatterAccumulate(win, place, src, pgsync.Xor)); note(win.Flush(1)) },
				"gather acc":  func() { note(window.GatherAccumulate(win, place, src, dst, pgsync.Sum)) },
				"get nb":      func() { h, err := win.GetNB(1, 3, dst); note(err); note(h.Wait(context.Background())) },
			} {
				for range 32 { // what is measured once is measured
					f()
				}
				require.Zero(t, testing.AllocsPerRun(200, f), name)
				require.NoError(t, failed, name)
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// TestCollectivesEndWithTheirContext: a collective call that waits for transfers of this rank ends with its context, as one that waits for
// other ranks does, and the transfers go on.
func TestCollectivesEndWithTheirContext(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Jitter: 60 * time.Millisecond, Seed: 4}}
	for name, call := range map[string]func(*window.Window[int64], context.Context) error{
		"fence": (*window.Window[int64]).Fence,
		"free":  (*window.Window[int64]).Free,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pending, over := false, make(chan struct{})
			_ = pgastest.Errors(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					<-over
					return nil
				}
				defer close(over)
				for try := 0; try < 20 && !pending; try++ { // an operation may be answered at once, too
					if err := win.Put(1, 0, []int64{1}); err != nil {
						return err
					}
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					require.ErrorIs(t, call(win, short), context.DeadlineExceeded)
					pending = win.FlushContext(short, 1) != nil
					cancel()
				}
				return nil
			})
			require.True(t, pending)
		})
	}
}
