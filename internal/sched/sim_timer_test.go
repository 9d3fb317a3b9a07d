package sched

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSimTimersThatAreStopped: a time limit that nobody waits for any more is not kept, whether it was a context's or a sleep's.
func TestSimTimersThatAreStopped(t *testing.T) {
	const often = 10000
	for name, once := range map[string]func(s *Sched) error{
		"context": func(s *Sched) error {
			_, cancel := s.WithTimeout(context.Background(), time.Hour)
			cancel()
			cancel()
			return s.Sleep(context.Background(), us)
		},
		"sleep": func(s *Sched) error {
			ctx, cancel := s.WithTimeout(context.Background(), us)
			defer cancel()
			require.ErrorIs(t, s.Sleep(ctx, time.Hour), context.DeadlineExceeded)
			return nil
		},
		"nap": func(s *Sched) error {
			var e Event
			s.Go(func() { e.Set() })
			require.True(t, e.Wait(s, time.Hour))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			most := 0
			var m *Sim
			m = world(0, func(s *Sched) {
				for range often {
					require.NoError(t, once(s))
					most = max(most, len(m.events))
				}
			})
			require.NoError(t, m.Run())
			require.Less(t, most, 128)
			require.LessOrEqual(t, m.Now(), often*us)
		})
	}
}

// TestSimSleeperThatIsRungFor: who sleeps with a context is not there for what happens to its rank.
func TestSimSleeperThatIsRungFor(t *testing.T) {
	m := NewSim(0)
	s, other := m.Rank(), m.Rank()
	ctx, cancel := context.WithCancel(t.Context())
	s.Go(func() {
		require.ErrorIs(t, s.Sleep(ctx, time.Hour), context.Canceled)
		require.Equal(t, 1000*us, s.Now())
	})
	most := 0
	other.Go(func() {
		for range 1000 {
			require.NoError(t, other.Sleep(context.Background(), us))
			s.Ring()
			most = max(most, len(m.events))
		}
		cancel()
		s.Ring()
	})
	require.NoError(t, m.Run())
	require.Less(t, most, 10)
}

// TestSimDeadlockBehindAStoppedTimer: a deadlock is found when it is there, not when a limit would have passed that nobody waits for.
func TestSimDeadlockBehindAStoppedTimer(t *testing.T) {
	m := world(0, func(s *Sched) {
		_, cancel := s.WithTimeout(context.Background(), 10000*time.Hour)
		s.Go(func() {
			for e := new(Event); !e.Wait(s, time.Millisecond); { // a helper that looks now and then
			}
		})
		require.NoError(t, s.Sleep(context.Background(), us))
		cancel()
		require.Error(t, wait(s, context.Background(), nil, func() bool { return false }))
	})
	var stuck *StuckError
	require.ErrorAs(t, m.Run(), &stuck)
	require.Less(t, stuck.At, time.Second)
}

// TestSimTimesWithoutEnd: the longest times are long, as in real time, and none at all is over at once.
func TestSimTimesWithoutEnd(t *testing.T) {
	m := world(0, func(s *Sched) {
		s.Charge(time.Hour)
		long, cancel := s.WithTimeout(context.Background(), math.MaxInt64)
		defer cancel()
		short, enough := s.WithTimeout(long, time.Minute)
		defer enough()
		require.ErrorIs(t, s.Sleep(short, math.MaxInt64), context.DeadlineExceeded)
		require.Equal(t, time.Hour+time.Minute, s.Now())
		require.NoError(t, long.Err())
		var e Event
		s.Go(func() { s.Charge(us); e.Set() })
		require.True(t, e.Wait(s, math.MaxInt64))
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			over, done := s.WithTimeout(context.Background(), d)
			require.ErrorIs(t, context.Cause(over), context.DeadlineExceeded)
			done()
		}
	})
	require.NoError(t, m.Run())
}

// TestSimNapsOfAThread are exact, hide no deadlock, and time does not go back when all have looked again before a nap was over.
func TestSimNapsOfAThread(t *testing.T) {
	m := NewSim(0)
	s := m.Rank()
	last, naps := time.Duration(0), 0
	s.Go(func() {
		s.Thread(func(th *Thread) {
			for naps = range 500 {
				before := s.Now()
				th.Nap(100 * us)
				require.GreaterOrEqual(t, s.Now(), last)
				if last = s.Now(); m.stuck == nil && !m.looking {
					require.Equal(t, before+100*us, last)
				}
			}
		})
		require.Error(t, wait(s, context.Background(), nil, func() bool { return false }))
	})
	var stuck *StuckError
	require.ErrorAs(t, m.Run(), &stuck)
	require.Less(t, stuck.At, 10*time.Millisecond)
	require.Len(t, stuck.Waits, 1)
	require.Equal(t, 499, naps)
}

// TestSimThreadThatIsToldToEnd: who waits for the end of a thread that has napped again and again in vain is not stuck: it looks when its nap is over.
func TestSimThreadThatIsToldToEnd(t *testing.T) {
	m := NewSim(0)
	s := m.Rank()
	stop, ended := false, false
	s.Go(func() {
		s.Thread(func(th *Thread) {
			for !stop {
				th.Nap(100 * us)
			}
			ended = true
			s.Ring()
		})
		require.NoError(t, s.Sleep(context.Background(), 50*time.Millisecond))
		stop = true
		require.NoError(t, wait(s, context.Background(), nil, func() bool { return ended }))
	})
	require.NoError(t, m.Run())
}

// TestSimTimeoutSaysSo: a context that its limit has ended says DeadlineExceeded, as one of package context does, and one that was cancelled does not.
func TestSimTimeoutSaysSo(t *testing.T) {
	m := world(0, func(s *Sched) {
		for _, d := range []time.Duration{0, us} {
			ctx, cancel := s.WithTimeout(context.Background(), d)
			require.ErrorIs(t, s.Sleep(ctx, time.Hour), context.DeadlineExceeded)
			require.Equal(t, context.DeadlineExceeded, ctx.Err(), "%v", d)
			inner, stop := context.WithCancel(ctx)
			require.Equal(t, context.DeadlineExceeded, context.Cause(inner))
			stop()
			cancel()
			require.Equal(t, context.DeadlineExceeded, ctx.Err(), "%v", d)
		}
		ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
		require.NoError(t, ctx.Err())
		cancel()
		require.Equal(t, context.Canceled, ctx.Err())
		require.Equal(t, context.Canceled, context.Cause(ctx))
	})
	require.NoError(t, m.Run())
}

// TestSimDeadWaitForNothing: the report of a deadlock does not name a rank that was killed in the midst of a wait.
func TestSimDeadWaitForNothing(t *testing.T) {
	m := NewSim(0)
	ranks := []*Sched{m.Rank(), m.Rank(), m.Rank()}
	for r, s := range ranks {
		s.Go(func() {
			sp := s.Begin(context.Background(), What{Op: "wait", Peer: -1}, nil)
			defer sp.End()
			for look := 0; sp.Step() == nil; look++ {
				if r == 2 && look == 0 { // all are told to look again, and the others, who come first, are in the list of waits
					ranks[1].Kill()
				}
			}
		})
	}
	var stuck *StuckError
	require.ErrorAs(t, m.Run(), &stuck)
	var named []int
	for _, w := range stuck.Waits {
		named = append(named, w.Rank)
	}
	require.Equal(t, []int{0, 2}, named)
}
