package prices

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
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

// TestGoesOnLonger: where each put that is asked about goes past the slots as the one before did, ever fewer are; not where another way or size was between
// them, where one is asked about before its turn, nor through slots.
func TestGoesOnLonger(t *testing.T) {
	const bytes = 16 * kib
	var h Habits
	h.Begin(nil)
	use := func(p selector.Protocol, bytes int) (n int) {
		h.GoOn(p, bytes)
		for n = 1; h.GoneOn(p, bytes); n++ {
			require.Less(t, n, 1000)
		}
		return n
	}
	for _, of := range []int{AskedOf, 13, 29, 61, 61} {
		require.Equal(t, of, use(selector.Direct, bytes))
	}
	for range 3 {
		require.Equal(t, AskedOf, use(selector.Bounce, bytes))
	}
	require.Equal(t, AskedOf, use(selector.Direct, bytes))
	require.Equal(t, AskedOf, use(selector.Direct, bytes+8))
	require.Equal(t, AskedOf, use(selector.Direct, bytes))
	h.GoOn(selector.Direct, bytes)
	require.True(t, h.GoneOn(selector.Direct, bytes))
	require.Equal(t, AskedOf, use(selector.Direct, bytes), "it was not used up")
	require.Equal(t, 13, use(selector.Direct, bytes))
}

// TestSlottedReturn: behind a buffer that was frequent some are asked about one by one, so that others that are used as often are found out in one more turn;
// where none is, most go on unasked again.
func TestSlottedReturn(t *testing.T) {
	const bytes = 16 * kib
	var s slotted
	s.next(bytes, false)
	for range AskedOf - 1 {
		require.True(t, s.again(bytes))
	}
	require.False(t, s.again(bytes))
	require.Equal(t, AskedOf, s.of(bytes))
	s.next(bytes, true)
	for range returning {
		require.False(t, s.again(bytes))
		require.Equal(t, AskedOf, s.of(bytes))
		s.next(bytes, false)
	}
	require.False(t, s.again(bytes))
	s.next(bytes, false)
	require.True(t, s.again(bytes))
	s.next(bytes, true)
	s.next(2*bytes, false)
	require.True(t, s.again(2*bytes), "another size")
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

// TestSlottedGoOn: of transfers of 16 KiB and more that somebody waits for, into buffers that are not frequent, one in some is asked about, and counts for
// those; another size is asked about at once, and puts do not count for gets.
func TestSlottedGoOn(t *testing.T) {
	const bytes, buffers = AskedFrom, 4
	costs := eager.Costs{{Bytes: 64, Copy: 1000, Register: 1e5, Lookup: 20, Ask: 10}, {Bytes: 64 * kib, Copy: 1000, Register: 1e5, Lookup: 20, Ask: 10}}
	all := mem.Of(make([]byte, buffers*bytes))
	for _, get := range []bool{false, true} {
		c, err := eager.New(eager.Config{Limits: eager.Limits{Inline: 128, Slot: 64 * kib}, Costs: costs, Seldom: AskedFrom, SeldomOf: AskedOf})
		require.NoError(t, err)
		uses, ok := c.Threshold(get, bytes)
		require.True(t, ok)
		require.Equal(t, 26, uses)
		var h Habits
		h.Begin(c)
		h.FlushFollows(1, 2*bytes)
		first, asked, before := 0, 0, uint64(0)
		for i := range 50 * buffers {
			past := h.Bypasses(get, true, all.Slice(i%buffers*bytes, bytes), 0)
			require.False(t, h.Awaiting() && !past, "it is no put that a flush is to follow")
			if s, _ := h.Stats(); s.Bounce+s.Bypass > before {
				asked, before = asked+1, s.Bounce+s.Bypass
			} else {
				require.False(t, past)
			}
			if past && first == 0 {
				first = i
			}
		}
		require.Greater(t, asked, 50*buffers/AskedOf)
		require.InDelta(t, 26*buffers, first, 2*AskedOf*buffers, "use: of each buffer one in some is told, and the last of these is rounded off")
		for i := range AskedOf { // the last one may have been frequent
			h.Bypasses(get, true, all.Slice(i%buffers*bytes, bytes-8), 0)
		}
		s, _ := h.Stats()
		h.Bypasses(!get, true, all.Slice(0, bytes-8), 0)
		other, _ := h.Stats()
		require.Equal(t, s.Bounce+s.Bypass+1, other.Bounce+other.Bypass)
	}
	var h Habits
	h.Begin(chooserOf(t))
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Bypasses(true, true, all.Slice(0, bytes), 0) }))
}

// TestPassing: behind some large transfers in a row that went through slots, of memory that is used once, all but one in some go there unasked; one whose memory
// returns ends that, one by another way, which may be a trial, half of it. A put that no flush has followed yet is no such, and sizes, and puts and gets, are apart.
func TestPassing(t *testing.T) {
	const bytes = 256 * kib
	var h Habits
	asked := func(get bool, n int, p selector.Protocol, returns bool) {
		for range n {
			require.False(t, h.Passes(get, bytes))
			h.Passed(get, bytes, p, returns)
		}
	}
	unasked := func(get bool) (n int) {
		for ; h.Passes(get, bytes); n++ {
			require.Less(t, n, 100)
		}
		return n
	}
	asked(true, 2*steady, selector.Bounce, false)
	require.Zero(t, unasked(true), "costs are not known")
	h.Begin(nil)
	for _, get := range []bool{false, true} {
		asked(get, steady, selector.Bounce, false)
		for range 3 {
			require.False(t, h.Passes(get, bytes+8))
			require.Equal(t, AskedOf-1, unasked(get))
			asked(get, 1, selector.Bounce, false)
		}
		require.Equal(t, AskedOf-1, unasked(get))
		asked(get, 1, selector.Pipe, false)
		asked(get, steady/2-1, selector.Bounce, false)
		require.Zero(t, unasked(get))
		asked(get, 1, selector.Bounce, false)
		require.Equal(t, AskedOf-1, unasked(get))
		asked(get, 1, selector.Bounce, true)
		asked(get, steady, selector.Bounce, false)
		require.True(t, h.Passes(get, bytes))
	}
	h.FlushFollows(1, bytes)
	require.False(t, h.Passes(false, bytes), "no flush has followed")
	require.True(t, h.Passes(true, bytes))
	h.Flush(1)
	require.True(t, h.Passes(false, bytes))
	h.Passed(false, 2*bytes, selector.Bounce, false)
	require.False(t, h.Passes(false, bytes), "another size has come between")
}
