package predict

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
)

// locked is a fake behind a lock, for a helper on a thread of its own; it panics when told to.
type locked struct {
	mu     sync.Mutex
	f      *fake
	breaks bool
}

func (l *locked) Registered(r Region) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Registered(r)
}

func (l *locked) Register(r Region) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Register(r)
}

func (l *locked) Deregister(r Region) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.breaks {
		panic("broken cache")
	}
	return l.f.Deregister(r)
}

func (l *locked) Expect(r Region, at Nanos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Expect(r, at)
}

func (l *locked) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Len()
}

func (l *locked) demand(r Region) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.demand(r)
}

type helped struct {
	cache *locked
	dq    *Queue
	s     *sched.Sched
	p     *Predictor
	h     *Helper
}

func (x *helped) use(r Region) bool {
	u := Use{At: Nanos(x.s.Now()), Region: r, Buf: uint64(r), Pages: 10}
	hit := x.cache.demand(r)
	x.dq.Put(&u)
	return hit
}

func startHelper(t *testing.T, setup HelperSetup) *helped {
	x := &helped{cache: &locked{f: newFake()}, dq: NewQueue(0), s: sched.Process(1)}
	c := worked()
	c.Window, c.MinSlack = NoWindow, 0
	x.p = New(c, x.cache, x.dq)
	setup.Now = func() Nanos { return Nanos(x.s.Now()) }
	x.h = Start(x.s, x.p, setup)
	t.Cleanup(func() { require.NoError(t, x.h.Stop(context.Background())) })
	return x
}

func TestHelperRegistersAhead(t *testing.T) {
	x := startHelper(t, HelperSetup{})
	require.Equal(t, DefaultPoll, x.h.Poll())
	const period = 40 * time.Millisecond
	hits := 0
	require.Eventually(t, func() bool { // as often as a loaded machine needs
		if x.use(1) {
			hits++
		}
		time.Sleep(period)
		return hits >= 3
	}, time.Minute, time.Microsecond)
	require.Eventually(t, func() bool { return !x.cache.Registered(1) }, 20*time.Second, time.Millisecond,
		"no more uses: given back")
	s := x.p.Stats()
	require.Positive(t, s.Registered)
	require.Positive(t, s.GaveBack)
	require.NoError(t, x.h.Err())
	require.True(t, x.h.Running())
}

func TestHelperThatPanicsLeavesTheRest(t *testing.T) {
	x := startHelper(t, HelperSetup{})
	x.cache.mu.Lock()
	x.cache.breaks = true
	x.cache.mu.Unlock()
	x.use(1)
	require.Eventually(t, func() bool { return x.h.Err() != nil && !x.h.Running() }, 20*time.Second, time.Millisecond)
	require.ErrorContains(t, x.h.Err(), "broken cache")
	require.True(t, x.use(1), "the region stays")
}

func TestHelperWithoutASeatTouchesNothing(t *testing.T) {
	var seat atomic.Bool
	x := startHelper(t, HelperSetup{Seat: func(*sched.Thread) (Nanos, bool) { return 0, seat.Load() }})
	x.use(1)
	require.Eventually(t, func() bool { _, naps := x.h.Turns(); return naps > 2 }, 20*time.Second, time.Millisecond)
	require.True(t, x.cache.Registered(1))
	seat.Store(true)
	require.Eventually(t, func() bool { return !x.cache.Registered(1) }, 20*time.Second, time.Millisecond)
}

func TestStopIsBounded(t *testing.T) {
	x := startHelper(t, HelperSetup{})
	require.NoError(t, x.h.Stop(t.Context()))
	require.False(t, x.h.Running())
	steps, _ := x.h.Turns()
	x.use(1)
	require.NoError(t, x.h.Stop(t.Context()), "again")
	after, _ := x.h.Turns()
	require.Equal(t, steps, after)
	require.True(t, x.cache.Registered(1))
}

func TestNapUntil(t *testing.T) {
	require.Zero(t, napUntil(10, 10, time.Second))
	require.Zero(t, napUntil(10, 5, time.Second))
	require.EqualValues(t, 90, napUntil(10, 100, time.Second))
	require.Equal(t, time.Millisecond, napUntil(10, Never, time.Millisecond))
}
