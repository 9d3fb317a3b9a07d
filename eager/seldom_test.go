package eager

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAskedSeldom: where one use in some is told, one told in vain costs so much less, and whatever reading far lines takes does not keep the buffers from
// being registered; memory that is registered goes past the slots where the copy costs more than that alone.
func TestAskedSeldom(t *testing.T) {
	cost := Cost{Copy: 283, Register: 11200, Lookup: 68, Ask: 20, ColdCopy: 38, ColdAsk: 160}
	require.False(t, cost.asked())
	require.True(t, cost.pays())
	seldom := cost.seldom(5)
	require.Equal(t, Cost{Copy: 283, Register: 11200, Lookup: 52, Ask: 4, ColdCopy: 38, ColdAsk: 32}, seldom)
	require.True(t, seldom.asked())
	require.Zero(t, Cost{Lookup: 3, Ask: 20}.seldom(5).Lookup)
	cost.Lookup, cost.Bytes = 303, 64
	require.False(t, cost.pays(), "a copy takes as long as what is done without the table")

	c := Costs{cost, {Bytes: 16 << 10, Copy: 283, Register: 11200, Lookup: 68, Ask: 20, ColdCopy: 38, ColdAsk: 160}}
	limits := Limits{Slot: 64 << 10}
	all, err := New(Config{Costs: c, Limits: limits})
	require.NoError(t, err)
	some, err := New(Config{Costs: c, Limits: limits, Seldom: 16 << 10, SeldomOf: 5})
	require.NoError(t, err)
	_, ok := all.Threshold(false, 16<<10)
	require.False(t, ok)
	uses, ok := some.Threshold(false, 16<<10)
	require.True(t, ok)
	require.Equal(t, 13, uses, "a quarter of 49")
	_, ok = some.Threshold(false, 16<<10-64)
	require.False(t, ok)
	for _, e := range []*Chooser{all, some} {
		require.True(t, e.Pays(true, 16<<10))
		require.False(t, e.Pays(false, 64))
		require.False(t, e.Pays(false, 64<<10+1), "no slot holds it")
	}
	for _, get := range []bool{false, true} {
		for use := range 3 { // each stands for five: 13 are between two and three times as many
			require.Equal(t, use >= 1, some.UsedOf(5, get, map[bool]uint64{false: 1 << 20, true: 2 << 20}[get], 16<<10), "%d", use)
		}
	}
	_, err = New(Config{Costs: c, Limits: limits, Seldom: 1})
	require.Error(t, err, "one in how many?")
	bounce, err := New(Config{Costs: c, Limits: limits, Mode: OnlyBounce})
	require.NoError(t, err)
	require.False(t, bounce.Pays(true, 16<<10))
}
