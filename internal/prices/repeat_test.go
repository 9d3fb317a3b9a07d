package prices

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
)

// TestGoesOn: behind a put that was asked about others of its length go as it did, all but one in some; not behind one whose flush is still to come, and
// sizes that differ by a factor of two do not disturb each other.
func TestGoesOn(t *testing.T) {
	const bytes = 16 * kib
	var h Habits
	h.Begin(nil)
	require.Equal(t, selector.None, h.GoesOn(bytes))
	h.GoOn(selector.Direct, bytes)
	h.GoOn(selector.Bounce, 2*bytes)
	h.GoOn(selector.Bounce, 4*bytes)
	for range AskedOf - 1 {
		require.Equal(t, selector.Direct, h.GoesOn(bytes))
		require.Equal(t, selector.Bounce, h.GoesOn(2*bytes))
		require.Equal(t, selector.None, h.GoesOn(bytes+8), "another size")
		require.False(t, h.GoneOn(selector.Bounce, bytes), "another way")
		require.True(t, h.GoneOn(selector.Direct, bytes))
	}
	require.Equal(t, selector.None, h.GoesOn(bytes), "it is asked about")
	require.False(t, h.GoneOn(selector.Direct, bytes))
	require.Equal(t, selector.Bounce, h.GoesOn(2*bytes))

	h.FlushFollows(5, bytes)
	require.Equal(t, selector.None, h.GoesOn(2*bytes), "the last put has not been flushed")
	h.Flush(1)
	require.Equal(t, selector.Bounce, h.GoesOn(2*bytes))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		h.GoOn(selector.Direct, bytes)
		h.GoneOn(h.GoesOn(bytes), bytes)
	}))
}

// TestGoesOnAsAsked: what Frequent sends through slots goes on there for as many puts, whether they ask FlushFollows or not.
func TestGoesOnAsAsked(t *testing.T) {
	const bytes = 16 * kib
	all := make([]byte, 64*bytes)
	var h Habits
	h.Begin(chooserOf(t))
	for range 4 {
		h.FlushFollows(1, bytes)
		h.Flush(1)
	}
	follows, slotted, _ := h.FlushFollows(1, bytes)
	require.True(t, follows && !slotted)
	require.False(t, h.Frequent(1, mem.Of(all[:bytes])))
	h.Flush(1)
	for i := range AskedOf - 1 {
		if i%2 == 0 {
			require.True(t, h.GoneOn(h.GoesOn(bytes), bytes))
			continue
		}
		_, slotted, _ := h.FlushFollows(1, bytes)
		require.True(t, slotted)
		h.Flush(1)
	}
	require.Equal(t, selector.None, h.GoesOn(bytes))
	_, slotted, _ = h.FlushFollows(1, bytes)
	require.False(t, slotted)
}
