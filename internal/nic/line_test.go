package nic

import (
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLine: more goroutines than there are pieces each wait for what they post. All get what is theirs, and few threads are made for it: one for each that
// waits would be the process's end where there are ten thousand (runtime/debug.SetMaxThreads).
func TestLine(t *testing.T) {
	w, _ := newCrowded(t)
	n := w.n[0]
	const guests, rounds, words = 4 * Pieces, 3, exposed / 8
	for i := range words {
		w.mem[1].Word64(8 * i).Store(uint64(i) << 32)
	}
	require.NoError(t, n.Connect("get", 1))
	threads := pprof.Lookup("threadcreate").Count()
	var all sync.WaitGroup
	for i := range guests {
		all.Go(func() {
			at := i % words
			for range rounds {
				v, err := w.await(1, 8*at, 0)
				if i%2 == 0 {
					v, err = w.read(1, 8*at)
				}
				if err != nil || v != uint64(at)<<32 {
					t.Errorf("guest %d has read %d: %v", i, v, err)
					return
				}
			}
		})
	}
	all.Wait()
	require.Less(t, pprof.Lookup("threadcreate").Count()-threads, 100)
	require.Zero(t, n.crowd.waits.Load())
	require.Empty(t, n.crowd.taken)
	require.Empty(t, n.forPieces.seats)
	require.Empty(t, n.forTransfers.seats)
	require.True(t, n.Idle())
}
