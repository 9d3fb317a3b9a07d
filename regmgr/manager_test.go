package regmgr

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

func TestHitNeedsContainment(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	buf := heap(8)
	use := func(off, bytes int, a transport.Access) *Region {
		h := acquire(t, m, buf.Slice(off, bytes), a)
		require.True(t, n.covers(h.LKey(), buf.Slice(off, bytes), a))
		r := h.Region()
		m.Release(h)
		require.Nil(t, h.Region())
		return r
	}
	first := use(2*page, 2*page, 0)
	require.Same(t, first, use(2*page+8, page, 0), "contained")
	require.Same(t, first, use(2*page, 2*page, transport.LocalWrite), "Go memory can be written, so both ways are one")
	second := use(3*page, 2*page, 0)
	require.NotSame(t, first, second, "partial overlap registers anew")
	require.Equal(t, uint64(2), m.Stats().Registrations, "and never a union")
	require.NotSame(t, first, use(2*page-1, 8, 0))
	s := m.Stats()
	require.Equal(t, Stats{
		Policy: "leavepinned", Threshold: LeastRegistered, Usage: Usage{Bytes: 6 * page, PeakBytes: 6 * page, AverageBytes: s.AverageBytes, Regions: 3, PeakRegions: 3},
		Idle: 6 * page, Heap: 6 * page, Hits: 2, Registrations: 3, MissCold: 1, MissPartial: 2,
	}, s)
	_, bytes := n.count()
	require.Equal(t, int64(6*page), bytes, "whole pages")
}

// TestHot: what was found last is hot, as far as it is registered with the rights, until it is given back; what was never found is not.
func TestHot(t *testing.T) {
	m := managerOn(t, newNIC(), Config{})
	buf := heap(4)
	at := buf.Slice(page, 2*page)
	require.False(t, m.Hot(at, 0))
	for range 2 { // the second is found
		m.Release(acquire(t, m, at, 0))
	}
	require.True(t, m.Hot(at, transport.LocalWrite))
	require.True(t, m.Hot(at.Slice(0, page), 0))
	require.False(t, m.Hot(buf.Slice(page, 3*page), 0), "more than is registered")
	require.False(t, m.Hot(at, transport.RemoteWrite))
	require.Zero(t, testing.AllocsPerRun(10, func() { m.Hot(at, 0) }))
	require.NotZero(t, m.Trim(1))
	require.False(t, m.Hot(at, 0), "given back")
}

func TestRegionKeepsToItsOwner(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	buf := heap(4)
	within := buf.Slice(100, 3*page)
	h := new(Hold)
	require.NoError(t, m.Acquire(h, Request{Mem: buf.Slice(page+8, 64), Within: within}))
	require.Equal(t, extentOf(buf.Slice(page, page)), n.live[h.LKey()], "the whole page, since it is the owner's")
	h2 := new(Hold)
	require.NoError(t, m.Acquire(h2, Request{Mem: buf.Slice(200, 64), Within: within}))
	require.Equal(t, extentOf(buf.Slice(100, page-100)), n.live[h2.LKey()], "but not what lies before it")
	h3 := acquire(t, m, buf.Slice(3*page, 64), 0)
	require.Equal(t, extentOf(buf.Slice(3*page, 64)), n.live[h3.LKey()], "without a word about the owner: what was asked for")
	for _, h := range []*Hold{h, h2, h3} {
		m.Release(h)
	}
}

