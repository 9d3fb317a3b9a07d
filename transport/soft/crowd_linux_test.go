package soft_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
	"gopgas/transport/soft"
)

// TestOneProcessor has two processes on one processor add to each other's words. Each answer needs the other's turn: who polls
// for it in vain must let the other run, which is seen by how often it polls, not by how long that takes. One that spins until
// its time is up polls ten thousand times for an answer.
func TestOneProcessor(t *testing.T) {
	r, ps := onOneProcessor(t)
	const each = 300
	for me := 1; me <= 2; me++ {
		ps[me].begin("polls %d %d", 3-me, each)
	}
	for me := 1; me <= 2; me++ {
		polls, err := strconv.Atoi(ps[me].end())
		require.NoError(t, err)
		t.Logf("rank %d polled %d times for an answer", me, polls/each)
		require.Less(t, polls/each, 2000)
	}
	_ = r
}

// onOneProcessor starts a job of three, of which ranks 1 and 2 have one processor, the same. This process, rank 0, has all it had.
func onOneProcessor(t *testing.T) (*rank, []*process) {
	t.Helper()
	runtime.LockOSThread() // a child has the processors of the thread that starts it
	defer runtime.UnlockOSThread()
	var had, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &had))
	for cpu := 0; one.Count() == 0; cpu++ {
		if had.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &had)) }()
	return job(t, soft.Config{}, 3)
}

// TestWaiterAndThreadShare has the engine's thread asleep whenever something long is posted, and its poster wait. Both move pieces of
// it, whoever is there first, and every byte arrives.
func TestWaiterAndThreadShare(t *testing.T) {
	r, _ := job(t, soft.Config{Spin: 1}, 2)
	const most = 700 << 10 // more than a waiter moves at once
	for round := range 15 {
		bytes := []int{9 << 10, 64 << 10, most}[round%3]
		src, back := r.mem.Slice(0, bytes), r.mem.Slice(most, bytes)
		for i := range src.Data() {
			src.Data()[i] = byte(i>>8 ^ i ^ round)
		}
		for _, op := range []transport.Op{r.op(transport.OpWrite, 1, 0, 0, bytes), r.op(transport.OpRead, 1, most, 0, bytes)} {
			require.NoError(t, r.post(op))
			var cq [1]transport.Completion
			for done := 0; done == 0; {
				var err error
				done, err = r.d.Poll(cq[:])
				require.NoError(t, err)
			}
			require.Equal(t, transport.StatusOK, cq[0].Status)
		}
		require.True(t, slices.Equal(src.Data(), back.Data()), "%d bytes, round %d", bytes, round)
	}
}
