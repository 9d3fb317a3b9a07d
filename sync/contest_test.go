package pgsync

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdict(t *testing.T) {
	b := func(boxes, peeks uint8, try way) ballot {
		return ballot{took: [ways]uint8{boxed: boxes, peeked: peeks}, try: try}
	}
	for _, c := range []struct {
		what string
		all  []ballot
		want way
	}{
		{"nobody knows", []ballot{b(0, 0, otherwise), b(0, 0, otherwise)}, peeked},
		{"nobody knows how long boxes take", []ballot{b(0, 9, otherwise), b(0, 9, otherwise)}, boxed},
		{"nobody knows how long peeking takes", []ballot{b(5, 0, otherwise), b(0, 0, otherwise)}, peeked},
		{"one knows nothing, since it reads nothing", []ballot{b(5, 9, otherwise), b(0, 0, otherwise)}, boxed},
		{"boxes are faster", []ballot{b(5, 9, otherwise), b(6, 8, otherwise)}, boxed},
		{"peeking is", []ballot{b(9, 5, otherwise), b(8, 6, otherwise)}, peeked},
		{"peeking is where it matters", []ballot{b(3, 6, otherwise), b(9, 6, otherwise)}, peeked},
		{"as fast", []ballot{b(6, 6, otherwise), b(6, 6, otherwise)}, boxed},
		{"one wants the slower one tried", []ballot{b(5, 9, otherwise), b(5, 9, peeked)}, peeked},
		{"two want both", []ballot{b(5, 9, boxed), b(5, 9, peeked)}, boxed},
		{"tried is what nobody knows", []ballot{b(5, 0, boxed), b(5, 0, boxed)}, peeked},
	} {
		require.Equal(t, c.want, verdict(c.all), c.what)
	}
}

// TestBallotOfACard: what a member tells in two words is what the others hear, whatever it offers.
func TestBallotOfACard(t *testing.T) {
	for range 1000 {
		b := ballot{took: [ways]uint8{boxed: uint8(rand.Uint32()), peeked: uint8(rand.Uint32())}, try: way(rand.IntN(int(ways)))}
		addr, key, blind := rand.Uint64N(1<<addrBits), rand.Uint64N(1<<36)<<pageBits|rand.Uint64N(2)*peekBit, rand.IntN(2) == 0
		card := []uint64{addr, key}
		b.tell(card, blind)
		got, gotBlind := heard(card)
		require.Equal(t, b, got)
		require.Equal(t, blind, gotBlind)
		require.Equal(t, addr, card[0]&(1<<addrBits-1))
		require.Equal(t, key>>pageBits, card[1]>>pageBits)
		require.Equal(t, key&peekBit, card[1]&peekBit)
	}
}

// TestBallotSteps: a longer time is no smaller number, known ones are not 0, and 6 % and more tell.
func TestBallotSteps(t *testing.T) {
	require.Zero(t, steps(0))
	last := uint8(1)
	for ns := int64(1); ns > 0 && ns < math.MaxInt64/2; ns += ns/16 + 1 {
		s := steps(ns)
		require.GreaterOrEqual(t, s, last)
		if ns > 300 && ns < 1e8 {
			require.Greater(t, steps(ns+ns/15), s, ns)
		}
		last = s
	}
}

// TestContest: members whose calls take what a machine lets them take, by the way that all have chosen, come to the faster way and stay with it but for trials, and change to the other soon
// after the machine has changed.
func TestContest(t *testing.T) {
	members := []*contest{{}, {}, {}}
	took := [ways]int64{boxed: 90_000, peeked: 40_000}
	gone := map[way]int{}
	calls := func(n int) {
		clear(gone)
		for range n {
			var all []ballot
			for _, k := range members {
				all = append(all, k.ballot())
			}
			w := verdict(all)
			gone[w]++
			for _, k := range members {
				k.went(w)
				k.saw(w, took[w]+rand.Int64N(took[w]/8)) // and at times somebody is late
				if rand.IntN(5) == 0 {
					k.saw(w, 40*took[w])
				}
			}
		}
	}
	calls(1000)
	require.Greater(t, gone[peeked], 960, "%v", gone)
	require.Greater(t, gone[boxed], 3, "there are trials: %v", gone)
	took[peeked] = 200_000
	calls(100)
	calls(1000)
	require.Greater(t, gone[boxed], 960, "%v", gone)
	took[boxed] = 2 << 20
	calls(100)
	calls(1000)
	require.Greater(t, gone[peeked], 980, "a way that takes ten times as long is tried less: %v", gone)
}

// TestContestOfWhoOnlyGives: a member that takes no time of its own asks for no trial, however long it goes on.
func TestContestOfWhoOnlyGives(t *testing.T) {
	var k contest
	for range 3 * trialAfter {
		k.went(boxed)
		require.Equal(t, ballot{}, k.ballot())
	}
}

// TestContestOfAnotherReader: what a member has seen when it read says nothing of calls in which it gives, and only others read.
func TestContestOfAnotherReader(t *testing.T) {
	members := []*turns{{contest: &contest{}}, {contest: &contest{}}}
	gone := map[way]int{}
	calls := func(n, root int, took [ways]int64) {
		clear(gone)
		for range n {
			var all []ballot
			for m, c := range members {
				c.timed = m != root
				all = append(all, c.ballot())
			}
			w := verdict(all)
			gone[w]++
			for _, c := range members {
				c.contest.went(w)
				if c.timed {
					c.contest.saw(w, took[w])
				}
			}
		}
	}
	calls(500, 0, [ways]int64{boxed: 450_000, peeked: 175_000})
	require.Greater(t, gone[peeked], 480, "%v", gone)
	calls(500, 1, [ways]int64{boxed: 70_000, peeked: 125_000})
	require.Greater(t, gone[boxed], 480, "%v", gone)
	calls(500, 0, [ways]int64{boxed: 450_000, peeked: 175_000})
	require.Greater(t, gone[peeked], 480, "%v", gone)
}
