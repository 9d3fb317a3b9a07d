package window_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// limit is what the NICs of these tests may register in all, bytes; a third of it goes to message and bounce buffers.
const limit = 4 << 20

func tight() pgastest.Config {
	return pgastest.Config{NIC: true, TimeLimit: 60 * time.Second, Fabric: transporttest.FabricConfig{MaxPinned: limit}}
}

// TestWindowLargerThanTheLimit: memory of which the NIC may register a small part is written and read everywhere, by
// several goroutines of every rank, each in words of its own; what arrives is checked at the target.
func TestWindowLargerThanTheLimit(t *testing.T) {
	for _, policy := range []string{"leavepinned", "predictive"} {
		t.Run(policy, func(t *testing.T) {
			c := tight()
			c.Reg = policy
			larger(t, c)
		})
	}
}

func larger(t *testing.T, c pgastest.Config) {
	const ranks, workers, words, rounds = 3, 2, 1 << 20, 300 // 8 MiB a rank
	pgastest.RunConfig(t, ranks, c, func(ctx context.Context, w *pgas.World) error {
		local := make([]uint64, words)
		win, err := window.Create(ctx, w.Team(), local)
		if err != nil {
			return err
		}
		if err := w.Team().Barrier(ctx); err != nil {
			return err
		}
		const writers = ranks * workers
		block := words / writers
		want := make([]map[int]uint64, ranks*workers) // by target and worker: what was put, by index
		errs := make([]error, workers)
		var wg sync.WaitGroup
		for k := range workers {
			for target := range ranks {
				want[target*workers+k] = map[int]uint64{}
			}
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w.Rank()), uint64(k)))
				base := (w.Rank()*workers + k) * block
				for range rounds {
					target, n := rng.IntN(ranks), 1+rng.IntN(1<<rng.IntN(14))
					at := base + rng.IntN(block-n)
					data := make([]uint64, n)
					for i := range data {
						data[i] = rng.Uint64()
						want[target*workers+k][at+i] = data[i]
					}
					if err := win.Put(target, at, data); err != nil {
						errs[k] = err
						return
					}
					if rng.IntN(4) > 0 {
						continue
					}
					if errs[k] = win.Flush(target); errs[k] != nil {
						return
					}
					back := make([]uint64, n)
					if errs[k] = win.Get(target, at, back); errs[k] != nil {
						return
					}
					for i := range back {
						if back[i] != data[i] {
							errs[k] = fmt.Errorf("rank %d reads %#x at %d of %d, has put %#x", w.Rank(), back[i], at+i, target, data[i])
							return
						}
					}
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		// Everybody reads everything that he has put.
		for target := range ranks {
			all := make([]uint64, words)
			if err := win.Get(target, 0, all); err != nil {
				return err
			}
			for k := range workers {
				for i, v := range want[target*workers+k] {
					if all[i] != v {
						return fmt.Errorf("rank %d: word %d of %d is %#x, want %#x", w.Rank(), i, target, all[i], v)
					}
				}
			}
		}
		origin, served := w.Team().Engine().Firehoses()
		require.Positive(t, origin.Misses)
		require.Positive(t, origin.Hits)
		require.Positive(t, origin.Moves, "more was used than may be held")
		require.Positive(t, served.Deregistered)
		require.Less(t, served.Peak<<15, int64(limit))
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if err := win.Free(ctx); err != nil {
			return err
		}
		_, served = w.Team().Engine().Firehoses()
		require.LessOrEqual(t, served.Pinned, served.Peak)
		return nil
	})
}

