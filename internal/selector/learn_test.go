package selector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLearnedIsNoWorseThanTheBest: whatever the model says and however noisy what is noted, in the long run transfers cost little
// more than by the protocol that is really the cheapest.
func TestLearnedIsNoWorseThanTheBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := cluster()
	s := m.Selector(0)
	queries := []Query{
		{Bytes: 1 << 20, Waited: true, Uses: 1},
		{Bytes: 200_000, Uses: 1},
		{Bytes: 4 << 20, Get: true, Waited: true},
		{Bytes: 1 << 20, Waited: true, Covered: true},
		{Bytes: 300_000, Waited: true, Uses: 255},
	}
	for _, q := range queries {
		known := q.Covered || q.Uses > 1
		for round := range 20 {
			truth := map[Protocol]float64{}
			best := 1.0
			for _, p := range armsOf(known) {
				as := q
				as.Covered = p == Direct
				truth[p] = s.Cost(p, as) * (0.8 + 2*rng.Float64()) // what the model says, or up to 2.8 times that
				if p != None {
					best = min(best, truth[p])
				}
			}
			noise := func() float64 { // somebody else has the processor, at times for long
				if rng.IntN(4) == 0 {
					return 1 + 20*rng.Float64()
				}
				return 1 + 0.05*rng.Float64()
			}
			var l Learned
			total, n := 0.0, 0
			for i := range 4000 {
				as := q
				p, trial := l.Choose(as, s, true)
				if p == Register && known {
					q.Covered, p = true, Direct // from now on
				}
				l.Note(trial, truth[p]*noise())
				if i >= 2000 { // learned by then
					total, n = total+truth[p], n+1
				}
			}
			require.Less(t, total/float64(n), 1.1*best, "%+v, round %d: %v", q, round, truth)
		}
	}
}

// TestLearnedFollows: a machine that has changed, or a calibration that was wrong, is forgotten.
func TestLearnedFollows(t *testing.T) {
	s := cluster().Selector(0)
	q := Query{Bytes: 1 << 20, Waited: true, Uses: 1}
	var l Learned
	spend := func(n int, truth map[Protocol]float64) (last Protocol) {
		for range n {
			p, trial := l.Choose(q, s, true)
			l.Note(trial, truth[p])
		}
		p, _ := l.Choose(q, s, false)
		return p
	}
	require.Equal(t, Pipe, spend(100, map[Protocol]float64{Register: 9e-3, Bounce: 3e-3, Pipe: 1e-3, Hybrid: 2e-3}))
	require.Equal(t, Register, spend(9000, map[Protocol]float64{Register: 1.2e-3, Bounce: 4e-3, Pipe: 9e-3, Hybrid: 2e-3}))
}

// TestCopiesAreNotThoughtFaster: what is registered at both ends and waited for goes direct, however long that is estimated to take, until another way
// was seen to take less.
func TestCopiesAreNotThoughtFaster(t *testing.T) {
	m := cluster()
	m.Gets[Direct] = More{{1, 1}} // a second, measured in a bad moment
	m.Puts[Direct] = More{{1, 1}}
	s := m.Selector(0)
	for _, q := range []Query{{Bytes: 1 << 20, Get: true, Covered: true}, {Bytes: 1 << 20, Waited: true, Covered: true}} {
		require.NotEqual(t, Direct, Select(q, s))
		for _, faster := range []Protocol{Direct, Bounce, Pipe} {
			var l Learned
			p, _ := l.Choose(q, s, false)
			require.Equal(t, Direct, p)
			for range 400 {
				p, trial := l.Choose(q, s, true)
				took := 1e-3
				if p == faster {
					took /= 2
				}
				l.Note(trial, took)
			}
			p, _ = l.Choose(q, s, false)
			require.Equal(t, faster, p)
		}
	}
}

// TestCopiesAreClearlyFaster: what copies registered memory is chosen where it takes a twentieth less, and not for less than that.
func TestCopiesAreClearlyFaster(t *testing.T) {
	s := cluster().Selector(0)
	q := Query{Bytes: 64 << 10, Waited: true, Covered: true}
	for part, want := range map[float64]Protocol{0.97: Direct, 0.9: Bounce} {
		var l Learned
		for range 1000 {
			p, trial := l.Choose(q, s, true)
			took := 1e-4
			if p == Bounce {
				took *= part
			}
			l.Note(trial, took)
		}
		p, _ := l.Choose(q, s, false)
		require.Equal(t, want, p, "%v of it", part)
	}
}

