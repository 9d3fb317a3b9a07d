package predict

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/callsite"
)

// us is a microsecond; ms a millisecond.
const us, ms Nanos = 1000, 1_000_000

// worked is a cost model with which the conditions can be worked out by hand: registering a region of p pages takes
// 10 us + p us, giving it back 5 us + p us, a comparison 1 us, the hash 2 us.
func worked() Config {
	return Config{
		Costs: Costs{
			Register:   Line{PerPage: 1000, Fixed: 9000, Residual: 1000},
			Deregister: Line{PerPage: 1000, Fixed: 4500, Residual: 500},
			Hash:       2 * us, Compare: 1000,
		},
		MinSlack: 1 * us, Slack: 0.1,
	}
}

func TestEstimatesByHand(t *testing.T) {
	c := worked().Costs
	// t_deregister + t_insert + t_register + t_update, 10 pages, 3 items queued.
	require.Equal(t, (15+3+20+3)*us, c.GiveBack(10, 3))
	// t_hash + t_cache + t_deregister + t_insert + t_register + t_update, 7 entries cached, next DQ item of 20 pages.
	require.Equal(t, (2+7+25+3+20+3)*us, c.Delay(10, 20, 3, 7))
	require.Equal(t, c.Delay(10, 20, 3, 7), c.Pair(10, 20, 3, 7))
	c.Poll, c.Sharing = 50*us, 3*(4*ms+5*us)
	require.Equal(t, (15+3+20+3+50)*us+3*(4*ms+5*us), c.GiveBack(10, 3), "equation 2: n(t_slice + t_cs)")
	require.Equal(t, (2+7+25+3+20+3+50)*us+3*(4*ms+5*us), c.Delay(10, 20, 3, 7))
	require.Equal(t, (2+7+25+3+20+3)*us, c.Pair(10, 20, 3, 7), "the distance is work alone")
	require.Equal(t, 20*us-1*us, c.Register.Mean(10))
}

func TestTwoMissesThenHits(t *testing.T) {
	b := newBench(t, worked())
	b.cache.entries = 0
	b.call(1, 100, 10).until(1 * ms)
	require.Equal(t, []Act{GaveBack}, b.took(), "nothing is known: given back, nothing queued")
	require.Empty(t, b.p.rq)
	b.call(1, 100, 10)
	// At 1 ms the window differs from that of the first use (there was none before it), so this is another signature.
	b.until(2 * ms)
	require.Equal(t, []Act{GaveBack}, b.took())
	for i := range 5 {
		b.call(1, 100, 10).until(Nanos(3+i) * ms)
	}
	require.Equal(t, []bool{false, false, false, false, true, true, true}, b.hits,
		"windows of no, one and two calls before, then two misses of the signature that stays")
}

// TestASiteGoesToAnotherRegion (P5): the region that its use was predicted for is looked at, and given back.
func TestASiteGoesToAnotherRegion(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.call(1, 100, 10).until(1*ms).call(1, 100, 10).until(2*ms - 1)
	require.True(t, b.cache.held[100], "ahead of 2 ms")
	b.took()
	b.cache.held[200] = true // around the same buffer
	require.True(t, b.dq.Put(&Use{At: b.now, Region: 200, Buf: 100, Pages: 20, Stack: callsite.Stack{1}}))
	b.until(2 * ms)
	require.Equal(t, []Act{GaveBack, GaveBack}, b.took())
	require.Empty(t, b.cache.held)
	require.Equal(t, Never, b.cache.expect[100])
	require.Len(t, b.p.rq, 1)
}

// TestTheLeadByHand: the second use comes 1 ms after the first, of which the first and a call between them were kept 200 and 100 us
// by registrations on demand; so the third may come 300 us before it is due. It does, and ends that.
func TestTheLeadByHand(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.cache.entries = 0
	use := func(buf uint64, paid Nanos) {
		b.cache.demand(Region(buf))
		u := Use{At: b.now, Region: Region(buf), Buf: buf, Pages: 10, Stack: callsite.Stack{1}}
		u.Pay(paid)
		require.True(t, b.dq.Put(&u))
	}
	use(100, 200*us)
	b.until(500 * us)
	use(200, 100*us)
	b.until(1000 * us)
	use(100, 50*us)
	b.until(1001 * us)
	s := b.p.rq[0]
	require.Equal(t, [3]Nanos{1000 * us, 2000 * us, 1700 * us}, [3]Nanos{s.period, s.due, s.deadline})
	b.until(1700 * us)
	require.True(t, b.cache.held[100])
	use(100, 0)
	b.until(1701 * us)
	require.Equal(t, [3]Nanos{700 * us, 2400 * us, 2350 * us}, [3]Nanos{s.period, s.due, s.deadline}, "the second one's own 50 us")
	b.now = 2360 * us
	use(100, 0)
	b.until(2361 * us)
	require.Equal(t, [3]Nanos{660 * us, 3020 * us, 3020 * us}, [3]Nanos{s.period, s.due, s.deadline})
}