func TestOneRegistersOthersWait(t *testing.T) {
	n := newNIC()
	var begun atomic.Int32
	gate := make(chan struct{})
	n.during = func() { begun.Add(1); <-gate }
	m := managerOn(t, n, Config{})
	buf := heap(4)
	var wg sync.WaitGroup
	holds := make([]Hold, 8)
	for i := range holds {
		wg.Go(func() {
			require.NoError(t, m.Acquire(&holds[i], Request{Mem: buf.Slice(i*8, 4*page-100)}))
		})
	}
	require.Eventually(t, func() bool { return begun.Load() > 0 }, 10*time.Second, time.Millisecond)
	close(gate)
	wg.Wait()
	for i := range holds {
		require.True(t, n.covers(holds[i].LKey(), buf.Slice(i*8, 4*page-100), 0))
		m.Release(&holds[i])
	}
	s := m.Stats()
	require.Equal(t, uint64(len(holds)), s.Hits+s.Registrations)

	same := heap(1)
	n.during = nil
	gate = make(chan struct{})
	n.during = func() { <-gate }
	for i := range holds {
		wg.Go(func() { require.NoError(t, m.Acquire(&holds[i], Request{Mem: same})) })
	}
	require.Eventually(t, func() bool { return len(m.cfg.Sched.Waits()) == len(holds)-1 }, 10*time.Second, time.Millisecond,
		"all but one wait")
	close(gate)
	wg.Wait()
	for i := range holds {
		m.Release(&holds[i])
	}
	require.Equal(t, s.Registrations+1, m.Stats().Registrations, "the same memory is registered once")
	require.Equal(t, uint64(len(holds)-1), m.Stats().Waits-s.Waits)
}

func TestLeavingRegionIsWaitedForThenRegistered(t *testing.T) {
	n := newNIC()
	gate := make(chan struct{})
	ending := make(chan struct{}, 1)
	n.ending = func() { ending <- struct{}{}; <-gate }
	m := managerOn(t, n, Config{Policy: OnDemand})
	buf := heap(2)
	m.cfg.Sched.Go(func() { m.Release(acquire(t, m, buf, 0)) })
	<-ending
	got := make(chan *Hold)
	go func() { got <- acquire(t, m, buf, 0) }()
	require.Eventually(t, func() bool { return len(m.cfg.Sched.Waits()) == 1 }, 10*time.Second, time.Millisecond)
	n.ending = nil
	close(gate)
	h := <-got
	require.True(t, n.covers(h.LKey(), buf, 0))
	require.Equal(t, uint64(2), m.Stats().Registrations)
	m.Release(h)
}

func TestReferenceForbidsDeregistration(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Bytes: 4 * page})
	a, b := heap(2), heap(3)
	h := acquire(t, m, a, 0)
	other := new(Hold)
	require.ErrorIs(t, m.Acquire(other, Request{Mem: b}), ErrCopy)
	require.Nil(t, other.Region())
	require.False(t, m.Reserve(3*page, 1))
	require.Zero(t, m.Trim(page))
	require.True(t, n.covers(h.LKey(), a, 0))
	require.ErrorContains(t, m.Close(), "still referenced")
	m.closed.Store(false)
	m.Release(h)
	require.NoError(t, m.Acquire(other, Request{Mem: b}))
	require.Equal(t, uint64(1), m.Stats().Evicted)
	m.Release(other)
}

// TestFirehoseAndCacheShareTheBudget: what is reserved is not there for the cache, and the cache gives up idle regions for
// a reservation.
func TestFirehoseAndCacheShareTheBudget(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Bytes: 8 * page, Regions: 4})
	m.Release(acquire(t, m, heap(4), 0))
	m.Release(acquire(t, m, heap(4), 0))
	require.True(t, m.Reserve(3*page, 2))
	_, bytes := n.count()
	require.Equal(t, int64(4*page), bytes, "one idle region went")
	require.Equal(t, int64(7*page), m.Budget().Usage().Bytes)
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: heap(6)}), ErrCopy)
	require.False(t, m.Reserve(0, 5))
	require.True(t, m.Reserve(0, 2), "registrations count too")
	regions, _ := n.count()
	require.Zero(t, regions)
	m.Unreserve(3*page, 4)
}

func TestDeregistrationThatFailsKeepsThePin(t *testing.T) {
	n := newNIC()
	n.stubborn = true
	m := managerOn(t, n, Config{Policy: OnDemand})
	h := acquire(t, m, heap(2), 0)
	r := h.Region()
	m.Release(h)
	require.Equal(t, dead, r.state())
	require.NotNil(t, r.pin)
	require.Equal(t, int64(2*page), m.Budget().Usage().Bytes, "charged for good")
	require.Equal(t, uint64(1), m.Stats().Stuck)
	require.ErrorContains(t, m.Refusal(), "stays")
	require.ErrorContains(t, m.Close(), "would not deregister 1")
	m.Forget() // else the runtime ends the program when it finds the pin
	runtime.GC()
}

