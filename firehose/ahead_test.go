package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ahead asks for a bucket of rank 1 for rank 0, ahead of its use, and has the move carried out.
func (n *net) ahead(b uint64, due int64) bool {
	ok := n.holders[0].Ahead(n.view(0, 1), MakeBucket(1, 0, b), due)
	n.send(0)
	n.check()
	n.settle()
	return ok
}

// TestAheadOfUse: a bucket that is asked for ahead is a hit when it is used; the miss is on nobody's path.
func TestAheadOfUse(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	h := n.holders[0]
	require.True(t, n.ahead(7, 1))
	require.Equal(t, []uint64{7}, h.peers[1].idleOf())
	n.use(7)
	s := h.Stats()
	require.Equal(t, [3]uint64{1, 0, 1}, [3]uint64{s.Hits, s.Misses, s.Ahead})
	require.True(t, n.ahead(7, 2), "held already")
	require.Equal(t, uint64(1), h.Stats().Ahead)
	require.False(t, n.ahead(bigRange/unit, 1), "behind the range")
	require.False(t, h.Ahead(n.view(0, 1), MakeBucket(1, 3, 0), 1), "not the order in use")
	n.quiet()
}

// TestJoinsWhatWasAskedAhead: a use that comes before the answer waits for that, and asks for nothing itself.
func TestJoinsWhatWasAskedAhead(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	h := n.holders[0]
	require.True(t, h.Ahead(n.view(0, 1), MakeBucket(1, 0, 3), 1))
	n.send(0)
	q := n.pin(3, 1)
	require.Equal(t, Waiting, q.State())
	n.settle()
	n.release(q)
	s := h.Stats()
	require.Equal(t, [4]uint64{0, 1, 0, 1}, [4]uint64{s.Hits, s.Joins, s.Misses, s.Ahead})
	n.quiet()
}

// TestCyclesLargerThanTheShare: five buckets by turns through a share of four are a miss each by age alone. With what is used
// given up first and the next one asked for ahead each is a hit.
func TestCyclesLargerThanTheShare(t *testing.T) {
	const f, cycle, rounds = 4, 5, 6
	n := newNet(t, config{ranks: 2, f: f, v: 0})
	for i := range uint64(cycle * rounds) {
		n.use(i % cycle)
	}
	require.Equal(t, uint64(cycle*rounds), n.holders[0].Stats().Misses)

	n = newNet(t, config{ranks: 2, f: f, v: 0})
	h, v := n.holders[0], n.view(0, 1)
	for i := range int64(cycle * rounds) {
		b := uint64(i % cycle)
		n.use(b)
		h.Expect(v, MakeBucket(1, 0, b), i+cycle)
		require.True(t, h.Yield(v, MakeBucket(1, 0, b)))
		if i >= cycle { // known from the second round on
			require.True(t, n.ahead((b+1)%cycle, i+1))
		}
	}
	s := h.Stats()
	require.LessOrEqual(t, s.Misses, uint64(2*cycle), "of the rounds before anything is known")
	require.Equal(t, uint64(cycle*rounds), s.Hits+s.Misses)
	n.quiet()
}

// TestAheadTakesNothingThatIsNeededEarlier: what is in use, and what is expected earlier, stays; what nobody expects goes
// first, then what is expected last.
func TestAheadTakesNothingThatIsNeededEarlier(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 3, v: 2})
	h, v := n.holders[0], n.view(0, 1)
	n.use(0, 1, 2)
	for b, due := range []int64{10, 30, 20} {
		h.Expect(v, MakeBucket(1, 0, uint64(b)), due)
	}
	require.False(t, n.ahead(8, 40), "all are needed earlier")
	require.True(t, n.ahead(8, 15))
	require.False(t, h.Knows(v, MakeBucket(1, 0, 1)), "the one expected last")
	h.Expect(v, MakeBucket(1, 0, 0), 0)
	require.True(t, n.ahead(9, 50))
	require.False(t, h.Knows(v, MakeBucket(1, 0, 0)), "nobody expects it")
	q := []*Request{n.pin(2, 1), n.pin(8, 1), n.pin(9, 1)}
	require.False(t, n.ahead(10, 1), "all in use")
	require.False(t, h.Yield(v, MakeBucket(1, 0, 8)))
	blocked := n.pin(11, 1)
	n.release(q[0])
	n.settle()
	require.Equal(t, Ready, blocked.State())
	n.release(blocked)
	n.release(q[1])
	n.release(q[2])
	n.quiet()
}
