package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadRequests: what the origin can know it does not send.
func TestBadRequests(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 1})
	h, v := n.holders[0], n.view(0, 1)
	for name, c := range map[string]struct {
		off, n uint64
		want   error
	}{
		"beyond the end": {bigRange - 1, 2, ErrRange}, "far beyond": {1 << 60, 1, ErrRange}, "a sum that wraps": {8, 1<<64 - 8, ErrRange},
		"more than the share": {0, 5 * unit, ErrTooLarge},
	} {
		var q Request
		require.Equal(t, Failed, h.Acquire(v, &q, c.off, c.n), name)
		require.ErrorIs(t, q.Err(), c.want, name)
		require.False(t, h.Try(v, &q, c.off, c.n), name)
	}
	var none Request
	require.Equal(t, Ready, h.Acquire(v, &none, bigRange, 0), "no bytes need nothing")
	require.Zero(t, none.Run().Count)
	n.release(&none)
	_, err := h.View(1, Range{ID: 1, Start: start, Bytes: 5})
	require.ErrorIs(t, err, ErrRange)
	_, err = h.View(1, Range{ID: 3, Start: 1})
	require.ErrorIs(t, err, ErrRange)
	_, err = NewHolder(HolderConfig{Budget: n.budget, Payload: LeastPayload - 1})
	require.ErrorIs(t, err, ErrLimits)

	poor, err := Split(Limits{Ranks: 9, Pinnable: unit, Page: unit})
	require.NoError(t, err)
	h, err = NewHolder(HolderConfig{Budget: poor, Payload: 448})
	require.NoError(t, err)
	v, err = h.View(1, Range{ID: 1, Start: start, Bytes: unit})
	require.NoError(t, err)
	require.Equal(t, uint64(unit), h.Piece(v, 0, unit))
	require.Equal(t, Failed, h.Acquire(v, &none, 0, 1))
	require.ErrorIs(t, none.Err(), ErrNoShare)
}

// TestBadMoves: an owner does nothing for a peer that asks for what it must not.
func TestBadMoves(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 1})
	s := n.owners[1].s
	n.use(0)
	b := func(order uint8, i uint64) Bucket { return MakeBucket(1, order, i) }
	last := uint64(bigRange/unit - 1)
	for name, m := range map[string]Move{
		"too many":              {New: []Run{{b(0, 1), 5}}},
		"too many with others":  {New: []Run{{b(0, 1), 4}}},
		"outside":               {New: []Run{{b(0, last), 2}}},
		"far outside":           {New: []Run{{b(0, indexMask), 1}}},
		"none":                  {New: []Run{{b(0, 5), 0}}},
		"an order too high":     {New: []Run{{b(mostOrder, 0), 1}}},
		"not held":              {Old: []Run{{b(0, 1), 1}}},
		"twice":                 {Old: []Run{{b(0, 0), 1}, {b(0, 0), 1}}},
		"old of no range":       {Old: []Run{{MakeBucket(9, 0, 0), 1}}},
		"a huge old run":        {Old: []Run{{b(0, 0), 1 << 31}}},
		"a put outside":         {Put: Put{Range: 1, Off: bigRange, Data: []byte{1}}},
		"a sum beyond an int64": {New: []Run{{b(2, 0), 1<<32 - 1}, {b(2, 0), 1<<32 - 1}}},
	} {
		var r Reply
		require.True(t, s.Serve(0, &m, &r), name)
		require.Equal(t, statusMalformed, r.Status, name)
		require.False(t, r.Stored, name)
		n.check()
	}
	var r Reply
	m := Move{ID: 5, New: []Run{{MakeBucket(9, 0, 0), 1}}, Old: []Run{{b(0, 0), 1}}}
	require.True(t, s.Serve(0, &m, &r))
	require.Equal(t, statusWithdrawn, r.Status)
	require.Zero(t, s.peers[0].held, "what was offered was taken")
	n.holders[0].Lost(1, errGone) // it knows nothing of that
	m = Move{New: []Run{{b(0, 3), 1}}, Put: Put{Range: 9, Data: []byte{1}}}
	require.True(t, s.Serve(0, &m, &r))
	require.Equal(t, statusWithdrawn, r.Status)
	require.False(t, r.Stored)
	n.check()
}

// TestBadReplies: an origin is not led astray.
func TestBadReplies(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 1})
	h := n.holders[0]
	for _, id := range []uint64{0, 7, 1 << 32, 1<<64 - 1} {
		require.ErrorIs(t, h.Reply(1, &Reply{ID: id}), ErrMove)
	}
	q := n.pin(0, 2)
	require.ErrorIs(t, h.Reply(1, &Reply{ID: 0, Keys: []uint64{1}}), ErrMove)
	require.Equal(t, Failed, q.State())
	require.ErrorIs(t, q.Err(), ErrMove)
	require.ErrorIs(t, h.Reply(1, &Reply{ID: 0, Keys: []uint64{1, 2}}), ErrMove, "answered already")
	require.Zero(t, h.Used(1))
}
