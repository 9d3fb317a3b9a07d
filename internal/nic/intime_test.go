package nic

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// inTime sets the second word of rank's memory, in time.
func (w *world) inTime(t *testing.T, rank int, v uint64) {
	t.Helper()
	n := w.n[0]
	var op *Laid
	for op == nil { // no piece is free
		op = n.TryLay(new(Tally), rank, transport.OpWrite, transport.FlagInline|n.Lazy(rank), 8, w.mem[rank].Addr()+8, w.rkey[rank])
	}
	op[0].SGE[0].Mem.Word64(0).Store(v)
	require.NoError(t, n.SendInTime("in time", op))
}

// TestInTime: what is in no hurry is left alone by who looks, for some looks, and goes with the next post, with another one that is in no hurry, and with any wait
// for the NIC.
func TestInTime(t *testing.T) {
	w, _ := newLate(t, 3)
	n := w.n[0]
	w.inTime(t, 1, 1)
	for range patience - 1 {
		n.Progress()
		require.Equal(t, 1, n.HeldBack())
	}
	n.Progress()
	require.Zero(t, n.HeldBack(), "looks enough")
	require.False(t, n.later.inTime.some.Load())

	w.inTime(t, 1, 2)
	_, err := w.flag(2, 2)
	require.NoError(t, err)
	require.Zero(t, n.HeldBack(), "another one is posted")

	w.inTime(t, 1, 3)
	require.Equal(t, 1, n.HeldBack())
	w.inTime(t, 2, 3)
	require.Zero(t, n.HeldBack(), "another one is in no hurry")

	w.inTime(t, 1, 4)
	require.NoError(t, n.Flush(t.Context(), 1))
	require.EqualValues(t, 4, w.mem[1].Word64(8).Load())

	w.inTime(t, 1, 5)
	_, err = w.await(2, 0, 0) // who waits for another rank
	require.NoError(t, err)
	require.Zero(t, n.HeldBack())

	for _, somebody := range []func() (over func()){
		func() func() { n.pollers.Add(1); return func() { n.pollers.Add(-1) } },
		func() func() { n.asleep.Store(true); return func() { n.asleep.Store(false) } },
	} {
		over := somebody()
		w.inTime(t, 1, 6)
		require.Zero(t, n.HeldBack(), "somebody waits, who may sleep, or who attends does")
		over()
	}
	w.until(t, func() bool { return w.mem[1].Word64(8).Load() == 6 })
	require.Zero(t, testing.AllocsPerRun(10, func() {
		n.later.inTime.ripe()
		n.later.inTime.hurry()
	}))
}

// lateSleeper is a late NIC that lets who attends doze.
type lateSleeper struct{ *late }

func (s lateSleeper) WaitSolicited(ctx context.Context, _ time.Duration) (bool, error) {
	return s.Domain.(solicited).WaitSolicited(ctx, time.Hour) // what does not wake him leaves the test waiting
}

// TestInTimeAlone: it goes though this rank does nothing more, whatever who attends does when it is held back.
func TestInTimeAlone(t *testing.T) {
	for name, wrap := range map[string]func(d *late) transport.Domain{
		"attends": func(d *late) transport.Domain { return d },
		"dozes":   func(d *late) transport.Domain { return lateSleeper{d} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, transporttest.FabricConfig{}, func(inner transport.Domain) transport.Domain {
				return wrap(&late{Domain: inner, lazy: map[uint64]uint32{}})
			})
			n := w.n[0]
			require.NoError(t, n.Connect("connect", 1))
			t.Cleanup(n.attended())
			w.serve(t)
			held, slowest := 0, time.Duration(0)
			for k := uint64(1); k <= 500; k++ {
				for range k % 4 { // the NIC is in use
					_, err := w.await(1, 0, 0)
					require.NoError(t, err)
				}
				began := time.Now()
				w.inTime(t, 1, k)
				held += n.HeldBack()
				for w.mem[1].Word64(8).Load() != k {
					require.Less(t, time.Since(began), patient, "number %d", k)
					time.Sleep(10 * time.Microsecond)
				}
				slowest = max(slowest, time.Since(began))
				time.Sleep(time.Duration(k%5) * time.Duration(k%50) * 20 * time.Microsecond)
			}
			require.NotZero(t, held)
			t.Logf("held back %d of 500, at most for %v", held, slowest)
		})
	}
}

// TestInTimeAmongWaits: no word that is set in time is left behind by goroutines that begin to wait, wait and end meanwhile.
func TestInTimeAmongWaits(t *testing.T) {
	w, _ := newLate(t, 2)
	n, stop := w.n[0], make(chan struct{})
	t.Cleanup(n.attended())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.await(1, 0, 0); err != nil {
					t.Error(err)
					return
				}
				if k%16 == 0 {
					time.Sleep(50 * time.Microsecond)
				}
			}
		})
	}
	for k := uint64(1); k <= 2000; k++ {
		w.inTime(t, 1, k)
		for began := time.Now(); w.mem[1].Word64(8).Load() != k; runtime.Gosched() {
			require.Less(t, time.Since(began), patient, "number %d", k)
		}
	}
	close(stop)
	wg.Wait()
}
