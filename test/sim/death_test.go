package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
)

// waitsFor are programs in which the other ranks wait, at last, for rank 1 alone, which computes for a second. Memory of a node that is mapped takes
// no operation of a NIC that could fail.
func waitsFor() map[string]func(context.Context, *pgas.World) error {
	asleep := func(w *pgas.World) bool {
		if w.Rank() == 1 {
			pgastest.Compute(w, time.Second)
		}
		return w.Rank() == 1
	}
	return map[string]func(context.Context, *pgas.World) error{
		"signal": func(ctx context.Context, w *pgas.World) error {
			s, err := pgsync.NewSignals(ctx, w.Team(), 1)
			if err != nil || asleep(w) {
				return err
			}
			_, err = s.Signal(0).WaitUntil(ctx, pgsync.Equal, 7)
			return err
		},
		"barrier": func(ctx context.Context, w *pgas.World) error {
			asleep(w)
			return w.Barrier(ctx)
		},
		"lock": func(ctx context.Context, w *pgas.World) error {
			l, err := pgsync.NewLock(ctx, w.Team())
			if err == nil && w.Rank() == 1 {
				err = l.Lock(ctx)
			}
			if err = errors.Join(err, w.Barrier(ctx)); err != nil || asleep(w) {
				return err
			}
			return l.Lock(ctx)
		},
	}
}

// TestNodeMatesLearnOfADeath: as processes do, by the kernel of their node, whether or not a NIC has anything to do with it.
func TestNodeMatesLearnOfADeath(t *testing.T) {
	for name, f := range waitsFor() {
		for _, c := range []pgastest.SimConfig{
			{Ranks: 2, RanksPerNode: 2, Mapped: true},
			{Ranks: 4, RanksPerNode: 4, Mapped: true},
			{Ranks: 4, RanksPerNode: 2, Mapped: true},
			{Ranks: 4, RanksPerNode: 2},
			{Ranks: 4},
		} {
			t.Run(fmt.Sprintf("%s of %d by %d mapped %v", name, c.Ranks, c.RanksPerNode, c.Mapped), func(t *testing.T) {
				c.Seed = 1
				c.Faults.Kill = []sim.Fault{{Rank: 1, At: 500 * time.Millisecond}}
				r := pgastest.SimErrors(t, c, f)
				require.Nil(t, r.Stuck)
				for rank, err := range r.Errors {
					if rank == 1 {
						require.ErrorIs(t, err, pgastest.ErrKilled)
					} else {
						require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", rank)
					}
				}
				require.Less(t, r.Elapsed, 1100*time.Millisecond, "later than the model's Detect")
			})
		}
	}
}
