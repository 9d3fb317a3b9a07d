package tcp

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// TestLullTimes: somebody is likely to be back behind a wait that was short and began soon after the one before.
func TestLullTimes(t *testing.T) {
	const soon = lullBrief - 1
	for _, c := range []struct {
		gap, wait time.Duration
		back      bool
	}{
		{soon, soon, true}, {0, 0, true}, {lullBrief, soon, false}, {soon, lullBrief, false}, {time.Second, 0, false},
	} {
		var l lull
		now := time.Hour
		l.begin(now)
		l.ends(now)
		l.begin(now + c.gap)
		require.Equal(t, c.back, l.ends(now+c.gap+c.wait), "%v after the last, for %v", c.gap, c.wait)
	}
}

// TestLullIsOver: a lull is over when nobody has polled for a while, or has begun to.
func TestLullIsOver(t *testing.T) {
	var l lull
	now := time.Hour
	l.begin(now)
	l.ends(now)
	require.True(t, l.over(1, true, now))
	require.False(t, l.over(0, false, now+lullTick-1))
	require.True(t, l.over(0, false, now+lullTick))
	require.False(t, l.over(0, true, now+lullTick), "somebody polls again")
}

// hot has r poll without a pause a few times, one soon after another, with an operation under way over l, and ends each as how says.
func (r *testRank) hot(t *testing.T, l *link, to *testRank, how sched.Polling) {
	t.Helper()
	answer := r.stuck(t, l, to)
	var cq [1]transport.Completion
	for range 5 {
		r.Hush(sched.Steadily)
		for range 2 * (patience + 1) {
			_, err := r.Poll(cq[:])
			require.NoError(t, err)
		}
		r.Hush(how)
	}
	answer()
}

// TestLull: behind short waits that follow each other soon a link stays hushed for a while, and its reader is wakened again though nobody comes back. Who goes to
// sleep has it wakened at once.
func TestLull(t *testing.T) {
	for _, how := range []sched.Polling{sched.NoMore, sched.Seldom} {
		a, b, l := twoRanks(t, Config{})
		a.post(t, 1, a.op(transport.OpWrite, l, b, 0, 0, 8))
		stayed := false
		for began := time.Now(); !stayed && time.Since(began) < 2*time.Second; {
			a.hot(t, l, b, how)
			stayed = wakesAt(t, l) == hushBytes // unless the test was interrupted
			require.Eventually(t, func() bool { return wakesAt(t, l) == 1 && a.hushed.Load() == nil }, time.Minute, 100*time.Microsecond)
			if how == sched.Seldom {
				break
			}
		}
		require.True(t, stayed == (how == sched.NoMore) || raceBuild, "waits are not short where they are looked at")
		b.open.Slice(64, 8).Word64(0).Store(7)
		b.post(t, 1, b.op(transport.OpWrite, b.links[0].Load(), a, 64, 64, 8)) // nobody polls for a
		require.EqualValues(t, 7, a.open.Slice(64, 8).Word64(0).Load())
	}
}

// TestLullEnds: whenever the last of some short waits ends, what a peer then asks is performed, though nobody polls.
func TestLullEnds(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	a, b, l := twoRanks(t, Config{})
	a.post(t, 1, a.op(transport.OpWrite, l, b, 0, 0, 8))
	back := b.links[0].Load()
	for round := range rounds {
		var wg sync.WaitGroup
		for range 2 { // who share the NIC's places but not their waits
			wg.Go(func() {
				for range 3 + round%20 {
					a.Hush(sched.Steadily)
					a.hush(l)
					a.Hush(sched.NoMore)
				}
			})
		}
		wg.Wait()
		if round%3 == 0 {
			time.Sleep(lullTick + time.Duration(round%7-3)*20*time.Microsecond)
		}
		b.open.Slice(64, 8).Word64(0).Store(uint64(round + 1))
		began := time.Now()
		b.post(t, 1, b.op(transport.OpWrite, back, a, 64, 64, 8))
		require.EqualValues(t, round+1, a.open.Slice(64, 8).Word64(0).Load())
		require.Less(t, time.Since(began), 10*time.Second)
	}
}