// TestRegistrationIsRefused: the budget is not to be had, because other windows have taken what may be registered. The
// bytes go by message, and all is as it should be.
func TestRegistrationIsRefused(t *testing.T) {
	const words = 1 << 18 // 2 MiB
	pgastest.RunConfig(t, 2, tight(), func(ctx context.Context, w *pgas.World) error {
		var others []*window.Window[byte]
		for size := 1 << 20; size >= 4<<10; size /= 2 {
			o, err := window.Create(ctx, w.Team(), make([]byte, size))
			if err != nil {
				return err
			}
			others = append(others, o)
		}
		win, err := window.Create(ctx, w.Team(), make([]uint64, words))
		if err != nil {
			return err
		}
		peer := 1 - w.Rank()
		if err := w.Team().Barrier(ctx); err != nil {
			return err
		}
		data := make([]uint64, words/2)
		for i := range data {
			data[i] = uint64(i)*3 + uint64(w.Rank())
		}
		if err := win.Put(peer, w.Rank()*words/2, data); err != nil {
			return err
		}
		if err := win.Flush(peer); err != nil {
			return err
		}
		back := make([]uint64, words/2)
		if err := win.Get(peer, w.Rank()*words/2, back); err != nil {
			return err
		}
		require.Equal(t, data, back)
		if err := win.Fence(ctx); err != nil { // the peer has asked too
			return err
		}
		origin, served := w.Team().Engine().Firehoses()
		require.Positive(t, origin.Refusals)
		require.Positive(t, served.RegisterErrors)
		for _, o := range others {
			if err := o.Free(ctx); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

// TestRankDiesHoldingBuckets: what the dead rank held comes back to the others, who go on with each other.
func TestRankDiesHoldingBuckets(t *testing.T) {
	const ranks, words = 3, 1 << 20
	c := tight()
	var fabric *transporttest.Fabric
	c.Made = func(f *transporttest.Fabric) { fabric = f }
	const dead = 2
	errGone := errors.New("made up")
	var used, over sync.WaitGroup
	used.Add(ranks)
	over.Add(ranks - 1)
	all := func(win *window.Window[uint64], target int) error { // through the whole share, and beyond
		for at := 0; at < words; at += 1 << 12 {
			if err := win.Put(target, at, []uint64{uint64(at)}); err != nil {
				return err
			}
		}
		return win.Flush(target)
	}
	var results [ranks]error
	errs := pgastest.Errors(t, ranks, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]uint64, words))
		if err == nil {
			err = w.Team().Barrier(ctx)
		}
		if err == nil {
			err = all(win, (w.Rank()+1)%ranks)
		}
		used.Done()
		used.Wait()
		if err != nil {
			return err
		}
		if w.Rank() == dead {
			fabric.Kill(dead)
			return errGone
		}
		defer over.Wait() // nobody else leaves before all are done
		defer over.Done()
		for err == nil {
			err = win.Put(dead, 0, []uint64{1})
			if err == nil {
				err = win.Flush(dead)
			}
		}
		for _, again := range []error{err, win.Flush(dead), win.FlushContext(ctx, dead), win.FlushAll()} { // whose put is lost is told, too
			if !errors.Is(again, pgas.ErrPeerGone) {
				return fmt.Errorf("a flush after the first one that was told: %w", again)
			}
		}
		results[w.Rank()] = all(win, 1-w.Rank())
		origin, _ := w.Team().Engine().Firehoses()
		require.Zero(t, origin.Refusals)
		return nil
	})
	require.ErrorIs(t, errs[dead], errGone)
	for r, err := range errs[:dead] {
		require.NoError(t, results[r], "rank %d", r)
		require.ErrorIs(t, err, pgas.ErrPeerGone, "closing the world") // which needs all
	}
}

