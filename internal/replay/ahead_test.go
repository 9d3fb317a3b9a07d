package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/trace"
)

// walk has rank 0 put a word into one place after the other of rank 1's memory, each a bucket of its own, at times that are some
// microseconds apart. The share has room for 16 buckets.
func walk(t *testing.T, p Policy, uses int, place func(i int) int) *HoseResult {
	t.Helper()
	files, add := aimed(2)
	for i := range uses {
		add(trace.Put, int64(i)*200_000, 1000, uint64(place(i))<<15, 64)
		files[0].Events[i].Stack[0] = 77
	}
	res := run(t, files, Config{
		Policy: p, Threshold: 1 << 14, Hose: &Hose{Pinned: 16 << 15, Bucket: 32 << 10},
		Costs: costs(t, "free latency=10us register=1us+100ns deregister=500ns+50ns"),
	})
	require.EqualValues(t, 16, res.Hose.Share)
	require.EqualValues(t, uses, res.Small, "no transfer is registered at the origin")
	return res.Hose
}

// TestBucketsAheadOfUse: round a working set that is larger than the share each use misses. Where the helper is told of them it asks
// ahead, and after the rounds in which it learns nearly none does.
func TestBucketsAheadOfUse(t *testing.T) {
	const places, rounds = 20, 24
	round := func(i int) int { return i % places }
	demand, ahead := walk(t, LeavePinned, places*rounds, round), walk(t, Predictive, places*rounds, round)
	require.EqualValues(t, places*rounds, demand.Misses)
	require.Zero(t, demand.Ahead+demand.Foreseen+demand.Told+demand.Untold)
	require.LessOrEqual(t, ahead.Misses, uint64(8*places), "of the first rounds: %+v", ahead)
	require.GreaterOrEqual(t, ahead.Foreseen, uint64(2*rounds), "those needed last are given up first, so four a round are to be had ahead: %+v", ahead)
	require.Equal(t, uint64(places*rounds), ahead.Hits+ahead.Joins+ahead.Misses)
	require.GreaterOrEqual(t, ahead.Ahead, ahead.Foreseen+ahead.Late)
	require.Less(t, ahead.Waited, demand.Waited/2)
	require.EqualValues(t, 64, ahead.Untold, "before the first trial")
}

// TestRandomPutsAreNotTold: of uses that no prediction saves the helper soon hears no more, and it asks for hardly anything.
func TestRandomPutsAreNotTold(t *testing.T) {
	const uses = 3000
	rng := rand.New(rand.NewPCG(5, 6))
	at := make([]int, uses)
	for i := range at {
		at[i] = rng.IntN(40)
	}
	place := func(i int) int { return at[i] }
	demand, ahead := walk(t, LeavePinned, uses, place), walk(t, Predictive, uses, place)
	require.Greater(t, ahead.Untold, 2*ahead.Told)
	require.Less(t, ahead.Ahead, demand.Misses/20)
	require.InEpsilon(t, demand.Misses, ahead.Misses, 0.05)
	require.InEpsilon(t, demand.Waited, ahead.Waited, 0.05)
}
