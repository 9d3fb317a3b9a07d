package pgsync_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestLateMemberIsServed: who waits in a long call for a member that is late serves what that one asks meanwhile, and notices soon when it comes.
func TestLateMemberIsServed(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		if !p.NIC {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 30 * time.Second
			pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 8)
				if err != nil {
					return err
				}
				long := make([]uint64, pgsync.RoomBytes/8)
				if err := pgsync.AllReduce(ctx, w.Team(), long, long, pgsync.Sum); err != nil {
					return err
				}
				var took []time.Duration
				for round := range 3 {
					if w.Rank() == 1 {
						for k := range 20 {
							time.Sleep(2 * time.Millisecond) // the other one has begun to sleep
							began := time.Now()
							old, err := window.FetchAdd(win, 0, 0, 1)
							if err != nil {
								return err
							}
							require.EqualValues(t, 20*round+k, old)
							took = append(took, time.Since(began))
						}
					}
					if err := pgsync.AllReduce(ctx, w.Team(), long, long, pgsync.Sum); err != nil {
						return err
					}
				}
				if w.Rank() == 1 {
					slices.Sort(took)
					t.Log(took[0], took[len(took)/4], took[len(took)/2], took[len(took)-1])
					limit := time.Millisecond
					if raceEnabled {
						limit *= 4 // all of it takes several times as long, beside other tests
					}
					require.Less(t, took[len(took)/4], limit, "who waits is wakened for it, he does not look now and then")
				}
				return win.Free(ctx)
			})
		})
	}
}
