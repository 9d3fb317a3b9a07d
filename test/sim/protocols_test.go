package sim

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	simnic "gopgas/transport/sim"
	"gopgas/window"
)

// TestForeseenBuffersAreRegistered: a buffer is registered at its first use if those that were first used at the same line have
// come back, and is copied if they have not. Costs are a paper's here, and the same each time.
func TestForeseenBuffersAreRegistered(t *testing.T) {
	const n, buffers = 200_000, 8                    // so few that a helper does not register the tail meanwhile
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // else memory of one line might come back at the other
	runtime.GC()                                     // ends one that is under way
	pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		direct := func() uint64 { return w.Stats()["sim"]["zero-copy"].Ops }
		if w.Rank() == 0 {
			for i := range buffers + 1 {
				before, was := direct(), registrations(w)
				if err := win.Get(1, 0, make([]byte, n)); err != nil { // none of this line's ever comes back
					return err
				}
				require.Equal(t, before, direct())
				require.Equal(t, was, registrations(w))
				b := make([]byte, n)
				for k := range 20 { // those of this line do
					if err := win.Get(1, 0, b); err != nil {
						return err
					}
					if k > 0 {
						continue
					}
					if i == 0 {
						require.Equal(t, before, direct(), "nobody knows it yet")
					}
					if i == buffers {
						require.Equal(t, before+1, direct(), "it is expected back")
						require.Equal(t, was+1, registrations(w))
					}
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

func registrations(w *pgas.World) uint64 {
	s, _ := w.Registered()
	return s.Registrations
}

// TestLeasesInVirtualTime moves memory that neither end registers, in sub-blocks that a target must look for: while it waits, and while
// it computes. The sender does not wait for it either; the fence does.
func TestLeasesInVirtualTime(t *testing.T) {
	const n = 1 << 20
	for _, busy := range []time.Duration{0, 3 * time.Millisecond} {
		r := pgastest.RunSim(t, pgastest.SimConfig{Ranks: 3, Bulk: "lease"}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Create(ctx, w.Team(), make([]byte, 3*n))
			if err != nil {
				return err
			}
			b, back := make([]byte, n), make([]byte, n)
			for i := range b {
				b[i] = byte(i*7 + w.Rank())
			}
			next := (w.Rank() + 1) % w.Size()
			if err := win.Put(next, n*w.Rank(), b); err != nil {
				return err
			}
			pgastest.Compute(w, busy)
			if err := win.Fence(ctx); err != nil {
				return err
			}
			if err := win.Get(next, n*w.Rank(), back); err != nil {
				return err
			}
			require.Equal(t, b, back)
			require.Positive(t, w.Stats()["sim"]["lease"].Ops)
			if err := win.Fence(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
		require.Zero(t, r.Sched.LostRings)
	}
}

// TestMissHidesBehindCopies: a put into a bucket that is not held asks for it and copies meanwhile: it takes as long as the longer of
// both, not as long as both, through slots and in a pipe.
func TestMissHidesBehindCopies(t *testing.T) {
	for _, p := range []selector.Protocol{selector.Bounce, selector.Pipe} {
		t.Run(p.String(), func(t *testing.T) { missHides(t, p) })
	}
}

func missHides(t *testing.T, p selector.Protocol) {
	const n, bytes, bucket = 256 << 10, 64 << 20, 1 << 20
	c := pgastest.SimConfig{Ranks: 2}
	c.Machine.MaxPinned = 24 << 20
	var skew int // buckets begin where the page of a range does, not where windows do
	pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), bytes)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			skew = int(uintptr(unsafe.Pointer(&win.Local()[0])) % uintptr(os.Getpagesize()))
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		engine := w.Team().Engine()
		if err := engine.FixBuckets(bucket); err != nil {
			return err
		}
		if w.Rank() == 0 {
			took := func(f func() error) time.Duration {
				begun := engine.Sched.Now()
				if err := f(); err != nil {
					t.Error(err)
				}
				return engine.Sched.Now() - begun
			}
			src, word := make([]byte, n), make([]byte, 8)
			put := func(at int) func() error { return func() error { return win.Put(1, at*bucket-skew, src) } }
			get := func(at int) func() error { return func() error { return win.Get(1, at*bucket-skew, word) } }
			engine.Force(p)
			_ = took(put(1))
			first, second := took(get(3)), took(get(3))
			missing := first - second // what a miss costs by itself
			hit := took(put(3))
			miss := took(put(5))
			t.Logf("put of %d bytes: %v into a bucket that is held, %v into one that is not; a word's miss by itself %v", n, hit, miss, missing)
			require.Positive(t, missing)
			require.Less(t, miss, max(hit, missing)+min(hit, missing)/4)
			require.GreaterOrEqual(t, w.Stats()["sim"][p.String()].Bytes, uint64(3*n))
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// TestBothEndsUnregistered is the superpipeline paper's case through windows: what a put and its flush take where neither end's memory is
// registered, beside those between registered memory, with the constants of the paper's cluster. docs/reproduction.md has the figures.
func TestBothEndsUnregistered(t *testing.T) {
	sizes := []int{80 << 10, 128 << 10, 256 << 10, 1 << 20, 16 << 20}
	took := func(bulk string, rounds int) (all []time.Duration) {
		pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, Model: simnic.Graphene(), Bulk: bulk}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Create(ctx, w.Team(), make([]byte, sizes[len(sizes)-1]))
			if err != nil {
				return err
			}
			s := w.Team().Engine().Sched
			for _, n := range sizes {
				if w.Rank() == 0 {
					src, last := make([]byte, n), time.Duration(0)
					for range rounds {
						begun := s.Now()
						if err := win.Put(1, 0, src); err != nil {
							return err
						}
						if err := win.Flush(1); err != nil {
							return err
						}
						last = s.Now() - begun
					}
					all = append(all, last)
				}
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
		return all
	}
	raw, leased := took("register", 2), took("lease", 2)
	for i, n := range sizes {
		share := float64(raw[i]) / float64(leased[i])
		t.Logf("%8d bytes: registered %v, leased %v, %.1f %%", n, raw[i], leased[i], 100*share)
		require.Greater(t, share, 0.8, "%d bytes", n)
		require.True(t, n < 1<<20 || share > 0.95, "%d bytes", n)
	}
}

// TestHybridIsWorthIt: where a head travels by copies while a helper registers the tail, that takes no longer than the better of both
// alone, by more than 3 %. Costs are the superpipeline paper's.
func TestHybridIsWorthIt(t *testing.T) {
	ways := []selector.Protocol{selector.Hybrid, selector.Pipe, selector.Direct}
	for _, get := range []bool{false, true} {
		for _, n := range []int{512 << 10, 1 << 20, 4 << 20, 16 << 20} {
			var took [3]time.Duration
			pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, Model: simnic.Graphene()}, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[byte](ctx, w.Team(), n)
				if err != nil {
					return err
				}
				if e := w.Team().Engine(); w.Rank() == 0 {
					for i, p := range ways {
						e.Force(p)
						b := make([]byte, n)
						begun := e.Sched.Now()
						if get {
							err = win.Get(1, 0, b)
						} else {
							err = errors.Join(win.Put(1, 0, b), win.Flush(1))
						}
						if err != nil {
							return err
						}
						took[i] = e.Sched.Now() - begun
						e.Force(selector.None)
					}
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				return win.Free(ctx)
			})
			t.Log(get, n, took)
			require.LessOrEqual(t, float64(took[0]), 1.03*float64(min(took[1], took[2])), "get %v, %d bytes: hybrid %v, superpipe %v, registered %v",
				get, n, took[0], took[1], took[2])
		}
	}
}
