package prices

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/transport"
)

const kib = 1 << 10

// testMachine has all protocols, and no registrations worth trying for a put of 32 KiB.
func testMachine() selector.Machine {
	return selector.Machine{
		Caps: transport.Caps{MaxInline: 128, MaxMessage: 1 << 20}, Slot: 64 * kib, Slots: 32, Payload: 3 * kib, BulkSlot: 128 * kib, Fold: 3,
	}
}

// trialOf is a trial of a put of so many bytes, as the first of its kind.
func trialOf(t *testing.T, p *Prices, bytes int) selector.Trial {
	t.Helper()
	_, trial := p.Learned(Far).Choose(selector.Query{Bytes: bytes, Uses: 1}, p.Selector, true)
	require.True(t, trial.Wanted())
	return trial
}

// chooserOf is a chooser by some costs.
func chooserOf(t *testing.T) *eager.Chooser {
	t.Helper()
	c, err := eager.New(eager.Config{
		Limits: eager.Limits{Inline: 128, Slot: 64 * kib}, Percent: 100,
		Costs: eager.Costs{{Bytes: 64, Copy: 10, Register: 1e4, Lookup: 100, Wire: 1e6}, {Bytes: 8192, Copy: 1100, Register: 1e4, Lookup: 100, Wire: 1e6}},
	})
	require.NoError(t, err)
	return c
}

// TestRuns: what a run costs is told by its flush; one that began with others in flight tells nothing, nor does one a part of
// which was not timed.
func TestRuns(t *testing.T) {
	p := Published(testMachine())
	short, long := trialOf(t, p, 16*kib), trialOf(t, p, 512*kib)
	require.False(t, short.Alike(long))
	type put struct {
		trial selector.Trial
		rank  int
	}
	for _, c := range []struct {
		name   string
		puts   []put
		rank   int // that is flushed
		count  int // of puts in the run that ends
		wanted bool
	}{
		{"nothing", nil, 1, 0, false},
		{"one", []put{{short, 1}}, 1, 1, true},
		{"several", []put{{short, 1}, {short, 1}, {short, 1}}, 1, 3, true},
		{"another rank's flush", []put{{short, 1}}, 2, 0, false},
		{"another rank before", []put{{short, 2}, {short, 1}}, 1, 1, false},
		{"another kind before", []put{{long, 1}, {short, 1}, {short, 1}}, 1, 2, false},
		{"not all timed", []put{{short, 1}, {short.Quiet(), 1}, {short, 1}}, 1, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h Habits
			h.Put(p.Learned(Far), short, 1, time.Hour) // nobody looks yet
			h.Begin(chooserOf(t))
			for _, x := range c.puts {
				h.FlushFollows(0, 32<<10) // as whoever chose for it
				h.Put(p.Learned(Far), x.trial, x.rank, time.Second)
			}
			r := h.Flush(c.rank)
			require.Equal(t, c.count, r.puts)
			require.Equal(t, time.Duration(c.count)*time.Second, r.took)
			require.Equal(t, c.wanted, r.Wanted())
			again := h.Flush(c.rank)
			require.Zero(t, again)
		})
	}
}

// TestRunIsNoted: the price of a run with its flush is its puts'. A long run is noted without one, and one that is to be short ends by itself.
func TestRunIsNoted(t *testing.T) {
	const bytes = 128 * kib
	q := selector.Query{Bytes: bytes, Uses: 1}
	for _, end := range []string{"flush", "length", "shortness"} {
		p := Published(testMachine())
		first, trial := p.Learned(Far).Choose(q, p.Selector, true)
		for trial.Short() && end == "length" {
			first, trial = p.Learned(Far).Choose(q, p.Selector, true)
		}
		var h Habits
		h.Begin(chooserOf(t))
		for try := 0; ; try++ { // it is so dear that sooner or later the other ways seem cheaper
			require.Less(t, try, 100, end)
			switch end {
			case "flush":
				h.FlushFollows(0, 32<<10)
				h.Put(p.Learned(Far), trial, 1, time.Second)
				r := h.Flush(1)
				require.True(t, r.Wanted())
				r.Flushed(time.Second)
			case "length":
				for range longestRun {
					require.Zero(t, h.Put(p.Learned(Far), trial, 1, time.Second))
				}
				require.Zero(t, h.run)
			case "shortness":
				require.True(t, trial.Short())
				for range selector.ShortTrial - 1 {
					require.Zero(t, h.Put(p.Learned(Far), trial, 1, time.Second))
				}
				r := h.Put(p.Learned(Far), trial, 1, time.Second)
				require.True(t, r.Wanted())
				require.Equal(t, selector.ShortTrial, r.puts)
				require.Zero(t, h.run)
				r.Flushed(time.Second)
			}
			if now, _ := p.Learned(Far).Choose(q, p.Selector, false); now != first {
				break
			}
		}
	}
}

