package pgas_test

import (
	"context"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// gathers has every rank but the first accumulate into the first one's memory, from buffers that are past the copy, and says whether what
// came of that is right and went the way over that NIC.
func gathers(nic string) func(ctx context.Context, w *pgas.World) error {
	return func(ctx context.Context, w *pgas.World) error {
		const n = 700 // elements: more than a message carries
		win, err := window.Allocate[float64](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		src, old := make([]float64, n*w.Size()/w.Size()), make([]float64, n) // the former on the heap: what lies on a stack is copied
		if w.Rank() > 0 {
			for round := range 3 {
				for i := range src {
					src[i] = float64(i + round)
				}
				if err := window.Accumulate(win, 0, 0, src, pgsync.Sum); err != nil {
					return err
				}
				if err := window.GetAccumulate(win, 0, 0, src, old, pgsync.Sum); err != nil {
					return err
				}
			}
			if s := w.Stats()[nic]; s["gather"].Ops != 6 || s["gather"].Bytes != 6*8*n {
				return fmt.Errorf("not all were gathered: %v", s)
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for i, v := range win.Local() {
				if want := float64((w.Size() - 1) * 2 * (3*i + 3)); v != want {
					return fmt.Errorf("element %d is %v, want %v", i, v, want)
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	}
}

// TestGather: messages are gathered from the program's memory by every NIC that can, the same as if they had been copied.
func TestGather(t *testing.T) {
	for _, name := range []string{"loopback", "soft", "tcp"} {
		t.Run(name, func(t *testing.T) {
			c := pgastest.Config{NIC: true, Eager: "bypass"}
			if name != "loopback" {
				c.Over = name
			}
			pgastest.RunConfig(t, 3, c, gathers(name))
		})
	}
	t.Run("sim", func(t *testing.T) {
		pgastest.RunSim(t, pgastest.SimConfig{Ranks: 3, Eager: "bypass"}, gathers("sim"))
	})
}
