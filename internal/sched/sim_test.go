package sched

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const us = time.Microsecond

// world makes a simulation whose ranks run fs.
func world(seed uint64, fs ...func(s *Sched)) *Sim {
	m := NewSim(seed)
	for _, f := range fs {
		s := m.Rank()
		s.Go(func() { f(s) })
	}
	return m
}

func TestSimSleepersWakeInTheOrderOfTime(t *testing.T) {
	var order []int
	sleeper := func(i int, d time.Duration) func(*Sched) {
		return func(s *Sched) {
			require.NoError(t, s.Sleep(context.Background(), d))
			require.Equal(t, d, s.Now())
			order = append(order, i)
		}
	}
	start := time.Now()
	m := world(0, sleeper(0, 3*time.Hour), sleeper(1, 1*time.Hour), sleeper(2, 2*time.Hour), sleeper(3, 0))
	require.NoError(t, m.Run())
	require.Equal(t, []int{3, 1, 2, 0}, order)
	require.Equal(t, 3*time.Hour, m.Now())
	require.Less(t, time.Since(start), 10*time.Second)
}

func TestSimWaitEndsWhenPeerRings(t *testing.T) {
	var words [2]atomic.Uint32
	var done bool
	m := NewSim(0)
	a, b := m.Rank(), m.Rank()
	a.SetBell(a.NewBell(&words[0], &words[1]))
	a.Go(func() {
		require.NoError(t, wait(a, t.Context(), nil, func() bool { return done }))
		require.Equal(t, 7*us, a.Now(), "woken at the time of the ring, not before and not later")
	})
	b.Go(func() {
		b.Charge(7 * us)
		done = true
		b.NewBell(&words[0], &words[1]).Ring()
	})
	require.NoError(t, m.Run())
	require.Zero(t, m.Counts().LostRings)
}

func TestSimBusyRankLooksWhenItIsDone(t *testing.T) {
	m := NewSim(0)
	s := m.Rank()
	var at time.Duration
	m.At(3*us, action(func() { at = m.now; s.Ring() }), 0)
	s.Go(func() {
		s.Charge(10 * us) // computes while it happens
		require.Zero(t, at, "computation that was only charged lets nothing happen")
		require.NoError(t, wait(s, context.Background(), nil, func() bool { return at != 0 }))
		require.Equal(t, 10*us, s.Now())
	})
	require.NoError(t, m.Run())
	require.Equal(t, 3*us, at)
}

type action func()

func (a action) Fire(uint64) { a() }

func TestSimHelperRunsBesideItsRank(t *testing.T) {
	m := world(0, func(s *Sched) {
		var done bool
		s.Go(func() { s.Charge(5 * us); done = true })
		s.Charge(2 * us)
		require.NoError(t, wait(s, context.Background(), nil, func() bool { return done }))
		require.Equal(t, 5*us, s.Now(), "the helper has a processor of its own")
	})
	require.NoError(t, m.Run())
	require.Zero(t, m.Counts().LostRings)
}

func TestSimDeadlockIsReported(t *testing.T) {
	never := func() bool { return false }
	var ends [2]error
	m := world(0,
		func(s *Sched) { s.Charge(us); ends[0] = wait(s, context.Background(), nil, never) },
		func(s *Sched) {
			sp := s.Begin(context.Background(), What{Op: "flush", Peer: 0}, nil)
			defer sp.End()
			for ends[1] == nil {
				ends[1] = sp.Step()
			}
		})
	err := m.Run()
	var stuck *StuckError
	require.ErrorAs(t, err, &stuck)
	require.Len(t, stuck.Waits, 2)
	require.Equal(t, "flush", stuck.Waits[1].Op)
	require.Contains(t, stuck.Waits[1].Where, "sched/sim_test.go:")
	require.Contains(t, err.Error(), "rank 0: test since")
	require.Contains(t, err.Error(), "rank 1: flush (peer 0)")
	for _, e := range ends {
		require.ErrorIs(t, e, err, "the waits end with the report")
	}
	require.Zero(t, m.Counts().LostRings)
}

// TestSimDeadlockBesideNappers: goroutines that look now and then whether there is something to do, or serve a rank
// when asked, do not hide that nothing will ever happen. One that waits for a time does.
func TestSimDeadlockBesideNappers(t *testing.T) {
	m := NewSim(0)
	a, b := m.Rank(), m.Rank()
	var idle, served Event
	over := false
	a.Go(func() {
		for !over {
			idle.Wait(a, 200*us)
		}
	})
	b.Go(func() {
		require.False(t, served.Wait(b, time.Second), "it had a time, and that came")
		require.Equal(t, time.Second, b.Now())
	})
	b.Go(func() {
		require.NoError(t, b.WaitUntil(t.Context(), func() bool { return over }))
	})
	a.Go(func() {
		err := wait(a, context.Background(), nil, func() bool { return false })
		require.ErrorAs(t, err, new(*StuckError))
		over = true
		idle.Set()
		b.Ring()
	})
	var stuck *StuckError
	require.ErrorAs(t, m.Run(), &stuck)
	require.Len(t, stuck.Waits, 1)
	require.GreaterOrEqual(t, stuck.At, time.Second)
	require.Less(t, stuck.At, 2*time.Second)
}