func TestDeadlinesByHand(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.cache.entries = 0
	b.call(1, 100, 10).until(1*ms).call(1, 100, 10)
	act, wake := b.p.Step(b.now)
	require.Equal(t, GaveBack, act)
	require.Equal(t, b.now, wake, "after a DQ item the RQ has its turn")
	act, wake = b.p.Step(b.now)
	require.Equal(t, Slept, act)
	// Due at 2 ms. t_p = hash 2 + cache 0 + deregister 15 + insert 1 + register 20 + update 1 = 39 us.
	require.Equal(t, 2*ms-39*us+1, wake)
	require.Equal(t, 2*ms, b.cache.expect[100])
	act, again := b.p.Step(wake - 1)
	require.Equal(t, Slept, act, "t_c + t_p <= t_d: it may wait")
	require.Equal(t, wake, again)
	require.False(t, b.cache.held[100])
	act, _ = b.p.Step(wake)
	require.Equal(t, Registered, act)
	require.True(t, b.cache.held[100])
	act, wake = b.p.Step(wake + 1)
	require.Equal(t, Slept, act)
	require.Equal(t, 2*ms+100*us, wake, "given up a tenth of the period after it is due")
	act, _ = b.p.Step(wake)
	require.Equal(t, Expired, act)
	require.False(t, b.cache.held[100], "a predicted use that never comes")
	require.EqualValues(t, 1, b.p.Stats().Mispredicted)
	require.Equal(t, Never, b.cache.expect[100])
}

func TestDeregistrationConditionAtItsEdge(t *testing.T) {
	// 10 pages, no item queued: 15 + 0 + 20 + 0 = 35 us. The period is 100 us; the use at 100 us is handled later.
	for late, want := range map[Nanos]Act{65 * us: GaveBack, 65*us + 1: Kept} {
		c := worked()
		c.Window = NoWindow
		b := newBench(t, c)
		b.call(1, 100, 10).until(100 * us)
		b.call(1, 100, 10)
		act, _ := b.p.Step(100*us + late)
		require.Equal(t, want, act, "handled %d ns after the use", late)
		require.Len(t, b.p.rq, 1, "its deadline is recorded in either case")
		require.Equal(t, 200*us, b.p.rq[0].deadline)
	}
}

func TestAlternation(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	for i := range 3 { // three sites, due at 1 ms + i, all items in the DQ
		b.call(uintptr(i), uint64(100+i), 1)
		b.now++
	}
	b.until(1 * ms)
	b.took()
	for i := range 3 {
		b.call(uintptr(i), uint64(100+i), 1)
		b.now++
	}
	b.until(1100 * us)
	require.Equal(t, []Act{GaveBack, GaveBack, GaveBack}, b.took())
	require.Len(t, b.p.rq, 3)
	for i := range 3 {
		b.call(uintptr(10+i), uint64(200+i), 1)
	}
	b.now = 2 * ms // everything is late
	for range 6 {
		act, _ := b.p.Step(b.now)
		b.acts = append(b.acts, act)
	}
	require.Equal(t, []Act{Registered, GaveBack, Registered, GaveBack, Registered, GaveBack}, b.took(),
		"one RQ item, one DQ item: not the one queue and then the other")
}

