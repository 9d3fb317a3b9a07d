package pgsync_test

import (
	"context"
	"fmt"
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
				limit := time.Millisecond
				if raceEnabled {
					limit *= 4 // all of it takes several times as long, beside other tests
				}
				for try := range 5 { // who is not wakened is late in each; other programs may have the cores in one
					took, err := askLate(ctx, w, win, long, 60*try)
					if err != nil {
						return err
					}
					soon := []uint64{0}
					if w.Rank() == 1 {
						slices.Sort(took)
						t.Log(took[0], took[len(took)/4], took[len(took)/2], took[len(took)-1])
						if took[len(took)/4] < limit {
							soon[0] = 1
						}
					}
					if err := pgsync.AllReduce(ctx, w.Team(), soon, soon, pgsync.Sum); err != nil {
						return err
					}
					if soon[0] > 0 {
						return win.Free(ctx)
					}
				}
				require.Fail(t, "who waits is wakened for it, he does not look now and then", "%v", limit)
				return win.Free(ctx)
			})
		})
	}
}

// askLate has rank 1 come late to three long calls, and add to a word of rank 0, which waits for it there and has seen so many before, 20 times in each. It returns how long these took.
func askLate(ctx context.Context, w *pgas.World, win *window.Window[int64], long []uint64, before int) (took []time.Duration, err error) {
	for round := range 3 {
		if w.Rank() == 1 {
			for k := range 20 {
				time.Sleep(2 * time.Millisecond) // the other one has begun to sleep
				began := time.Now()
				old, err := window.FetchAdd(win, 0, 0, 1)
				if err != nil {
					return nil, err
				}
				took = append(took, time.Since(began))
				if old != int64(before+20*round+k) {
					return nil, fmt.Errorf("the word was %d, and there were %d before", old, before+20*round+k)
				}
			}
		}
		if err := pgsync.AllReduce(ctx, w.Team(), long, long, pgsync.Sum); err != nil {
			return nil, err
		}
	}
	return took, nil
}