// TestAgain: within a run puts travel alike, and a registration is not told as the price of one put.
func TestAgain(t *testing.T) {
	p := Published(testMachine())
	q := selector.Query{Bytes: 128 * kib, Uses: 1}
	first, trial := p.Learned(Far).Choose(q, p.Selector, true)
	var h Habits
	h.Begin(chooserOf(t))
	h.Put(p.Learned(Far), trial, 1, time.Second)
	_, _, last := h.FlushFollows(0, 32<<10)
	same, t1, again := last.Again(p.Learned(Far), 1, q)
	require.True(t, again)
	require.Equal(t, first, same)
	require.True(t, t1.Alike(trial))
	_, _, again = last.Again(p.Learned(Far), 2, q)
	require.False(t, again, "to another rank")
	q.Bytes = 1 << 20
	_, _, again = last.Again(p.Learned(Far), 1, q)
	require.False(t, again, "of another kind")
	var none Run
	_, _, again = none.Again(p.Learned(Far), 0, q)
	require.False(t, again)
}

// TestHabitsBeforeCosts: while the costs are unknown nothing is predicted and nothing counted.
func TestHabitsBeforeCosts(t *testing.T) {
	var h Habits
	user := mem.Of(make([]byte, 8192))
	for range 100 {
		require.False(t, h.Bypasses(false, true, user, 0))
		require.False(t, h.Frequent(0, user))
		follows, _, r := h.FlushFollows(0, 32<<10)
		require.False(t, follows)
		require.Zero(t, r)
		h.Other()
		require.Zero(t, h.Flush(0))
	}
	_, ok := h.Stats()
	require.False(t, ok)

	h.Begin(chooserOf(t))
	past := 0
	for range 30 {
		if h.Bypasses(false, true, user, 0) {
			past++
		}
	}
	require.Positive(t, past)
	s, ok := h.Stats()
	require.True(t, ok)
	require.Equal(t, 1, s.Frequent)
}

// TestFlushFollowsWithoutCosts: large puts that are flushed at once are known by their call site also where nothing small is worth it, and
// those behind which other things come.
func TestFlushFollowsWithoutCosts(t *testing.T) {
	for _, c := range []*eager.Chooser{nil, chooserOf(t)} {
		var h Habits
		h.Begin(c)
		for i := range 10 {
			follows, _, _ := h.FlushFollows(0, 32<<10)
			require.Equal(t, i > 0, follows, "put %d", i)
			h.Flush(1)
		}
		for i := range 10 {
			follows, _, _ := h.FlushFollows(1, 32<<10)
			require.False(t, follows, "put %d", i)
			h.Other()
		}
	}
}

// BenchmarkBypasses is all that a put, or a get, pays for being asked about in vain: its buffer is known and not frequent.
func BenchmarkBypasses(b *testing.B) {
	const buffers = 1000
	c, err := eager.New(eager.Config{
		Limits: eager.Limits{Inline: 128, Slot: 64 * kib}, Percent: 100,
		Costs: eager.Costs{{Bytes: 64, Copy: 10, Register: 1e7, Lookup: 100, Wire: 1e6}, {Bytes: 8192, Copy: 1100, Register: 1e7, Lookup: 100, Wire: 1e6}},
	})
	require.NoError(b, err)
	for _, get := range []bool{false, true} {
		b.Run(fmt.Sprint("get=", get), func(b *testing.B) {
			var h Habits
			h.Begin(c)
			all, i := mem.Of(make([]uint64, buffers+512)), 0
			b.ReportAllocs()
			for b.Loop() {
				h.Bypasses(get, false, all.Slice(8*i, 4096), 0)
				if i++; i == buffers {
					i = 0
				}
			}
		})
	}
}

// TestRefusedWithoutTheLock: a buffer that the table does not add waits for nobody, and ends what a flush would be news of.
func TestRefusedWithoutTheLock(t *testing.T) {
	h, next := stopped(t)
	unknown := func() mem.Range { // some are taken for known: they share their bits with others
		for {
			if r := next(); h.chooser.Refused(true, r.Addr(), r.Bytes) && h.chooser.Refused(false, r.Addr(), r.Bytes) {
				return r
			}
		}
	}
	one, other := unknown(), unknown()
	before, _ := h.Stats()
	h.mu.Lock()
	done := make(chan bool, 1)
	go func() {
		past := h.Bypasses(true, true, one, 0)
		done <- past || h.Bypasses(false, true, other, 0)
	}()
	select {
	case past := <-done:
		require.False(t, past)
	case <-time.After(time.Minute):
		t.Error("it waits for the lock")
	}
	h.mu.Unlock()
	after, _ := h.Stats()
	require.Equal(t, before.Refused+2, after.Refused)
	require.Equal(t, before.Bounce+2, after.Bounce)

	h.FlushFollows(0, 32<<10)
	require.True(t, h.awaiting.Load())
	require.False(t, h.Bypasses(true, true, one, 0))
	require.False(t, h.awaiting.Load(), "the large put was not one that a flush followed")
}

