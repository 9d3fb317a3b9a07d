package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestForeseenBuffersAreRegistered: a buffer is registered at its first use if those that were first used at the same line have
// come back, and is copied if they have not. Costs are a paper's here, and the same each time.
func TestForeseenBuffersAreRegistered(t *testing.T) {
	const n, buffers = 200_000, 8 // so few that a helper does not register the tail meanwhile
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