// TestCircumstances: what was noted first, behind pauses that make all ways take three times what was estimated, does not lose to estimates.
func TestCircumstances(t *testing.T) {
	for _, c := range []struct {
		slow, more float64
		why        string
	}{{1.21, 1.1, "the root of the least quotient"}, {4, 4 / astray, "but for what the estimate may be wrong by"}, {90, slowest / astray, "not without an end"}} {
		noted := [arms]price{{seconds: 1.5 * c.slow, noted: 3, estimate: 1.5}, {seconds: 2 * c.slow, noted: 2, estimate: 1}, {seconds: 5, estimate: 5}, {seconds: math.Inf(1)}}
		want := noted
		want[2].seconds *= c.more
		inCircumstances(&noted)
		require.InDelta(t, want[2].seconds, noted[2].seconds, 1e-9, c.why)
		noted[2] = want[2]
		require.Equal(t, want, noted)
	}
	even := [arms]price{{seconds: 6, noted: 3, estimate: 1.5}, {seconds: 0.9, noted: 1, estimate: 1}, {seconds: 5, estimate: 5}}
	want := even
	inCircumstances(&even)
	require.Equal(t, want, even, "something took no more")
	none := [arms]price{{seconds: 6, estimate: 6}}
	want = none
	inCircumstances(&none)
	require.Equal(t, want, none)
}

// TestFirstBadMoment: that the first transfer by what is the cheapest was disturbed costs a few transfers by the second best, not thousands: many
// programs make no more of a kind.
func TestFirstBadMoment(t *testing.T) {
	s := cluster().Selector(0)
	for _, q := range []Query{{Bytes: 256 << 10, Waited: true, Uses: 1, NoTail: true}, {Bytes: 32 << 10, Uses: 1}, {Bytes: 1 << 20, Get: true, Waited: true, Covered: true}} {
		for _, run := range []int{1, ShortTrial} { // transfers of one choice
			var l Learned
			best := Select(q, s)
			wrong := 0
			for i := range 64 {
				p, trial := l.Choose(q, s, true)
				took := s.Cost(p, q)
				switch {
				case i == 0:
					require.Equal(t, best, p)
					took *= 50 // as was seen
				case p != best:
					wrong++
				}
				l.Note(trial, took)
				l.Made(trial, run-1)
			}
			require.Less(t, wrong, 16, "%+v, %d at once: %v is the cheapest", q, run, best)
		}
	}
}

// TestBadMoments: what is registered at both ends and waited for goes direct, if no more than a few of those that were noted took longer than what copies.
func TestBadMoments(t *testing.T) {
	s := cluster().Selector(0)
	for _, q := range []Query{{Bytes: 256 << 10, Get: true, Covered: true}, {Bytes: 256 << 10, Waited: true, Covered: true}} {
		var l Learned
		by := func(arm int) Trial { return Trial{place: int32(kindOf(&q, true)*arms+arm) + 1} }
		for range trials {
			l.Note(by(1), 1e-4)
		}
		for bad := range 2 * convincing {
			want := Direct
			if bad >= convincing {
				want = Bounce
			}
			p, _ := l.Choose(q, s, false)
			require.Equal(t, want, p, "%+v, %d bad moments", q, bad)
			l.Note(by(0), 1e-3)
		}
	}
}

// TestLasting: what puts take that nobody waits for is what is noted of them, so that no way seems cheap for what its flush waits for: where the NIC is a
// program no less than what a put takes that is waited for, but for its way there.
func TestLasting(t *testing.T) {
	m := cluster()
	for _, m.Caps.Busy = range []bool{false, true} {
		s := m.Selector(0)
		for _, p := range []Protocol{Bounce, Pipe, Register, Direct} {
			for n := 1 << 10; n <= 16<<20; n *= 4 {
				q := Query{Bytes: n, Uses: 1, Covered: p == Direct}
				w := q
				w.Waited = true
				least, most := s.Cost(p, q), s.Cost(p, w)
				if math.IsInf(least, 1) {
					continue
				}
				got := s.Lasting(p, q)
				require.GreaterOrEqual(t, got, least, "%v of %d", p, n)
				require.LessOrEqual(t, got, max(least, most), "%v of %d", p, n)
				if m.Caps.Busy || p == Register || p == Direct {
					require.GreaterOrEqual(t, got, most-m.Model.Latency, "%v of %d", p, n)
				}
				require.Equal(t, most, s.Lasting(p, w))
				q.Get = true
				require.Equal(t, s.Cost(p, q), s.Lasting(p, q))
			}
		}
	}
}