func TestTwoSitesOfARegion(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	// Site 1 comes every 1000 us, site 2 at 60 us after it; both use region 100.
	round := func(at Nanos) {
		b.until(at).call(1, 100, 10)
		b.until(at+60*us).call(2, 100, 10)
	}
	round(0)
	round(1 * ms)
	require.Equal(t, []bool{false, false, false, false}, b.hits)
	b.took()
	round(2 * ms)
	// At 2 ms site 1 hits. Its DQ item finds site 2 due at 2060 us: 15 + 1 + 20 + 1 = 37 us would do, so the region goes
	// back and is registered again for site 2.
	require.Equal(t, []bool{true, true}, b.hits[4:])
	b.until(2500 * us)
	require.Equal(t, []Act{GaveBack, Registered, GaveBack, Registered, GaveBack}, b.took())
	b.cache.held[100] = true
	at, waited := b.p.table.regions[100].earliest(nil)
	require.Equal(t, 3*ms, at, "the minimum over all its sites")
	require.False(t, waited)
}

func TestRegionIsKeptForItsNearestSite(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	round := func(at Nanos) { // site 2 only 30 us after site 1: no time to give back and register
		b.until(at).call(1, 100, 10)
		b.until(at+30*us).call(2, 100, 10)
	}
	round(0)
	round(1 * ms)
	b.until(1500 * us).took()
	round(2 * ms)
	b.until(2500 * us)
	require.Equal(t, []bool{true, true}, b.hits[4:])
	require.Equal(t, []Act{Registered, Found, Kept, GaveBack}, b.took(),
		"site 1's registration serves both: P4, and one give-back after the second")
}

func TestAwaitedUseForbidsGivingBack(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.call(1, 100, 10).until(1*ms).call(1, 100, 10).until(1990 * us)
	require.True(t, b.cache.held[100], "registered for the use at 2 ms")
	b.took()
	b.call(7, 100, 10).until(1995 * us) // another site, never seen: alone it would be given back
	require.Equal(t, []Act{Kept}, b.took(), "P4")
	b.until(2*ms).call(1, 100, 10).until(2100 * us)
	require.True(t, b.hits[len(b.hits)-1])
	require.Equal(t, []Act{GaveBack}, b.took())
}

func TestUseOnDemandCancelsTheStaleItem(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.call(1, 100, 10).until(1*ms).call(1, 100, 10).until(1500 * us)
	require.Equal(t, 2*ms, b.p.rq[0].deadline)
	b.call(1, 100, 10).until(1600 * us) // half a period early
	require.EqualValues(t, 1, b.p.Stats().Cancelled)
	require.Len(t, b.p.rq, 1)
	require.Equal(t, 2*ms, b.p.rq[0].deadline, "the period is 500 us now: due at 1500 + 500")
	require.Equal(t, 500*us, b.p.rq[0].period)
}

func TestOnlyDemandMakesPeriods(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	for i := range 20 {
		b.until(Nanos(i)*ms).call(1, 100, 10)
	}
	b.until(19500 * us)
	require.Equal(t, 1*ms, b.p.rq[0].period, "P1: registering early shortens nothing")
	s := b.p.Stats()
	require.EqualValues(t, 18, s.Predicted)
	require.EqualValues(t, 18, s.WithinHalf)
	require.EqualValues(t, 18, s.Registered)
}

func TestReferenceForbidsGivingBack(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.cache.refs[100] = 1 // a second transfer goes on
	b.call(1, 100, 10).until(10 * us)
	require.Equal(t, []Act{Kept}, b.took())
	b.cache.refs[100] = 0
	b.until(1*ms).call(1, 100, 10).until(2*ms - 10*us)
	b.took()
	b.cache.refs[100] = 1 // the predicted use goes on for long
	b.until(2300 * us)
	require.True(t, b.cache.held[100])
	require.Zero(t, b.p.Stats().Mispredicted)
	b.cache.refs[100] = 0
	b.until(3 * ms)
	require.False(t, b.cache.held[100], "P5")
	require.EqualValues(t, 1, b.p.Stats().Mispredicted)
}

func TestOverTheLimitTheLatestGoesFirst(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	for i, at := range []Nanos{0, 300 * us, 600 * us} { // regions 100, 101, 102 with periods of 1 ms
		b.until(at).call(uintptr(i), uint64(100+i), 1)
	}
	for i, at := range []Nanos{1000 * us, 1300 * us, 1600 * us} {
		b.until(at).call(uintptr(i), uint64(100+i), 1)
	}
	b.until(1700 * us)
	b.cache.held[101], b.cache.held[102] = true, true // left over
	b.cache.limit = 2
	b.took()
	b.until(1995 * us)
	require.Equal(t, []Act{Dropped, Registered}, b.took())
	require.Equal(t, map[Region]bool{100: true, 101: true}, b.cache.held, "102 is due last")
	b.cache.refs[101] = 1     // in use
	b.cache.held[7] = true    // not ours, and the cache could not drop it
	delete(b.cache.held, 100) // its use is over
	b.until(2650 * us)
	require.EqualValues(t, 1, b.p.Stats().Refused, "102: nothing later than it")
	require.False(t, b.cache.held[102])
}

