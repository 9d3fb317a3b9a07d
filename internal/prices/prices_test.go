package prices

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// TestEdge: the sizes that a table names are exactly those at which the choice changes.
func TestEdge(t *testing.T) {
	p := Published(testMachine())
	for _, q := range []selector.Query{{Uses: 1}, {Waited: true, Uses: 1}, {Get: true, Waited: true, Covered: true}} {
		last := selector.None
		for q.Bytes = 1; q.Bytes <= longestTold; q.Bytes = next(q.Bytes) {
			at := selector.Select(q, p.Selector)
			if last != selector.None && at != last {
				below := q
				below.Bytes = edge(q, p.Selector, last)
				require.LessOrEqual(t, below.Bytes, q.Bytes)
				require.NotEqual(t, last, selector.Select(below, p.Selector))
				below.Bytes--
				require.Equal(t, last, selector.Select(below, p.Selector))
			}
			last = at
		}
	}
}

// TestSureUnmeasured: before anything is measured, too, what is registered at both ends goes direct where somebody waits for it; of puts that nobody
// waits for, which a copy would end early, that is not sure.
func TestSureUnmeasured(t *testing.T) {
	p := Published(testMachine())
	for _, bytes := range []int{64 * kib, 1 << 20, 16 << 20} {
		require.True(t, p.Surely(Get, bytes), bytes)
		require.True(t, p.Surely(PutWaited, bytes), bytes)
	}
	require.False(t, p.Surely(Put, 64*kib))
}

// TestRows: a table has a line for each case, and says what carries the least and the largest transfer.
func TestRows(t *testing.T) {
	rows := Published(testMachine()).Rows()
	require.Len(t, rows, 7)
	seen := make(map[string]bool)
	for _, r := range rows {
		require.NotEmpty(t, r.Sizes)
		seen[r.Case] = true
	}
	require.Len(t, seen, len(rows))
	require.Contains(t, rows[1].Sizes, "inline below ")
}

func TestSizeText(t *testing.T) {
	for bytes, want := range map[int]string{
		1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1025: "1025 B", 64 << 10: "64 KiB", 1 << 20: "1 MiB", 3 << 19: "1536 KiB",
	} {
		require.Equal(t, want, sizeText(bytes))
	}
}

// TestEstimates: what is chosen costs least of what is as registered as it.
func TestEstimates(t *testing.T) {
	p := Published(testMachine())
	for _, bytes := range []int{8, 4 * kib, 64 * kib, 1 << 20} {
		all := p.Estimates(selector.Query{Bytes: bytes, Waited: true, Uses: 1})
		require.NotEmpty(t, all)
		chosen := 0
		for _, e := range all {
			require.Positive(t, e.Seconds)
			if e.Chosen && e.Protocol != selector.Direct {
				chosen++
			}
		}
		require.Equal(t, 1, chosen, "%d bytes", bytes)
	}
}

// TestBecause: a reason is told beside the same prices, and the old ones stay as they were.
func TestBecause(t *testing.T) {
	p := Published(testMachine())
	why := errors.New("no room")
	q := p.Because(why)
	require.ErrorIs(t, q.Why, why)
	require.NoError(t, p.Why)
	require.Same(t, p.Selector, q.Selector)
	require.Same(t, p.Learned(Far), q.Learned(Far))
	require.False(t, q.Measured)
}

// ticker is a clock that moves by what was added to it.
type ticker struct{ now time.Duration }

func (c *ticker) Now() time.Duration { return c.now }

// spend returns a function that takes the times of took, one after the other, and then the last.
func (c *ticker) spend(took ...time.Duration) func() error {
	k := 0
	return func() error {
		c.now += took[min(k, len(took)-1)]
		k++
		return nil
	}
}

// TestLeasts: of each way the quietest round counts, however slow the others were.
func TestLeasts(t *testing.T) {
	var c ticker
	slow := make([]time.Duration, 0, 2*smallOps+1)
	for range 2 * smallOps { // two rounds with somebody else on the core
		slow = append(slow, 50*time.Microsecond)
	}
	var least [2]time.Duration
	require.NoError(t, leasts(c.Now, least[:], c.spend(append(slow, 3*time.Microsecond)...), c.spend(5*time.Microsecond)))
	require.Equal(t, [2]time.Duration{3 * time.Microsecond, 5 * time.Microsecond}, least)

	// Rounds that are disturbed leave room for others, nearly as many as there would be without.
	c = ticker{}
	slow = slices.Repeat([]time.Duration{smallTime / 8}, (smallLeast-1)*smallOps)
	require.NoError(t, leasts(c.Now, least[:1], c.spend(append(slow, time.Microsecond)...)))
	require.Equal(t, time.Microsecond, least[0])
	require.Greater(t, c.now, (smallLeast-1)*smallOps*smallTime/8+smallTime/2)
	c = ticker{}
	require.NoError(t, leasts(c.Now, least[:1], c.spend(time.Microsecond)))
	require.Equal(t, smallTime, c.now)

	// What is slow is done a few rounds only.
	c = ticker{}
	require.NoError(t, leasts(c.Now, least[:1], c.spend(time.Second)))
	require.Equal(t, smallLeast*smallOps*time.Second, c.now)

	fails := errors.New("no")
	require.ErrorIs(t, leasts(c.Now, least[:], c.spend(1), func() error { return fails }), fails)
}