// TestPick: trials are rare, of what may be cheaper, never of what cannot be, and all together cheap.
func TestPick(t *testing.T) {
	inf := s0.Cost(Inline, Query{Get: true})
	others := func(first price) [arms]price {
		return [arms]price{first, {2.5, 9, 0, 0}, {90, 0, 0, 0}, {inf, 0, 0, 0}}
	}
	for _, c := range []struct {
		name string
		p    price
		n    uint32
		made float64 // beside n
		each float64
		want int
	}{
		{"the cheapest", price{3, 0, 0, 0}, 1, 0, 1, 1},
		{"what is hoped of", price{3, 0, 0, 0}, 2 * pause, 0, 1, 0},
		{"not each time", price{3, 0, 0, 0}, 2*pause + 1, 0, 1, 1},
		{"not what is far off", price{9, 0, 0, 0}, 2 * pause, 0, 1, 1},
		{"a second time not before there were as many as make up for it", price{6, 1, 0, 0}, 4 * pause, 0, 1, 1},
		{"but then", price{6, 1, 0, 0}, 6 * pause, 0, 1, 0},
		{"sooner if it is nearly as cheap", price{2.6, 2, 0, 0}, 2 * pause, 0, 1, 0},
		{"but after some time", price{9, 0, 0, 0}, 20 * doubtPause, 0, 1, 0},
		{"again, at times", price{3, trials, 0, 0}, 2 * againPause, 0, 1, 0},
		{"not soon", price{3, trials, 0, 0}, 2*againPause + pause, 0, 1, 1},
		{"not if that has cost enough", price{3, trials, 10, 0}, 5 * againPause, 0, 1, 1},
		{"but in the long run", price{3, trials, 10, 0}, 100 * againPause, 0, 1, 0},
		{"what is dear is tried late", price{25, trials, 0, 0}, againPause, 0, 1, 1},
		{"and tried", price{25, trials, 0, 0}, 100 * againPause, 0, 1, 0},
		{"a second time, since the first may have been dear", price{50, 1, 0, 0}, 100 * againPause, 0, 1, 0},
		{"not soon either", price{50, 1, 0, 0}, againPause, 0, 1, 1},
		{"a trial of many transfers is dear", price{3.3, 0, 0, 0}, 2 * pause, 0, ShortTrial, 1},
		{"but they are many", price{3.3, 0, 0, 0}, 2 * pause, 1000, ShortTrial, 0},
		{"not before anything is known", price{3, 0, 0, 0}, 0, 0, 1, 1},
	} {
		prices := others(c.p)
		require.Equal(t, c.want, pick(&prices, cheapest(&prices), c.n, float64(c.n)+c.made, c.each), c.name)
	}
	require.Equal(t, -1, cheapest(&[arms]price{{seconds: inf}, {seconds: inf}, {seconds: inf}, {seconds: inf}}), "nothing can")
}

// TestAgain: transfers of a kind that are waited for together travel alike, and no others.
func TestAgain(t *testing.T) {
	s := cluster().Selector(0)
	var l Learned
	q := Query{Bytes: 1 << 20, Covered: true, Waited: true}
	p, trial := l.Choose(q, s, true)
	got, ok := trial.Again(q)
	require.True(t, ok)
	require.Equal(t, p, got)
	for _, other := range []Query{
		{Bytes: 1 << 22, Covered: true, Waited: true},
		{Bytes: 1 << 20, Covered: true, Waited: true, Get: true},
		{Bytes: 1 << 20, Covered: true},
		{Bytes: 1 << 20, Waited: true},
		{Bytes: 1 << 20, Covered: true, Waited: true, Never: true},
		{Bytes: 1 << 20, Covered: true, Waited: true, Moves: 1},
	} {
		_, ok = trial.Again(other)
		require.False(t, ok, "%+v", other)
	}
	_, ok = Trial{}.Again(q)
	require.False(t, ok)
	require.Equal(t, Direct, p)
	p, ok = trial.Again(Query{Bytes: 1 << 20, Uses: often, Waited: true})
	require.True(t, ok)
	require.Equal(t, Register, p, "it is not registered yet, but will be used often")
	_, ok = trial.Again(Query{Bytes: 1 << 20, Uses: often - 1, Waited: true})
	require.False(t, ok)
}

