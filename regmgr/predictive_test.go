package regmgr

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/predict"
	"gopgas/transport"
)

// TestPredictiveRegistersAhead: a buffer that is used again and again is registered before its use, and not in between.
func TestPredictiveRegistersAhead(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{}})
	buf := heap(16)
	loop := func() { // as often as a loaded machine needs
		h := acquire(t, m, buf, 0)
		require.True(t, n.covers(h.LKey(), buf, 0), "R1")
		m.Release(h)
	}
	require.Eventually(t, func() bool {
		loop()
		require.Eventually(t, func() bool { return m.registeredBytes(n) == 0 }, 10*time.Second, 100*time.Microsecond,
			"given back between two uses")
		time.Sleep(30 * time.Millisecond)
		s := m.Stats()
		return s.Ahead >= 3 && s.Hits >= 3 && s.Prediction.Made >= 3 // which the helper counts, behind the use
	}, time.Minute, time.Microsecond)
	require.Zero(t, m.Stats().Prediction.LostDQ)
	require.NoError(t, m.ahead.helper.Err())
	runtime.KeepAlive(buf)
}

func (m *Manager) registeredBytes(n *nic) int64 {
	_, bytes := n.count()
	return bytes
}

// TestPaidOnDemand: a use remembers how long its call was kept by a registration, once for a transfer of many pieces.
func TestPaidOnDemand(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{Seat: func() (predict.Nanos, bool) { return 0, false }}})
	n.during = func() { time.Sleep(2 * time.Millisecond) }
	buf := heap(16)
	var all, piece Hold
	require.NoError(t, m.Acquire(&all, Request{Mem: buf}))
	require.GreaterOrEqual(t, all.use.Paid, uint32(1.9e6), "the clock is calibrated")
	require.NoError(t, m.Acquire(&piece, Request{Mem: buf.Slice(0, page), Of: &all}))
	require.Zero(t, piece.use.Paid)
	m.Release(&piece)
	m.Release(&all)
	require.NoError(t, m.Acquire(&all, Request{Mem: buf}))
	require.Zero(t, all.use.Paid, "a hit")
	m.Release(&all)
}

// TestPredictiveWithoutReuse: a buffer that is used once is registered once, on demand, and given back.
func TestPredictiveWithoutReuse(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{}})
	for range 20 {
		buf := heap(16)
		m.Release(acquire(t, m, buf, 0))
		require.Eventually(t, func() bool { return m.registeredBytes(n) == 0 }, 10*time.Second, 100*time.Microsecond)
	}
	s := m.Stats()
	require.EqualValues(t, 20, s.Registrations)
	require.Zero(t, s.Ahead)
}

// TestPredictiveUnderALimit: three buffers of which two fit; each is used in turn. Nothing is ever copied.
func TestPredictiveUnderALimit(t *testing.T) {
	n := newNIC()
	n.limit = 2 * 16 * page
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{}, Bytes: n.limit})
	bufs := []mem.Range{heap(16), heap(16), heap(16)}
	for i := range 30 {
		m.Release(acquire(t, m, bufs[i%3], 0))
		time.Sleep(time.Millisecond)
	}
	s := m.Stats()
	require.Zero(t, s.CopiedBudget+s.CopiedRefused)
	require.LessOrEqual(t, s.PeakBytes, n.limit)
	runtime.KeepAlive(bufs)
}

// TestPredictiveFallsBackToDemand: the helper ends with a panic; transfers go on.
func TestPredictiveFallsBackToDemand(t *testing.T) {
	n := newNIC()
	var broken atomic.Bool
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{Seat: func() (predict.Nanos, bool) {
		if broken.Load() {
			panic("broken seat")
		}
		return 0, false
	}}})
	buf := heap(16)
	m.Release(acquire(t, m, buf, 0))
	require.True(t, m.registered(acquireSpot(t, m, buf)), "without a seat memory stays registered")
	broken.Store(true)
	require.Eventually(t, func() bool { return !m.ahead.helper.Running() }, 20*time.Second, time.Millisecond)
	require.ErrorContains(t, m.Refusal(), "broken seat")
	require.Zero(t, m.registeredBytes(n), "nobody else would give back what was idle")
	m.Release(acquire(t, m, buf, 0))
	require.Zero(t, m.registeredBytes(n), "on demand")
}