// TestHighMemoryThatStays: what the index does not know is not looked for there when the NIC would not deregister it.
func TestHighMemoryThatStays(t *testing.T) {
	n := newNIC()
	n.stubborn = true
	m := managerOn(t, n, Config{})
	h := acquire(t, m, mem.At(1<<addrBits, 2*page), 0)
	require.NotPanics(t, func() { m.Release(h) })
	require.Equal(t, uint64(1), m.Stats().Stuck)
	require.ErrorContains(t, m.Close(), "would not deregister 1")
	m.Forget()
}

// TestMostReferences: who wants one reference more than a region can have waits as others do, so that in virtual time he who lets go of one has his turn.
func TestMostReferences(t *testing.T) {
	sim := sched.NewSim(1)
	s := sim.Rank()
	m, err := New(Config{Registrar: newNIC(), Sched: s})
	require.NoError(t, err)
	r := heap(2)
	holds := make([]Hold, 1<<refBits)
	s.Go(func() {
		for i := range holds[1:] {
			require.NoError(t, m.Acquire(&holds[1+i], Request{Mem: r}))
		}
		s.Go(func() { m.Release(&holds[1]) })
		require.NoError(t, m.Acquire(&holds[0], Request{Mem: r}))
		holds[1] = Hold{}
	})
	require.NoError(t, sim.Run())
	require.Equal(t, uint64(1), m.Stats().Waits)
	for i := range holds {
		if holds[i].Region() != nil {
			m.Release(&holds[i])
		}
	}
	require.NoError(t, m.Close())
}

func TestManagerRefusesNonsense(t *testing.T) {
	n := newNIC()
	s := managerOn(t, n, Config{}).cfg.Sched
	for name, c := range map[string]Config{
		"no NIC": {Sched: s}, "no scheduler": {Registrar: n}, "policy": {Registrar: n, Sched: s, Policy: policies},
		"bytes": {Registrar: n, Sched: s, Bytes: -1}, "threshold": {Registrar: n, Sched: s, Threshold: -1},
	} {
		_, err := New(c)
		require.Error(t, err, name)
	}
	_, err := ParsePolicy("magic")
	require.ErrorContains(t, err, Policies())
}

// TestManyGoroutines: random uses of random parts of a few buffers under a tight budget; each sees its memory registered
// from Acquire to Release, whatever the others do, the collector included.
func TestManyGoroutines(t *testing.T) {
	for _, p := range []Policy{LeavePinned, OnDemand, Predictive} {
		t.Run(p.String(), func(t *testing.T) {
			n := newNIC()
			n.limit = 14 * page
			m := managerOn(t, n, Config{Policy: p, Bytes: 16 * page, Regions: 9})
			var bufs [6]mem.Range
			for i := range bufs {
				bufs[i] = heap(6)
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				for ctx.Err() == nil {
					m.Collected()
					m.Trim(page)
					if m.Reserve(2*page, 1) {
						m.Unreserve(2*page, 1)
					}
					time.Sleep(100 * time.Microsecond)
				}
			})
			var workers sync.WaitGroup
			for g := range 4 {
				workers.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(g), 9))
					var h Hold
					for range 400 {
						b := bufs[rng.IntN(len(bufs))]
						off := rng.IntN(5) * page
						q := Request{Mem: b.Slice(off, 1+rng.IntN(b.Bytes-off)), Access: transport.Access(rng.IntN(2))}
						if err := m.Acquire(&h, q); err != nil {
							if !errorsIsCopy(err) {
								t.Error(err)
							}
							continue
						}
						if !n.covers(h.LKey(), q.Mem, q.Access) {
							t.Error("held, but not registered")
						}
						m.Release(&h)
					}
				})
			}
			workers.Wait()
			stop()
			wg.Wait()
			regions, bytes := n.count()
			u := m.Budget().Usage()
			require.Equal(t, regions, u.Regions)
			require.Equal(t, bytes, u.Bytes)
			require.LessOrEqual(t, u.PeakBytes, int64(16*page))
		})
	}
}
