package firehose

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The costs of a NIC: 10 µs a registration, 0.05 ns a byte (200 ns a page), 5 µs round trip.
func nicCosts() Costs { return Costs{RoundTrip: 5000, Register: 10_000, RegisterByte: 0.05} }

func budgetOf(t *testing.T, ranks int, perPair, unit int64) Budget {
	b, err := Split(Limits{Ranks: ranks, Pinnable: perPair * int64(ranks-1), Peers: perPair * int64(ranks-1), Unit: unit, Page: 4096})
	require.NoError(t, err)
	return b
}

func TestOrderByUsage(t *testing.T) {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	for _, c := range []struct {
		name     string
		share    int64
		u        Usage
		from, to int64 // bytes of the bucket that is chosen
	}{
		{"a long put through a large share", 4 * gib, Usage{Stretch: gib, Places: 1, Reuse: 1}, 8 * mib, 32 * mib},
		{"scattered words, each once", 64 * mib, Usage{Stretch: 8, Places: 256, Reuse: 1}, 32 * kib, 32 * kib},
		{"scattered chunks of 256 KiB, each once", 64 * mib, Usage{Stretch: 256 * kib, Places: 256, Reuse: 1}, 128 * kib, 512 * kib},
		{"a few places again and again", 64 * mib, Usage{Stretch: 8, Places: 4, Reuse: 1000}, 32 * kib, 256 * kib},
		{"places that fit only into small buckets", 2 * mib, Usage{Stretch: 64 * kib, Places: 20, Reuse: 50}, 32 * kib, 32 * kib},
		{"the share is a single unit", 32 * kib, Usage{Stretch: gib, Places: 1, Reuse: 1}, 32 * kib, 32 * kib},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := budgetOf(t, 3, c.share, 32*kib)
			o, cost := b.Order(c.u, nicCosts(), 200)
			size := b.Unit() << o
			require.GreaterOrEqual(t, size, c.from)
			require.LessOrEqual(t, size, c.to)
			for other := range b.MaxOrder() + 1 {
				require.LessOrEqual(t, cost, b.orderCost(c.u, nicCosts(), 200, other))
			}
		})
	}
}

// TestOrderOfCutUses: 24 KiB at random places of a few that are held, in buckets of 32 KiB: three in four lie in two. By hand, of 1.75 buckets a
// miss takes 5 + 1.75*(10 + 1.64) = 25.37 us, a 200th of which is 127 ns; the second operation, 500 ns at three in four, takes 375. Of 256 KiB it is
// 1.094 buckets, 5 + 1.094*(10 + 13.1) = 30.27 us, so 151 ns and 47.
func TestOrderOfCutUses(t *testing.T) {
	const kib = 1 << 10
	b := budgetOf(t, 3, 64<<20, 32*kib)
	c := nicCosts()
	u := Usage{Stretch: 24 * kib, Places: 16, Reuse: 200, Bytes: 24 * kib, Cuts: 0.75}
	o, _ := b.Order(u, c, 200)
	require.Equal(t, uint8(1), o, "where operations cost nothing: 116 ns")
	c.Operation = 500
	for order, want := range []float64{502, 304, 217, 198, 238} {
		require.InDelta(t, want, b.orderCost(u, c, 200, uint8(order)), 1, "order %d", order)
	}
	o, _ = b.Order(u, c, 200)
	require.Equal(t, uint8(3), o)

	u.Cuts = 0 // they begin where buckets do
	o, _ = b.Order(u, c, 200)
	require.Equal(t, uint8(1), o)
	u = Usage{Stretch: 64 * kib, Places: 500, Reuse: 50, Bytes: 64 * kib, At: 1} // 31 MiB, uncut by buckets of 64 KiB
	require.Zero(t, u.cuts(b.Shift, 1)+u.cuts(b.Shift, 2))
	require.Equal(t, 1.0, u.cuts(b.Shift, 0), "but by those of 32")
	u.Stretch *= 4
	require.Equal(t, 4.0, u.cuts(b.Shift, 0), "each of the four")
	require.Equal(t, 1.5, Usage{Stretch: 8, Bytes: 8, Cuts: 0.75, At: 1}.cuts(b.Shift, 0), "twice as many ends")
}