// TestRunsInBuckets: strided, indexed and scattered transfers over memory that is registered in buckets go out in chains:
// the moves of many runs are under way together, and what is held is reached one-sided.
func TestRunsInBuckets(t *testing.T) {
	const words, n = 1 << 20, 512 // 8 MiB
	pgastest.RunConfig(t, 3, tight(), func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]uint64, words))
		if err != nil {
			return err
		}
		me, peer := w.Rank(), (w.Rank()+1)%w.Size()
		rng := rand.New(rand.NewPCG(7, uint64(me)))
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		region := words / w.Size() * me // this rank's part of everybody's memory
		src, back := make([]uint64, n), make([]uint64, n)
		for i := range src {
			src[i] = rng.Uint64()
		}
		check := func(what string, put, get func() error) error {
			if err := errors.Join(put(), win.FlushAll()); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			clear(back)
			if err := get(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			require.Equal(t, src, back, what)
			return nil
		}
		step := words / w.Size() / n
		err = check("strided", func() error { return win.PutStrided(peer, region, step, src, 1, n) },
			func() error { return win.GetStrided(peer, region, step, back, 1, n) })
		if err != nil {
			return err
		}
		disps := rng.Perm(words / w.Size() / 8)[:n/8] // pieces of eight words
		for i := range disps {
			disps[i] = region + disps[i]*8
		}
		err = check("indexed", func() error { return win.PutIndexed(peer, disps, src) },
			func() error { return win.GetIndexed(peer, disps, back) })
		if err != nil {
			return err
		}
		at := func(i int) (target, disp int) { return i % w.Size(), region + i*step }
		err = check("scattered", func() error { return win.Scatter(src, at) }, func() error { return win.Gather(back, at) })
		if err != nil {
			return err
		}
		pieces := []window.Piece{
			{Target: peer, Disp: region, Section: window.Packed(16, 16, 4000)},
			{Target: peer, Disp: region + 64, Near: 256, Section: window.Packed(16, 16, 4000)},
		}
		err = check("sections", func() error { return win.PutSections(src, pieces) }, func() error { return win.GetSections(back, pieces) })
		if err != nil {
			return err
		}
		origin, _ := w.Team().Engine().Firehoses()
		require.Positive(t, origin.Misses)
		require.Greater(t, origin.Hits, uint64(2*n), "most runs find their bucket")
		require.Less(t, origin.Misses, origin.Hits)
		stats := w.Stats()["loopback"]
		require.Greater(t, stats["inline"].Ops+stats["bounce"].Ops, uint64(3*n), "one-sided: %v", stats)
		require.Less(t, stats["message"].Ops, uint64(n), "those to itself, and few more: %v", stats)
		return errors.Join(win.Fence(ctx), win.Free(ctx))
	})
}

// TestHeapLargerThanTheLimitIsLeft: a program may end without freeing a symmetric heap of which the others hold buckets.
func TestHeapLargerThanTheLimitIsLeft(t *testing.T) {
	const bytes = 8 << 20
	pgastest.RunConfig(t, 3, tight(), func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), bytes)
		if err != nil {
			return err
		}
		for at := w.Rank(); at < bytes; at += 1 << 17 {
			if err := win.Put((w.Rank()+1)%3, at, []byte{1}); err != nil {
				return err
			}
		}
		return win.Fence(ctx)
	})
}

// TestFreeOfUnequalParts: of some parts the NIC registers all, of others buckets; a rank whose own part is of the one kind holds buckets of
// the other. It gives them up when the window is freed, or their owner would wait for it for ever.
func TestFreeOfUnequalParts(t *testing.T) {
	const large = 3 * limit / 8
	for name, sizes := range map[string][3]int{"whole": {100, large, 100}, "none": {0, large, 0}, "two": {large, 1, large}} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, len(sizes), tight(), func(ctx context.Context, w *pgas.World) error {
				for round := range 3 {
					win, err := window.Create(ctx, w.Team(), make([]uint64, sizes[w.Rank()]))
					if err != nil {
						return err
					}
					for target, n := range sizes {
						if n == 0 {
							continue
						}
						if err := win.Put(target, n-1-w.Rank()*n/4, []uint64{uint64(w.Rank() + round)}); err != nil {
							return err
						}
					}
					if err := win.Fence(ctx); err != nil {
						return err
					}
					if n := sizes[w.Rank()]; n > 1 && win.Local()[n-1] != uint64(round) {
						return fmt.Errorf("rank 0 has put %d, here is %d", round, win.Local()[n-1])
					}
					if err := win.Free(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
