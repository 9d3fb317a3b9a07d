package sched

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wait runs a whole wait for cond.
func wait(s *Sched, ctx context.Context, w Watch, cond func() bool) error {
	sp := s.Begin(ctx, What{Op: "test", Peer: -1}, w)
	defer sp.End()
	for !cond() {
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

func bodies() map[string]*Sched {
	return map[string]*Sched{"process": Process(2), "process busy": Process(64), "goroutine": Goroutine(4)}
}

func TestWaitEndsWhenConditionHolds(t *testing.T) {
	for name, s := range bodies() {
		t.Run(name, func(t *testing.T) {
			for _, after := range []time.Duration{0, 10 * time.Microsecond, 20 * time.Millisecond} {
				var done atomic.Bool
				s.Go(func() {
					time.Sleep(after)
					done.Store(true)
					s.Ring()
				})
				require.NoError(t, wait(s, t.Context(), nil, done.Load))
			}
			require.Empty(t, s.Waits())
		})
	}
}

func TestLostRingIsNoHang(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := Process(2)
	var done atomic.Bool
	s.Go(func() { time.Sleep(10 * time.Millisecond); done.Store(true) }) // nobody rings
	require.NoError(t, wait(s, ctx, nil, done.Load), "a lost ring holds a wait up for good")
}

func TestContextEndsWait(t *testing.T) {
	for name, s := range bodies() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, wait(s, ctx, nil, func() bool { return false }), context.DeadlineExceeded)
			require.Zero(t, s.bell.Load().sleepers.Load(), "a sleeper was left announced")
			require.Empty(t, s.Waits())
		})
	}
}

type watchFunc func() error

func (f watchFunc) Interrupted() error { return f() }

func TestWatchEndsWait(t *testing.T) {
	gone := errors.New("gone")
	var dead atomic.Bool
	s := Goroutine(2)
	s.Go(func() { time.Sleep(3 * time.Millisecond); dead.Store(true) })
	err := wait(s, context.Background(), watchFunc(func() error {
		if dead.Load() {
			return gone
		}
		return nil
	}), func() bool { return false })
	require.ErrorIs(t, err, gone)
}

func TestParkedWaitIsListed(t *testing.T) {
	s := Process(2)
	var done atomic.Bool
	s.Go(func() {
		for len(s.Waits()) == 0 {
			time.Sleep(time.Millisecond)
		}
		done.Store(true)
		s.Ring()
	})
	require.NoError(t, wait(s, t.Context(), nil, func() bool {
		for _, w := range s.Waits() {
			require.Equal(t, "test", w.Op)
			require.Contains(t, w.Where, "sched/sched_test.go:")
		}
		return done.Load()
	}))
}

func TestBellBetweenThreads(t *testing.T) {
	var words [2]atomic.Uint32
	b := NewBell(&words[0], &words[1])
	require.False(t, b.Wait(b.Arm(), time.Millisecond), "nobody rang")
	seq := b.Arm()
	go b.Ring()
	require.True(t, b.Wait(seq, 10*time.Second))
	b.Disarm()
	b.Disarm()
	require.Zero(t, words[1].Load())
}

func TestEventKeepsOneSet(t *testing.T) {
	var e Event
	s := Goroutine(2)
	require.False(t, e.Wait(s, time.Millisecond))
	e.Set()
	e.Set()
	require.True(t, e.Wait(s, time.Second))
	require.False(t, e.Wait(s, time.Millisecond), "two sets before a wait are one")
	go func() { time.Sleep(5 * time.Millisecond); e.Set() }()
	require.True(t, e.Wait(s, 10*time.Second))
}

func TestParkedWaitAllocatesNothing(t *testing.T) {
	s := Process(64)
	parked := func() {
		sp := s.Begin(context.Background(), What{Op: "test"}, nil)
		for len(s.waits.records) == 0 { // this goroutine's own record
			_ = sp.Step()
		}
		sp.End()
	}
	parked() // makes the record that later waits use again
	require.Zero(t, testing.AllocsPerRun(100, parked))
}