// TestCutsAreSeen: a view tells uses that were cut, by itself or by their caller, from others.
func TestCutsAreSeen(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 16, v: 0})
	h, v := n.holders[0], n.view(0, 1)
	get := func(off, bytes uint64) {
		var q Request
		h.Acquire(v, &q, off, bytes)
		n.send(0)
		n.settle()
		require.Equal(t, Ready, q.State())
		h.Release(&q)
	}
	get(0, unit)
	get(unit/2, unit) // in two buckets
	v.Cut()           // the caller's: of one and a half, half and one
	get(unit/2, unit/2)
	get(unit, unit)
	u := v.m.verdict(0)
	require.EqualValues(t, 7*unit/2/3, u.Bytes)
	require.InDelta(t, 2./3, u.Cuts, 1e-9)
}

// TestNoSizeWinsBoth: each of two usages wants a size that costs the other one much; each gets its own.
func TestNoSizeWinsBoth(t *testing.T) {
	b := budgetOf(t, 17, 64<<20, 32<<10)
	long := Usage{Stretch: 1 << 30, Places: 1, Reuse: 1}
	short := Usage{Stretch: 16 << 10, Places: 500, Reuse: 20}
	worst := func(u Usage) (least float64, at func(uint8) float64) {
		_, least = b.Order(u, nicCosts(), 200)
		return least, func(o uint8) float64 { return b.orderCost(u, nicCosts(), 200, o) / least }
	}
	_, slowLong := worst(long)
	_, slowShort := worst(short)
	best := math.Inf(1)
	for o := range b.MaxOrder() + 1 {
		best = min(best, max(slowLong(o), slowShort(o)))
	}
	require.Greater(t, best, 1.3, "some single size is good for both: the example shows nothing")
}

// TestOrderFollowsUse: a view that is used by long stretches comes to large buckets, and back.
func TestOrderFollowsUse(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 1 << 14, v: 0, costs: nicCosts()})
	h, v := n.holders[0], n.view(0, 1)
	use := func(off, bytes uint64) {
		var q Request
		for bytes > 0 {
			k := h.Piece(v, off, bytes)
			h.Acquire(v, &q, off, k)
			n.send(0)
			for len(n.way) > 0 {
				n.deliver(0)
			}
			require.Equal(t, Ready, q.State(), "%v", q.Err())
			h.Release(&q)
			off, bytes = off+k, bytes-k
		}
	}
	use(0, 8) // the first use is small
	require.Zero(t, v.Order())
	for i := range uint64(256) {
		use(i<<20, 1<<20) // a long walk
	}
	n.check()
	long := v.Order()
	require.GreaterOrEqual(t, long, uint8(6), "256 KiB")
	for i := range uint64(1000) {
		use(i*7_654_321%(bigRange-8), 8)
	}
	n.check()
	require.Less(t, v.Order(), long)
	require.GreaterOrEqual(t, h.Stats().Orders, uint64(2))

	require.NoError(t, h.Fix(v, 3))
	for i := range uint64(256) {
		use(i<<20, 1<<20)
	}
	require.Equal(t, uint8(3), v.Order())
	require.ErrorIs(t, h.Fix(v, 20), ErrTooLarge)
	n.check()
	n.quiet()
}

// TestFirstPieceChooses: a first put that is long does not begin with small buckets.
func TestFirstPieceChooses(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 1 << 14, v: 0, costs: nicCosts()})
	n.holders[0].Piece(n.view(0, 1), 0, 64<<20)
	require.GreaterOrEqual(t, n.view(0, 1).Order(), uint8(8), "1 MiB")
}
