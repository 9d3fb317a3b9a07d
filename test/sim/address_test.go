package sim

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestAddressesHaveNoSay: where the allocator has put a program's buffers, and whether the collector has been there, changes nothing in virtual time.
func TestAddressesHaveNoSay(t *testing.T) {
	const most = 128 << 10
	for _, reg := range []string{"leavepinned", "predictive"} {
		for _, bytes := range []int{20 << 10, most} {
			run := func() pgastest.SimResult {
				return pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, Seed: 1, Reg: reg}, func(ctx context.Context, w *pgas.World) error {
					win, err := window.Allocate[byte](ctx, w.Team(), most)
					bufs := make([][]byte, 150)
					for i := range bufs {
						bufs[i] = make([]byte, bytes)
					}
					for i := 0; i < 3*len(bufs) && err == nil; i++ {
						err = errors.Join(win.Put(1-w.Rank(), 0, bufs[i*i%len(bufs)]), win.Flush(1-w.Rank()))
						if err == nil && i%2 == 0 {
							err = win.Get(1-w.Rank(), 0, make([]byte, bytes))
						}
					}
					return errors.Join(err, win.Free(ctx))
				})
			}
			var others [][]byte
			first := run()
			for i := range 2 {
				for n := range 50 {
					others = append(others, make([]byte, bytes+10000*(n%5)))
				}
				runtime.GC()
				again := run()
				require.Equal(t, first.Trace(), again.Trace(), "%q, %d bytes, run %d", reg, bytes, i)
				require.Equal(t, first.Elapsed, again.Elapsed)
				require.Equal(t, first.NIC, again.NIC)
				require.Equal(t, first.Sched, again.Sched)
			}
			runtime.KeepAlive(others)
		}
	}
}