// TestPasses: each thing is tried in every pass, what is short often and for as long as the rest, and the median
// counts. What disturbs one pass spoils nothing, nor does a try that somebody else has made long end it.
func TestPasses(t *testing.T) {
	var c ticker
	var order []int
	attempts := func(makes ...func() error) (all []attempt) {
		for i, f := range makes {
			all = append(all, attempt{p: selector.Bounce, bytes: i + 1, make: func(k int) error {
				if len(order) == 0 || order[len(order)-1] != i {
					order = append(order, i)
				}
				return f()
			}})
		}
		return all
	}
	const slow = 3 * time.Second
	rests, rested := 0, time.Duration(0)
	rest := func(worked time.Duration) error {
		rests, rested = rests+1, rested+worked
		return c.spend(100 * worked)()
	}
	all := attempts(c.spend(50*time.Microsecond, 10*brisk.time, 10*time.Microsecond), c.spend(slow, 3*slow, 2*slow))
	require.NoError(t, brisk.passes(c.Now, rest, all, false))
	require.Equal(t, slices.Repeat([]int{0, 1}, tuneFewest), order)
	require.Equal(t, 2*tuneFewest, rests, "behind each")
	require.Equal(t, c.Now(), 101*rested, "of what it took, the rests before not counted")
	require.Len(t, all[1].took, tuneFewest, "what is slow is tried once in a pass, and not in more passes than must be")
	require.Greater(t, len(all[0].took), 2*int(brisk.time/(10*time.Microsecond))-1)
	require.Equal(t, []tried{{1, 10e-6}, {2, 2 * slow.Seconds()}}, of(all, selector.Bounce, false))
	require.Empty(t, of(all, selector.Bounce, true))
	require.Empty(t, of(all, selector.Pipe, false))

	var spent []time.Duration
	for i := range 31 { // each of 1 to 31 us once
		spent = append(spent, time.Duration(i*29%31+1)*time.Microsecond)
	}
	require.Equal(t, []tried{{0, 16e-6}}, of([]attempt{{p: selector.Pipe, took: spent}}, selector.Pipe, false), "the median")

	require.Equal(t, []tried{{0, 15e-6}}, of([]attempt{{p: selector.Pipe, took: spent, clock: time.Microsecond}}, selector.Pipe, false), "without the clock")
	warm, cold := attempt{p: selector.Pipe, bytes: 7, took: spent[:1]}, attempt{p: selector.Pipe, bytes: 7, half: true, took: spent[1:2]}
	half := (spent[0] + spent[1]).Seconds() / 2
	require.Equal(t, []tried{{7, half}}, of([]attempt{warm, cold}, selector.Pipe, false), "of what is in a cache and what is not, the mean")

	order = nil
	all = attempts(c.spend(1))
	require.NoError(t, brisk.passes(c.Now, rest, all, false))
	require.Len(t, all[0].took, tunePasses*tuneMost, "what takes nothing is not tried for ever")

	long := attempts(c.spend(tuneRunLong*brisk.long), c.spend(tuneRunLong*brisk.long-1))
	long[0].run, long[1].run = true, true
	require.NoError(t, brisk.passes(c.Now, rest, long, false))
	require.Len(t, long[0].took, 1, "puts before a wait that are slow")
	require.Len(t, long[1].took, tunePasses)

	fails := errors.New("no")
	require.ErrorIs(t, brisk.passes(c.Now, rest, attempts(func() error { return fails }), false), fails)
	require.ErrorIs(t, brisk.passes(c.Now, func(time.Duration) error { return fails }, attempts(c.spend(1)), false), fails, "a rest that does not end")
}

// TestStride: only where a NIC is a program that is slow are tries given time to settle.
func TestStride(t *testing.T) {
	require.Equal(t, ample, strideOn(transport.Caps{Busy: true}, slowNIC))
	require.Equal(t, brisk, strideOn(transport.Caps{Busy: true}, slowNIC/2))
	require.Equal(t, brisk, strideOn(transport.Caps{}, slowNIC))
}

// cutOff is a NIC that reaches nobody.
type cutOff struct {
	NIC
	err error
}

func (n cutOff) Connect(int) error { return n.err }

// TestUnreachable: where nothing can be measured nothing is made up.
func TestUnreachable(t *testing.T) {
	gone := errors.New("gone")
	p, err := Measure(context.Background(), Config{NIC: cutOff{err: gone}, Machine: testMachine()})
	require.ErrorIs(t, err, gone)
	require.Nil(t, p)
}

// TestPublished: the constants are those of the paper, whatever the machine is said to cost.
func TestPublished(t *testing.T) {
	m := testMachine()
	m.Model, m.Lookup = superpipe.Model{Net: 1}, 1
	got := Published(m).Selector.Machine()
	require.InDelta(t, 2e9, got.Model.Net, 1)
	require.InDelta(t, 1.2e-6, got.Model.Latency, 1e-12)
	require.InDelta(t, assumedLookup, got.Lookup, 1e-12)
	require.Equal(t, 64*kib, got.Slot)
}