// TestPredictiveGivesBackWhatOverlaps: regions that lie in each other, used once each, all go.
func TestPredictiveGivesBackWhatOverlaps(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{}})
	buf := heap(64)
	var holds []*Hold
	for _, part := range []mem.Range{buf.Slice(8*page, 4*page), buf.Slice(4*page, 20*page), buf.Slice(6*page, 8*page), buf} {
		holds = append(holds, acquire(t, m, part, 0))
	}
	require.Len(t, n.live, 3, "the third part lies in the second")
	for _, i := range rand.Perm(len(holds)) {
		m.Release(holds[i])
	}
	require.Eventually(t, func() bool { return m.registeredBytes(n) == 0 }, 20*time.Second, time.Millisecond)
	runtime.KeepAlive(buf)
}

func acquireSpot(t *testing.T, m *Manager, r mem.Range) *spot {
	h := acquire(t, m, r, 0)
	defer m.Release(h)
	return h.Region().spot
}

// TestPredictiveInDisorder: goroutines use a few buffers at random, forwards and back, with collections in between, while
// the helper registers and gives back. Each use finds its memory registered with the rights it needs, or copies.
func TestPredictiveInDisorder(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{Poll: 10 * time.Microsecond, Queue: 8}, Bytes: 40 * page})
	bufs := make([]mem.Range, 8)
	for i := range bufs {
		bufs[i] = heap(4 + i)
	}
	var wg sync.WaitGroup
	var wrong, copies atomic.Int64
	for g := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			var h Hold
			for i := range 500 {
				b, a := bufs[(i+rng.IntN(2))%len(bufs)], transport.Access(0)
				if rng.IntN(2) == 0 {
					a = transport.LocalWrite
				}
				if off := rng.IntN(3) * page; off > 0 {
					b = b.Slice(off, b.Bytes-off)
				}
				if err := m.Acquire(&h, Request{Mem: b, Access: a}); err != nil {
					if errorsIsCopy(err) {
						copies.Add(1)
					} else {
						wrong.Add(1)
					}
					continue
				}
				if !n.covers(h.LKey(), b, a) {
					wrong.Add(1)
				}
				if rng.IntN(8) == 0 {
					time.Sleep(time.Duration(rng.IntN(200)) * time.Microsecond)
				}
				m.Release(&h)
				if i%100 == 0 {
					m.Collected()
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, wrong.Load(), "%d copies", copies.Load())
	require.False(t, m.ahead.inFlight())
	require.Eventually(t, func() bool { return m.mindUses() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, m.ahead.helper.Err())
	runtime.KeepAlive(bufs)
}

func (m *Manager) mindUses() uint64 { return m.ahead.mind.Stats().Uses }

func TestPredictedUseAllocatesNothing(t *testing.T) {
	m := managerOn(t, newNIC(), Config{Policy: Predictive, Ahead: &Ahead{Seat: func() (predict.Nanos, bool) { return 0, false }}})
	q := Request{Mem: heap(4)}
	var h Hold
	require.NoError(t, m.Acquire(&h, q))
	m.Release(&h)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = m.Acquire(&h, q)
		m.Release(&h)
	}))
}

// BenchmarkPredictedUse is Acquire and Release of a registered region with call site, stamp and context, and with the insertion into the
// queue of uses (room), or with the attempt (full). The helper has no seat, so that the region stays.
func BenchmarkPredictedUse(b *testing.B) {
	seatless := func(b *testing.B) (*Manager, Request) {
		return managerOn(b, newNIC(), Config{Policy: Predictive, Ahead: &Ahead{
			Seat: func() (predict.Nanos, bool) { return 0, false },
		}}), Request{Mem: heap(4)}
	}
	b.Run("full", func(b *testing.B) {
		m, q := seatless(b)
		var h Hold
		b.ReportAllocs()
		for b.Loop() {
			_ = m.Acquire(&h, q)
			m.Release(&h)
		}
	})
	b.Run("room", func(b *testing.B) {
		m, q := seatless(b)
		var h Hold
		spent, bursts := time.Duration(0), 0
		for b.Loop() {
			m.queue = predict.NewQueue(0) // nobody reads the other one
			began := time.Now()
			for range predict.DefaultQueue {
				_ = m.Acquire(&h, q)
				m.Release(&h)
			}
			spent += time.Since(began)
			bursts++
			if m.queue.Lost() != 0 {
				b.Fatal("the queue had no room")
			}
		}
		b.ReportMetric(float64(spent)/float64(bursts*predict.DefaultQueue), "ns/use")
	})
}
