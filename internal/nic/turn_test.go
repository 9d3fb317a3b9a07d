package nic

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport/transporttest"
)

// TestPollerGivesItsTurnUp: another goroutine that is ready has run when who polls goes on, though all there is is one turn.
func TestPollerGivesItsTurnUp(t *testing.T) {
	n := newWorld(t, 2, transporttest.FabricConfig{}, nil).n[0]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds = 20
	let := 0
	for range rounds {
		var ran atomic.Bool
		before, began := n.sched.Gave(), n.sched.Now()
		go ran.Store(true)
		for n.sched.Gave() == before {
			require.Less(t, n.sched.Now()-began, patient, "never")
			n.begun()
		}
		require.GreaterOrEqual(t, n.sched.Gave()-before, sched.TurnLasts, "too early")
		if ran.Load() {
			let++
		}
	}
	require.Greater(t, let, rounds*3/4) // the runtime looks elsewhere first once in 61 times
}

// TestUntilLook: looks come about a millisecond apart, and no later than behind 64 posts and waits; when those begin to take longer, the next look but
// one is in time.
func TestUntilLook(t *testing.T) {
	gap := func(each time.Duration) time.Duration {
		n := uint64(1)
		for range 20 {
			n = untilLook(n, time.Duration(n)*each)
		}
		require.LessOrEqual(t, n, uint64(turnLooksMost))
		return time.Duration(n) * each
	}
	require.Equal(t, turnLooksMost*time.Microsecond, gap(time.Microsecond))
	for _, each := range []time.Duration{20 * time.Microsecond, 70 * time.Microsecond, 300 * time.Microsecond} {
		require.InDelta(t, 0.75, gap(each).Seconds()*1e3, 0.25, "%v", each)
	}
	require.Equal(t, 5*time.Millisecond, gap(5*time.Millisecond), "each time")
	require.Equal(t, uint64(1), untilLook(turnLooksMost, turnLooksMost*5*time.Millisecond))
}

// TestAttendingHasNoTurn: who keeps out of the way of one who polls is not asleep in the kernel with a turn to run Go code.
func TestAttendingHasNoTurn(t *testing.T) {
	n := newWorld(t, 2, transporttest.FabricConfig{}, nil).n[0]
	inKernel := func() (often int) {
		s := []metrics.Sample{{Name: "/sched/goroutines/not-in-go:goroutines"}}
		for range 50 {
			time.Sleep(500 * time.Microsecond)
			metrics.Read(s)
			require.Equal(t, metrics.KindUint64, s[0].Value.Kind())
			often += int(s[0].Value.Uint64())
		}
		return often
	}
	before := inKernel() // others of this process
	done := n.Alone()
	stop := n.attended()
	time.Sleep(10 * time.Millisecond) // its first naps are short
	during := inKernel()
	done()
	stop()
	require.Less(t, during-before, 25, "of 50 looks; before: %d", before)
}