// TestShortWaitAllocatesNothing has waits that spin and then yield, and never park, however long another process has the core meanwhile.
func TestShortWaitAllocatesNothing(t *testing.T) {
	s := Process(2)
	s.spins, s.yields, s.early = 25, time.Hour, 0
	s.yield = func() {}
	var n atomic.Int32
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n.Store(0)
		sp := s.Begin(context.Background(), What{Op: "test"}, nil)
		for n.Add(1) < 50 {
			_ = sp.Step()
		}
		sp.End()
	}))
}

// TestFirstParkedWaitAllocatesNothing: the data path parks too, where the machine is busy.
func TestFirstParkedWaitAllocatesNothing(t *testing.T) {
	least := ^uint64(0) // of a few tries: the runtime allocates now and then
	for range 5 {
		s := Process(2)
		s.yields = 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sp := s.Begin(context.Background(), What{Op: "test"}, nil)
		for len(s.waits.records) == 0 { // this goroutine's own record
			_ = sp.Step()
		}
		sp.End()
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	require.Zero(t, least)
}

func TestAwaited(t *testing.T) {
	s := Goroutine(2)
	for _, peer := range []int{3, -1} {
		defer s.Outside(What{Op: "test", Peer: peer})()
	}
	require.Equal(t, []int{3, -1}, s.Awaited(nil, 0))
	require.Empty(t, s.Awaited(nil, time.Hour))
}

// TestSleep: it ends in time or with its context, and one after the other allocates nothing.
func TestSleep(t *testing.T) {
	s := Process(2)
	began := time.Now()
	var none context.Context
	require.NoError(t, s.Sleep(none, 2*time.Millisecond))
	require.NoError(t, s.Sleep(t.Context(), 2*time.Millisecond))
	require.GreaterOrEqual(t, time.Since(began), 4*time.Millisecond)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { time.Sleep(time.Millisecond); cancel(why) }()
	require.ErrorIs(t, s.Sleep(ctx, time.Hour), why)
	began = time.Now()
	require.NoError(t, s.Sleep(t.Context(), 5*time.Millisecond), "by the timer of the sleep that was ended")
	require.GreaterOrEqual(t, time.Since(began), 5*time.Millisecond)
	if !raceEnabled { // which has pools drop what they hold
		require.Zero(t, testing.AllocsPerRun(100, func() { require.NoError(t, s.Sleep(t.Context(), time.Microsecond)) }))
	}
}

// TestNaps: they end in time or with their context, and allocate nothing.
func TestNaps(t *testing.T) {
	n := NewNaps()
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	n.Sleep(ctx, 2*time.Millisecond)
	n.Sleep(ctx, 2*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 4*time.Millisecond)
	require.Zero(t, testing.AllocsPerRun(100, func() { n.Sleep(ctx, time.Microsecond) }))
	go func() { time.Sleep(time.Millisecond); cancel() }()
	n.Sleep(ctx, time.Hour)
	began = time.Now()
	n.Sleep(t.Context(), 5*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 5*time.Millisecond, "by the timer of the nap that was ended")
}

// TestParkMost: what nobody rings for is found a 32nd of the wait late, at most, and what somebody may ring for a quarter.
func TestParkMost(t *testing.T) {
	require.Equal(t, parkShortest, parkMost(0, false))
	require.Equal(t, parkShortest, parkMost(time.Millisecond, true))
	require.Equal(t, 250*time.Microsecond, parkMost(time.Millisecond, false))
	require.Equal(t, 100*time.Microsecond, parkMost(3200*time.Microsecond, true))
}

// TestSleepGivesTurn: waits that sleep give their turn up every TurnLasts, and neither with each sleep nor each in its first one.
func TestSleepGivesTurn(t *testing.T) {
	s := Goroutine(1)
	var turns []time.Duration
	for len(turns) < 4 {
		sp := s.Begin(t.Context(), What{Op: "test"}, nil)
		for parks := 0; parks < 3; {
			before, armed := s.Gave(), sp.armed
			require.NoError(t, sp.Step())
			if armed {
				parks++
			}
			if s.Gave() != before {
				turns = append(turns, s.Gave())
			}
		}
		sp.End()
		require.Less(t, s.Now(), time.Minute, "never")
	}
	for k := range turns[1:] {
		require.GreaterOrEqual(t, turns[k+1]-turns[k], TurnLasts)
	}
}
