package hose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/regmgr"
)

// TestOwnerUsesItsOwn: what the owner itself uses of its exposed memory is a region of regmgr's cache, out of the budget that others'
// buckets come out of: together they never have more; what others do not use makes room for it, and it makes room for others.
func TestOwnerUsesItsOwn(t *testing.T) {
	p := newPair(t)
	h, own, nic := p.set[0], p.regs[1], p.nic[1]
	require.NoError(t, h.Fix(h.Unit())) // what misses take, which decides otherwise, is no part of this
	registered := func() (sum int) {
		sum, _ = nic.registered()
		return sum
	}
	use := func(off, bytes int) error {
		var hold regmgr.Hold
		err := own.Acquire(&hold, regmgr.Request{Mem: p.mem.Slice(off, bytes)})
		if err == nil {
			own.Release(&hold)
		}
		return err
	}
	buckets := func(from, to int) {
		for off := from; off < to; off += int(h.Unit()) {
			_, direct, _, err := h.Attach("put", 0, p.far, p.addr(off), 8, nil, false)
			require.NoError(t, err)
			require.True(t, direct)
			p.release(0)
			require.LessOrEqual(t, registered(), budget)
		}
	}
	share := int(h.Budget().Share << h.Budget().Shift)
	buckets(0, share+budget/8) // more than may be held: some are victims
	_, owner := p.set[1].Stats()
	require.Positive(t, owner.Victims)
	require.InDelta(t, share+budget/8, registered(), float64(h.Unit()), "the memory may begin within a bucket")

	before := own.Stats()
	require.NoError(t, use(0, budget/4), "the victims make room")
	require.LessOrEqual(t, registered(), budget)
	require.NoError(t, use(100, budget/8))
	after := own.Stats()
	require.EqualValues(t, 1, after.Registrations-before.Registrations, "the second use finds what the first one has registered")
	require.Positive(t, after.Shed-before.Shed)
	require.ErrorIs(t, use(0, budget/2), regmgr.ErrCopy, "the rest is promised to others")

	buckets(share, 2*share)
	require.LessOrEqual(t, registered(), budget)
	p.end(t)
}
