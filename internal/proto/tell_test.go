package proto

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/selector"
	"gopgas/transport/transporttest"
)

// requireAlike requires two ranks to know the same of what transfers cost.
func requireAlike(t *testing.T, a, b *device) {
	t.Helper()
	require.True(t, a.prices().Measured)
	require.NotSame(t, a.prices(), b.prices(), "each learns by itself")
	for _, q := range []selector.Query{{Waited: true, Uses: 1}, {Get: true, Waited: true, Uses: 1}, {Uses: 1}} {
		for q.Bytes = 64; q.Bytes <= 4<<20; q.Bytes *= 4 {
			require.Equal(t, a.prices().Estimates(q), b.prices().Estimates(q), "%+v", q)
		}
	}
	require.Equal(t, a.prices().Small, b.prices().Small)
}

// TestTold: the first rank of a node measures for whichever of them wants to know, once.
func TestTold(t *testing.T) {
	const n = 256 << 10
	tm := newTeamWith(t, 3, n, transporttest.FabricConfig{}, nil, func(*Config) {})
	tm.share()
	require.NoError(t, tm.e[1].nic().measureNow())
	first := tm.e[0].nic()
	require.True(t, first.gauge.over.Load(), "it was asked to")
	requireAlike(t, tm.e[1].nic(), first)
	require.EqualValues(t, peerWanted, tm.e[1].nic().gauge.peer.Load())

	src := filled(n)
	require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, src))
	require.NoError(t, tm.e[0].Flush(&tm.of[0][1]))
	require.Eventually(t, tm.e[0].Measured, time.Minute, time.Millisecond)
	require.NoError(t, tm.e[2].nic().measureNow())
	require.True(t, tm.e[2].Measured(), "transfers between ranks, too")
	requireAlike(t, tm.e[2].nic(), first)
}

// TestToldOfOthers: who is of another kin, or whose node's first rank is gone, measures by himself.
func TestToldOfOthers(t *testing.T) {
	const n = 64 << 10
	tm := newTeamWith(t, 3, n, transporttest.FabricConfig{}, nil, func(c *Config) {
		if c.Rank == 1 {
			c.Slots = 7
		}
	})
	tm.share()
	require.NotEqual(t, tm.e[0].nic().kin(), tm.e[1].nic().kin())
	require.Equal(t, tm.e[0].nic().kin(), tm.e[2].nic().kin())
	require.NoError(t, tm.e[1].nic().measureNow())
	require.True(t, tm.e[1].nic().prices().Measured)
	require.False(t, tm.e[0].nic().gauge.begun.Load())

	tm.fabric.Kill(0)
	require.NoError(t, tm.e[2].nic().measureNow())
	require.True(t, tm.e[2].nic().prices().Measured)
}

// TestTell: what no rank of this program asks is refused; what lies beyond the end has no bytes.
func TestTell(t *testing.T) {
	tm := newTeamWith(t, 2, 4096, transporttest.FabricConfig{}, nil, func(*Config) {})
	tm.share()
	n := tm.e[0].nic()
	var out [256]byte
	for _, c := range []struct {
		args   [4]uint64
		room   int
		status uint8
	}{
		{[4]uint64{n.kin(), 0, sheetHead}, len(out), statusMalformed},
		{[4]uint64{n.kin(), 0, 1 << 40}, sheetHead, statusMalformed},
		{[4]uint64{n.kin(), sheetMost + 1, 256}, len(out), statusMalformed},
		{[4]uint64{n.kin() + 2, 0, 256}, len(out), statusRefused},
	} {
		bytes, status := n.tell(am.Request{Args: c.args}, out[:c.room])
		require.Zero(t, bytes)
		require.Equal(t, c.status, status, "%v", c.args)
		require.False(t, n.gauge.begun.Load())
	}
	require.NoError(t, n.measureNow())
	bytes, status := n.tell(am.Request{Args: [4]uint64{n.kin(), sheetMost, 256}}, out[:])
	require.Equal(t, sheetHead, bytes)
	require.Equal(t, statusOK, status)
	bytes, _ = n.tell(am.Request{Args: [4]uint64{n.kin(), 0, 1 << 40}}, out[:])
	require.Equal(t, len(out), bytes)

	// A sheet that grows while it is read is read anew.
	second := tm.e[1].nic()
	which, bytes, piece, err := second.askSheet(0, 0)
	require.NoError(t, err)
	require.NotZero(t, which)
	require.NotEmpty(t, piece)
	require.Less(t, len(piece), bytes)
	other := *n.prices()
	other.Abroad = true
	n.gauge.prices.Store(&other)
	again, more, _, err := second.askSheet(0, len(piece))
	require.NoError(t, err)
	require.NotEqual(t, which, again)
	require.NotEqual(t, bytes, more)
	p, err := second.hear()
	require.NoError(t, err)
	require.True(t, p.Abroad)
}
