package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestThreadHasItsTimersToItself(t *testing.T) {
	s := Process(2)
	type seen struct {
		slack, tid int
		slept      time.Duration
	}
	got := make(chan seen, 1)
	s.Thread(func(th *Thread) {
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			slack = -1
		}
		tid := unix.Gettid()
		start := s.Now()
		for s.Now()-start < time.Millisecond {
			th.Nap(50 * time.Microsecond)
			if unix.Gettid() != tid {
				tid = -1
			}
		}
		got <- seen{slack, tid, s.Now() - start}
	})
	r := <-got
	require.Equal(t, 1, r.slack)
	require.Positive(t, r.tid, "it moved to another thread")
	require.GreaterOrEqual(t, r.slept, time.Millisecond)
}

// TestThreadIsBound: a thread may be bound to one core, of which the rest of the process hears nothing; nor does who uses a thread
// after it.
func TestThreadIsBound(t *testing.T) {
	s := Process(2)
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	core := 0
	for !all.IsSet(core) {
		core++
	}
	got := make(chan unix.CPUSet, 1)
	s.Thread(func(th *Thread) {
		var set unix.CPUSet
		if again := th.Bind(core); again == nil && th.Bind(core) == nil && th.Bind(len(set)*64-1) != nil {
			_ = unix.SchedGetaffinity(0, &set)
		}
		got <- set
	})
	set := <-got
	require.Equal(t, 1, set.Count())
	require.True(t, set.IsSet(core))
	for range 20 {
		s.Thread(func(*Thread) {
			var set unix.CPUSet
			_ = unix.SchedGetaffinity(0, &set)
			got <- set
		})
		require.Equal(t, all, <-got)
	}
}

func BenchmarkNap(b *testing.B) {
	s := Process(2)
	done := make(chan struct{})
	s.Thread(func(th *Thread) {
		defer close(done)
		for b.Loop() {
			th.Nap(50 * time.Microsecond)
		}
	})
	<-done
}