// TestNotesBecomeRare: the costs of what has proved the cheapest are asked for at times only, those of trials always.
func TestNotesBecomeRare(t *testing.T) {
	s := cluster().Selector(0)
	var l Learned
	wanted, others := 0, 0
	for i := range 4096 {
		p, trial := l.Choose(Query{Bytes: 1 << 20, Covered: true, Waited: true}, s, true)
		if i < noteAll-1 {
			require.True(t, trial.Wanted())
		}
		if trial.Wanted() {
			wanted++
		}
		if p != Direct {
			require.True(t, trial.Wanted())
			others++
		}
		l.Note(trial, map[Protocol]float64{Direct: 1e-3, Bounce: 1.2e-3, Pipe: 1.3e-3}[p])
	}
	require.Positive(t, others)
	require.Less(t, wanted, 4096/noteEach+noteAll+others)
}

// TestNoHelperNoHybrid: without a core for its helper the hybrid is not chosen, nor tried.
func TestNoHelperNoHybrid(t *testing.T) {
	m := cluster()
	m.Idle = false
	s := m.Selector(0)
	var l Learned
	for n := 64; n <= 64<<20; n *= 2 {
		q := Query{Bytes: n, Waited: true, Uses: 1}
		require.NotEqual(t, Hybrid, Select(q, s), n)
		require.Zero(t, s.Head(n), "one that is forced is a superpipeline")
		require.InDelta(t, s.Cost(Pipe, q), s.Cost(Hybrid, q), 1e-15, n)
		for range 2 * doubtPause {
			p, trial := l.Choose(q, s, true)
			require.NotEqual(t, Hybrid, p, n)
			l.Note(trial, 1)
		}
	}
}

var s0 = cluster().Selector(0)

// TestLearnedKinds: what can be chosen can carry the transfer out, at any size; and choosing allocates nothing.
func TestLearnedKinds(t *testing.T) {
	s := cluster().Selector(0)
	var l Learned
	rng := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		q := Query{
			Bytes: rng.IntN(1 << (1 + rng.IntN(30))), Get: rng.IntN(2) == 0, Waited: rng.IntN(2) == 0, Covered: rng.IntN(2) == 0,
			Uses: []uint8{0, 1, 4, 255}[rng.IntN(4)], Never: rng.IntN(9) == 0, Moves: uint8(max(0, rng.IntN(18)-14)),
		}
		p, trial := l.Choose(q, s, true)
		if p != None {
			require.Less(t, s.Cost(p, q), 1e9, "%+v: %v", q, p)
		}
		l.Note(trial, 1e-3)
		l.Note(Trial{}, 1e-3)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { l.Note(second(l.Choose(Query{Bytes: 1 << 20, Waited: true}, s, true)), 1) }))
}

func second(_ Protocol, t Trial) Trial { return t }

func BenchmarkChoose(b *testing.B) {
	s := cluster().Selector(0)
	var l Learned
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n += 12345
		_, _ = l.Choose(Query{Bytes: 1<<20 + n&(1<<20-1), Waited: true}, s, true)
	}
}

// TestBarred: what cannot carry a query is neither selected nor tried for it, however cheap it has been for others of its kind; and a
// trial does not go on by it.
func TestBarred(t *testing.T) {
	m := cluster()
	m.Model.RegLatency, m.Model.Net = 20e-6, 3e9 // a hybrid seems the cheapest
	s := m.Selector(0)
	q := Query{Bytes: 4 << 20, Waited: true, Uses: 1}
	require.Equal(t, Hybrid, Select(q, s))
	for _, c := range []struct {
		name           string
		noPipe, noTail bool
		barred         []Protocol
	}{
		{"no hybrid", false, true, []Protocol{Hybrid}},
		{"no pipe", true, false, []Protocol{Pipe, Hybrid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Learned
			bars := q
			bars.NoPipe, bars.NoTail = c.noPipe, c.noTail
			for range 100 { // anything may carry these
				p, trial := l.Choose(q, s, true)
				cost := 1e-3
				if p == Pipe || p == Hybrid {
					cost = 1e-5
				}
				l.Note(trial, cost)
				_, again := trial.Again(bars)
				for _, no := range c.barred {
					require.False(t, again && p == no)
				}
			}
			for range 3000 {
				p, _ := l.Choose(bars, s, true)
				require.NotContains(t, c.barred, p)
			}
			for bars.Bytes = 1; bars.Bytes < 1<<30; bars.Bytes = bars.Bytes*5/4 + 1 {
				require.NotContains(t, c.barred, Select(bars, s))
			}
		})
	}
}
