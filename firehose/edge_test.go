package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTopOfTheAddressSpace: a range that ends with the address space is used up to its last byte, in buckets of every order.
func TestTopOfTheAddressSpace(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 8, v: 2})
	h := n.holders[0]
	const bytes = 8*unit + 5
	top := Range{ID: 2, Start: ^uint64(0) - bytes + 1, Bytes: bytes}
	require.NoError(t, n.owners[1].s.Expose(top))
	v, err := h.View(1, top)
	require.NoError(t, err)
	for order := range uint8(3) {
		require.NoError(t, h.Fix(v, order))
		var q Request
		require.Equal(t, Waiting, h.Acquire(v, &q, bytes-1, 1))
		n.send(0)
		n.settle()
		key, end := q.Part(bytes - 1)
		require.Equal(t, q.Key(0), key)
		require.GreaterOrEqual(t, end, uint64(bytes))
		n.release(&q)
		require.True(t, h.Try(v, &q, bytes-1, 1))
		n.release(&q)
		require.Equal(t, Failed, h.Acquire(v, &q, bytes-1, 2))
		require.ErrorIs(t, q.Err(), ErrRange)
	}
	n.quiet()
}

// TestAlone: in a world of one rank nobody asks, and the owner's part is all there is.
func TestAlone(t *testing.T) {
	b, err := Split(Limits{Ranks: 1, Pinnable: 4 * unit, Own: 2 * unit, Unit: unit, Page: unit})
	require.NoError(t, err)
	require.Equal(t, [2]int64{2, 2}, [2]int64{b.Share, b.Victims})
	require.NoError(t, b.Agree([]uint64{b.Hash()}))
	h, err := NewHolder(HolderConfig{Budget: b, Payload: LeastPayload})
	require.NoError(t, err)
	require.False(t, h.Send(broken{}), "there is nobody to send to")
	o := &owner{t: t, budget: b, pins: make(map[Bucket]Pin), keys: make(map[uint64]Bucket)}
	o.s = NewServer(b, o, nil)
	require.NoError(t, o.s.Expose(Range{ID: 1, Start: start, Bytes: bigRange}))
	run := Run{MakeBucket(1, 0, 3), 2}
	_, err = o.s.Pin(run, nil)
	require.NoError(t, err)
	o.s.Unpin(run)
	require.Empty(t, o.s.Withdraw(1))
	require.True(t, o.s.Withdrawn(1))
	require.Zero(t, o.units)
}

// TestAgainAtOnce: who gives back what an answer has just brought, and asks again before others have looked at the same answer, takes nothing from
// them; and what it then wants of another bucket waits for what they hold.
func TestAgainAtOnce(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 2, v: 0})
	h, v := n.holders[0], n.view(0, 1)
	first, second := n.pin(0, 2), n.pin(1, 1)
	n.deliver(0)
	require.NoError(t, h.Reply(1, replyOf(t, n))) // both are ready, and nobody has looked yet
	h.Release(first)
	require.Equal(t, Ready, h.Acquire(v, first, 0, unit), "again at once, a hit")
	h.Release(first)
	require.Equal(t, Waiting, h.Acquire(v, first, 10*unit, 2*unit), "bucket 1 is the second one's")
	n.check()
	require.Equal(t, Ready, second.State())
	n.release(second)
	n.settle()
	require.Equal(t, Ready, first.State())
	n.release(first)
	n.quiet()
}

// replyOf takes the one reply that is under way off its way.
func replyOf(t *testing.T, n *net) *Reply {
	require.Len(t, n.way, 1)
	require.True(t, n.way[0].reply)
	var r Reply
	require.NoError(t, r.Parse(n.way[0].bytes))
	n.way = nil
	return &r
}