// BenchmarkRefused is what a transfer pays for being asked about whose buffer is used once, where the table has stopped growing.
func BenchmarkRefused(b *testing.B) {
	for _, get := range []bool{false, true} {
		b.Run(fmt.Sprint("get=", get), func(b *testing.B) {
			h, next := stopped(b)
			b.ReportAllocs()
			for b.Loop() {
				if h.Bypasses(get, true, next(), 0) {
					b.Fatal("it was never used before")
				}
			}
		})
	}
}

// stopped returns the habits of a program whose buffers were used once, so that the table has stopped growing, and its next buffers.
func stopped(tb testing.TB) (h *Habits, next func() mem.Range) {
	c, err := eager.New(eager.Config{Limits: eager.Limits{Inline: 128, Slot: 64 * kib}, Costs: eager.Costs{
		{Bytes: 64, Copy: 10, Register: 1e5, Lookup: 5}, {Bytes: 8192, Copy: 1100, Register: 1e5, Lookup: 5},
	}})
	require.NoError(tb, err)
	h = new(Habits)
	h.Begin(c)
	const stride, known = 64, 1 << 20 // bytes from the beginning of which some buffers are known
	at, all := 0, mem.Of(make([]byte, 16<<20))
	next = func() mem.Range {
		if at += stride; at > all.Bytes-4096 {
			at = known
		}
		return all.Slice(at, 4096)
	}
	for {
		h.Bypasses(true, true, next(), 0)
		if s, _ := h.Stats(); s.Refused > 0 {
			return h, next
		}
		if at >= known {
			tb.Fatal("the table goes on growing")
		}
	}
}

// TestUnasked: puts from one call site, each with its flush, of buffers that are used once go through slots unasked but for one in some; one that is used
// again and again is found out all the same, after about as many uses.
func TestUnasked(t *testing.T) {
	const bytes = 16 * kib
	all := make([]byte, 4096*bytes)
	put := func(h *Habits, site uint64, user mem.Range) (asked, past bool) {
		follows, slotted, _ := h.FlushFollows(site, user.Bytes)
		if follows && !slotted {
			asked, past = true, h.Frequent(site, user)
		}
		h.Flush(1)
		return asked, past
	}
	var h Habits
	h.Begin(chooserOf(t))
	asked := 0
	for i := range 4096 {
		yes, past := put(&h, 1, mem.Of(all[i*bytes:][:bytes]))
		require.False(t, past)
		if yes {
			asked++
		}
	}
	require.InDelta(t, 4096/AskedOf, asked, 2)
	s, _ := h.Stats()
	require.Equal(t, asked, s.Buffers)
	yes, _ := put(&h, 1, mem.Of(all[:bytes-8]))
	require.True(t, yes, "another size")
	put(&h, 2, mem.Of(all[:bytes]))
	put(&h, 2, mem.Of(all[:bytes]))
	yes, _ = put(&h, 2, mem.Of(all[:bytes]))
	require.False(t, yes)
	yes, _ = put(&h, 1, mem.Of(all[:bytes]))
	require.True(t, yes, "another call site")

	threshold, ok := chooserOf(t).Threshold(false, bytes)
	require.True(t, ok)
	for _, buffers := range []int{1, 4, 6} {
		var h Habits
		h.Begin(chooserOf(t))
		uses, past := 0, false
		for ; !past; uses++ {
			require.Less(t, uses, buffers*(threshold+2*AskedOf), "%d buffers", buffers)
			_, past = put(&h, 1, mem.Of(all[uses%buffers*bytes:][:bytes]))
		}
		require.GreaterOrEqual(t, uses, buffers*min(threshold, AskedOf), "%d buffers", buffers)
	}
}

// TestPays: of what small transfers past the slots save nothing is known before somebody has measured; then it goes by their size.
func TestPays(t *testing.T) {
	var h Habits
	require.False(t, h.Pays(true, 4096))
	c := chooserOf(t)
	h.Begin(c)
	least, ok := c.Least(true)
	require.True(t, ok)
	require.False(t, h.Pays(true, least-64))
	require.True(t, h.Pays(true, least))
	h.Past()
	s, _ := h.Stats()
	require.EqualValues(t, 1, s.Bypass)
	require.Zero(t, testing.AllocsPerRun(10, func() { h.Pays(false, 4096) }))
}