// TestSimWaitUntilSwitchesForNothing: whoever wakes a rank looks at the condition for it.
func TestSimWaitUntilSwitchesForNothing(t *testing.T) {
	m := NewSim(0)
	s := m.Rank()
	n := 0
	s.Go(func() {
		require.NoError(t, s.WaitUntil(t.Context(), func() bool { return n == 100 }))
		require.Equal(t, 100*us, s.Now())
	})
	for i := range 200 {
		m.At(time.Duration(i+1)*us, action(func() { n++; s.Ring() }), 0)
	}
	require.NoError(t, m.Run())
	require.Less(t, m.Counts().Switches, uint64(4))
}

func TestSimStuckEvenIfErrorsAreIgnored(t *testing.T) {
	var unwound bool
	m := world(0, func(s *Sched) {
		defer func() { unwound = true }()
		sp := s.Begin(context.Background(), What{Op: "stubborn", Peer: -1}, nil)
		for {
			_ = sp.Step()
		}
	})
	require.ErrorContains(t, m.Run(), "stubborn")
	require.True(t, unwound)
}

func TestSimLostRingCostsAParkAndIsCounted(t *testing.T) {
	var done bool
	m := world(0,
		func(s *Sched) {
			require.NoError(t, wait(s, context.Background(), nil, func() bool { return done }))
			require.Equal(t, 4*us+parkLongest, s.Now())
		},
		func(s *Sched) { require.NoError(t, s.Sleep(context.Background(), 4*us)); done = true }) // nobody rings
	require.NoError(t, m.Run())
	require.EqualValues(t, 1, m.Counts().LostRings)
}