func TestRefusalsAndMemoryThatIsGone(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.call(1, 100, 10).call(2, 200, 10).until(1*ms).call(1, 100, 10).call(2, 200, 10).until(1500 * us)
	b.took()
	b.cache.refuse = errors.New("ENOMEM")
	b.cache.gone[200] = true
	b.until(5 * ms)
	require.Equal(t, []Act{Refused, Refused}, b.took())
	require.Empty(t, b.p.table.regions)
	require.Equal(t, map[Region]Nanos{100: Never, 200: Never}, b.cache.expect, "nobody comes at a time that was told before")
	b.cache.refuse = nil
	b.call(1, 100, 10).until(6 * ms)
	require.Equal(t, GaveBack, b.took()[0], "it goes on")
}

func TestShareOfTheCoreEntersBothConditions(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	c.Costs.Sharing = 1200 * us
	b := newBench(t, c)
	b.call(1, 100, 10).until(1*ms).call(1, 100, 10).until(1200 * us)
	require.Equal(t, []Act{GaveBack, Kept, Found}, b.took(), "1200 us of other helpers do not fit into a period of 1 ms")
}

func TestRemoteBucketsByTheSamePredictor(t *testing.T) {
	c := worked()
	b := newBench(t, c)
	bucket := func(target, n uint64) uint64 { return target<<40 | n }
	for i := range 6 { // each rank in turn, its own bucket: a move takes as long as the model's Register
		for target := range uint64(3) {
			b.until(Nanos(i)*3*ms+Nanos(target)*ms).call(9, bucket(target, 17), 1)
		}
	}
	require.NotContains(t, b.hits[3*3:], false, "one call site, three targets: three signatures, all predicted")
}

// TestStampsAreConverted: uses carry stamps of another clock, which the helper's is made of.
func TestStampsAreConverted(t *testing.T) {
	c := Costs{Hash: 1000}
	plain, raw := newBench(t, Config{Costs: c}), newBench(t, Config{Costs: c, Clock: func(stamp int64) Nanos { return stamp/4 + 100 }})
	for i := range Nanos(6) {
		at := 100 + i*1e6
		plain.until(at).call(1, 64, 4)
		raw.until(at)
		u := Use{At: (at - 100) * 4, Region: 64, Buf: 64, Pages: 4, Stack: callsite.Stack{1}}
		raw.ctx.Note(&u, MakeCall(1, 64), 0)
		raw.hits = append(raw.hits, raw.cache.demand(u.Region))
		require.True(t, raw.dq.Put(&u))
		require.Equal(t, plain.took(), raw.took())
	}
	require.Equal(t, plain.hits, raw.hits)
	require.True(t, raw.hits[5])
	require.Equal(t, plain.p.Stats(), raw.p.Stats())
}

// TestDistanceByHand (P3): two items are never closer than an RQ and a DQ item cost. Two buffers are needed 10 us apart, so the first one has
// to be registered earlier: hash 2 + cache 0 + deregister 15 + insert 2 + register 20 + update 2 = 41 us before the second one.
func TestDistanceByHand(t *testing.T) {
	c := worked()
	c.Window = NoWindow
	b := newBench(t, c)
	b.cache.entries = 0
	for round := range Nanos(2) {
		b.until(round*ms).call(1, 100, 10)
		b.until(round*ms+10*us).call(1, 200, 10)
	}
	b.until(1*ms + 100*us)
	require.Len(t, b.p.rq, 2)
	require.Equal(t, [2]Nanos{2*ms + 10*us - 41*us, 2*ms + 10*us}, [2]Nanos{b.p.rq[0].deadline, b.p.rq[1].deadline})
	require.Equal(t, [2]Nanos{2 * ms, 2*ms + 10*us}, [2]Nanos{b.p.rq[0].due, b.p.rq[1].due})
}