func TestSimTimeoutAndWatch(t *testing.T) {
	gone := errors.New("gone")
	var dead bool
	m := NewSim(0)
	s := m.Rank()
	s.Go(func() {
		ctx, cancel := s.WithTimeout(t.Context(), 9*us)
		defer cancel()
		require.ErrorIs(t, wait(s, ctx, nil, func() bool { return false }), context.DeadlineExceeded)
		require.Equal(t, 9*us, s.Now())
		require.ErrorIs(t, s.Sleep(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 9*us, s.Now())
		m.At(20*us, action(func() { dead = true; s.Ring() }), 0)
		err := wait(s, context.Background(), watchFunc(func() error {
			if dead {
				return gone
			}
			return nil
		}), func() bool { return false })
		require.ErrorIs(t, err, gone)
		require.Equal(t, 20*us, s.Now(), "virtual time grants no last words")
	})
	require.NoError(t, m.Run())
}

// TestSimStuckWaitersMakeWay: when a world is stuck, one that waits for another's end, and not for what will never come,
// gets it.
func TestSimStuckWaitersMakeWay(t *testing.T) {
	for seed := range uint64(8) { // in either order
		m := NewSim(seed)
		s := m.Rank()
		ended, closed := false, false
		s.Go(func() {
			s.Go(func() {
				_ = wait(s, context.Background(), nil, func() bool { return false })
				ended = true
			})
			sp := s.Begin(context.Background(), What{Op: "close"}, nil)
			for !ended {
				_ = sp.Step() // as a rank that closes waits for its helper, whatever Step says
			}
			sp.End()
			closed = true
		})
		var stuck *StuckError
		require.ErrorAs(t, m.Run(), &stuck)
		require.True(t, closed, "seed %d", seed)
	}
}

func TestSimEventAndBell(t *testing.T) {
	var e Event
	var words [2]atomic.Uint32
	m := NewSim(0)
	a, b := m.Rank(), m.Rank()
	bell := a.NewBell(&words[0], &words[1])
	a.Go(func() {
		require.False(t, e.Wait(a, 2*us))
		require.Equal(t, 2*us, a.Now())
		require.True(t, e.Wait(a, time.Hour))
		require.Equal(t, 5*us, a.Now())
		require.False(t, bell.Wait(bell.Arm(), us))
		seq := bell.Arm()
		require.True(t, bell.Wait(seq, time.Hour))
		require.Equal(t, 9*us, a.Now())
	})
	b.Go(func() {
		require.NoError(t, b.Sleep(context.Background(), 5*us))
		e.Set()
		e.Set()
		require.NoError(t, b.Sleep(context.Background(), 4*us))
		b.NewBell(&words[0], &words[1]).Ring()
	})
	require.NoError(t, m.Run())
}

func TestSimKilledRankRunsNoMore(t *testing.T) {
	var after, deferred bool
	m := NewSim(0)
	a, b := m.Rank(), m.Rank()
	a.Go(func() {
		defer func() { deferred = true }()
		require.NoError(t, a.Sleep(context.Background(), 3*us))
		a.Kill()
		after = true
	})
	a.Go(func() { _ = a.Sleep(context.Background(), time.Hour); after = true })
	b.Go(func() {
		require.NoError(t, b.Sleep(context.Background(), 5*us))
		require.False(t, deferred, "a dead process runs nothing, deferred calls neither")
	})
	require.NoError(t, m.Run())
	require.Equal(t, 5*us, m.Now())
	require.False(t, after)
	require.True(t, deferred, "its coroutine was unwound when all was over")
}

func TestSimPanicIsRuns(t *testing.T) {
	var unwound bool
	m := world(0,
		func(s *Sched) { defer func() { unwound = true }(); _ = s.Sleep(context.Background(), time.Hour) },
		func(s *Sched) { panic("broken") })
	require.PanicsWithValue(t, "broken", func() { _ = m.Run() })
	require.True(t, unwound)
}

// TestSimSeedMixesRanks: ranks that are ready together run in an order that the seed decides, and no other chance.
func TestSimSeedMixesRanks(t *testing.T) {
	order := func(seed uint64) string {
		var b strings.Builder
		m := NewSim(seed)
		for r := range 8 {
			s := m.Rank()
			s.Go(func() {
				for range 3 {
					b.WriteByte(byte('0' + r))
					_ = s.Sleep(context.Background(), us)
				}
			})
		}
		require.NoError(t, m.Run())
		return b.String()
	}
	require.Equal(t, "012345670123456701234567", order(0))
	require.Equal(t, order(1), order(1))
	require.NotEqual(t, order(1), order(2))
}

func TestSimQueueIsAHeap(t *testing.T) {
	m := NewSim(3)
	var q queue
	for i := range 1000 {
		q.push(event{at: time.Duration(m.rng.IntN(50)), seq: uint64(i)})
		if i%3 == 2 {
			q.pop()
		}
	}
	last := event{at: -1}
	for n := len(q); n > 0; n-- {
		e, ok := q.pop()
		require.True(t, ok)
		require.True(t, last.before(&e))
		last = e
	}
	_, ok := q.pop()
	require.False(t, ok)
}

// BenchmarkSimSwitch is two ranks that hand the token to and fro; one operation is one switch.
func BenchmarkSimSwitch(b *testing.B) {
	for name, ranks := range map[string]int{"2": 2, "3072": 3072} {
		b.Run(name, func(b *testing.B) {
			m := NewSim(0)
			for range ranks {
				s := m.Rank()
				s.Go(func() {
					for range b.N/ranks + 1 {
						_ = s.Sleep(context.Background(), us)
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, m.Run())
			b.ReportMetric(float64(m.Counts().Switches)/float64(b.N), "switches/op")
		})
	}
}

// BenchmarkSimEvent is an action that has another fire: no coroutine is involved.
func BenchmarkSimEvent(b *testing.B) {
	m := NewSim(0)
	n := 0
	var again action
	again = func() {
		if n++; n < b.N {
			m.At(m.now+us, again, 0)
		}
	}
	b.ReportAllocs()
	m.At(0, again, 0)
	for m.Advance() {
	}
}

func TestThreadNapsInVirtualTime(t *testing.T) {
	m := NewSim(1)
	s := m.Rank()
	var at []time.Duration
	s.Thread(func(th *Thread) {
		for range 3 {
			th.Nap(50 * time.Microsecond)
			at = append(at, s.Now())
		}
	})
	require.NoError(t, m.Run())
	require.Equal(t, []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, 150 * time.Microsecond}, at)
}

// TestSimKilledWhileItNaps: a rank that is killed in a wait with a time limit is no reason to go on when the others can only look, over and over.
func TestSimKilledWhileItNaps(t *testing.T) {
	m := NewSim(0)
	killed, left := m.Rank(), m.Rank()
	killed.Go(func() {
		var e Event
		for {
			e.Wait(killed, time.Hour)
		}
	})
	rounds := 0
	left.Go(func() {
		killed.Kill()
		left.Go(func() {
			var e Event
			for !e.Wait(left, us) {
				if rounds++; rounds > 100_000 {
					panic("it naps for ever")
				}
			}
		})
		_ = wait(left, t.Context(), nil, func() bool { return false })
	})
	var stuck *StuckError
	require.ErrorAs(t, m.Run(), &stuck)
}
