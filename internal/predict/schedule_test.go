package predict

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/callsite"
)

func TestInsertMovesDeadlinesEarlier(t *testing.T) {
	for name, c := range map[string]struct{ before, insert, after []Nanos }{
		"alone":                         {nil, []Nanos{100}, []Nanos{100}},
		"far from others":               {[]Nanos{10, 50}, []Nanos{30}, []Nanos{10, 30, 50}},
		"last":                          {[]Nanos{10}, []Nanos{20}, []Nanos{10, 20}},
		"last, pulls the one before":    {[]Nanos{10}, []Nanos{15}, []Nanos{5, 15}},
		"pulled by the next":            {[]Nanos{50}, []Nanos{45}, []Nanos{40, 50}},
		"pulled, and pulls in turn":     {[]Nanos{33, 50}, []Nanos{45}, []Nanos{30, 40, 50}},
		"the pull cascades":             {[]Nanos{20, 30, 40, 50}, []Nanos{45}, []Nanos{10, 20, 30, 40, 50}},
		"the cascade ends at a gap":     {[]Nanos{5, 30, 40, 50}, []Nanos{45}, []Nanos{5, 20, 30, 40, 50}},
		"equal deadlines, first come":   {[]Nanos{50}, []Nanos{50}, []Nanos{40, 50}},
		"into the past":                 {[]Nanos{1, 5}, []Nanos{6}, []Nanos{-14, -4, 6}},
		"pulled before its predecessor": {[]Nanos{44, 50}, []Nanos{45}, []Nanos{30, 40, 50}},
		"a whole phase with one end":    {nil, []Nanos{100, 100, 100, 100}, []Nanos{70, 80, 90, 100}},
		"exactly the distance":          {[]Nanos{10, 30}, []Nanos{20}, []Nanos{10, 20, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			var q schedule
			for _, d := range c.before {
				q = append(q, &site{deadline: d})
			}
			for _, d := range c.insert {
				q.insert(&site{deadline: d}, func(*site) Nanos { return 10 })
			}
			var got []Nanos
			for _, s := range q {
				got = append(got, s.deadline)
			}
			require.Equal(t, c.after, got)
		})
	}
}

// TestDistanceIsThatOfTheLaterItem: it is the later item's work that must fit before its deadline.
func TestDistanceIsThatOfTheLaterItem(t *testing.T) {
	var q schedule
	gap := func(s *site) Nanos { return Nanos(s.pages) }
	q.insert(&site{deadline: 100, pages: 40}, gap)
	q.insert(&site{deadline: 90, pages: 1}, gap)
	require.Equal(t, Nanos(60), q[0].deadline)
	q.insert(&site{deadline: 101, pages: 5}, gap)
	require.Equal(t, []Nanos{56, 96, 101}, []Nanos{q[0].deadline, q[1].deadline, q[2].deadline})
}

func TestInsertKeepsOrderAndDistanceAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var q schedule
		gap := func(s *site) Nanos { return Nanos(s.pages) }
		for range rng.IntN(60) {
			before := map[*site]Nanos{}
			for _, s := range q {
				before[s] = s.deadline
			}
			s := &site{deadline: rng.Int64N(1000), pages: uint32(rng.IntN(30))}
			s.due = s.deadline
			q.insert(s, gap)
			for i, s := range q {
				require.LessOrEqual(t, s.deadline, s.due)
				if d, ok := before[s]; ok {
					require.LessOrEqual(t, s.deadline, d, "P3")
				}
				if i > 0 {
					require.LessOrEqual(t, q[i-1].deadline, s.deadline-gap(s), "P3")
				}
			}
			if rng.IntN(4) == 0 {
				q.remove(q[rng.IntN(len(q))])
			}
		}
	}
}

func TestPeriodIsTheShortest(t *testing.T) {
	for name, c := range map[string]struct {
		age    int
		stamps []Nanos
		period Nanos
	}{
		"one use":                  {0, []Nanos{5}, 0},
		"two":                      {0, []Nanos{5, 25}, 20},
		"shortest":                 {0, []Nanos{0, 20, 35, 60}, 15},
		"out of order":             {0, []Nanos{0, 30, 20, 60}, 10},
		"twice the same stamp":     {0, []Nanos{0, 20, 20, 40}, 20},
		"an outlier stays":         {0, []Nanos{0, 1, 101, 201, 301, 401}, 1},
		"an outlier ages":          {3, []Nanos{0, 1, 101, 203, 302, 402}, 99},
		"not by fewer in a row":    {3, []Nanos{0, 1, 101, 201, 202, 302, 402}, 1},
		"not by what slack covers": {3, []Nanos{0, 10, 22, 34, 46, 58}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var s site
			for _, at := range c.stamps {
				s.observe(at, 0, c.age, 5)
			}
			require.Equal(t, c.period, s.period)
			require.Equal(t, slices.Max(c.stamps), s.last)
		})
	}
}

func TestTableForgetsTheOldest(t *testing.T) {
	c := worked()
	c.Window, c.Sites = NoWindow, 8
	b := newBench(t, c)
	for i := range 100 { // no buffer is used twice
		b.until(Nanos(i)*ms).call(1, uint64(1000+i), 1)
	}
	b.until(200 * ms)
	require.LessOrEqual(t, len(b.p.table.sites), 8)
	require.Empty(t, b.p.table.regions)
	for i := range 4 {
		b.call(2, 5, 1).until(Nanos(201+i) * ms)
	}
	require.True(t, b.hits[len(b.hits)-1], "it still learns")
}

// TestRandomPrograms drives random call sites, buffers, references, refusals and delays, and asserts the invariants after
// each step; the end of all predictions leaves nothing registered.
func TestRandomPrograms(t *testing.T) {
	acts := map[Act]int{}
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := worked()
		c.Window, c.Age, c.Sites = 1+rng.IntN(3), rng.IntN(4), 16+rng.IntN(100)
		if seed%8 == 7 {
			c.Periodicity = 8
		}
		b := newBench(t, c)
		b.cache.limit = 1 + rng.IntN(4)
		for i := range 400 {
			// A loop over a few buffers, now and then out of its pattern.
			b.until(b.now + rng.Int64N(300*us))
			buf := uint64(100 + i%5)
			switch rng.IntN(12) {
			case 0:
				buf = 200 + rng.Uint64N(50)
			case 1:
				b.cache.refs[Region(100+rng.IntN(5))] ^= 1
			case 2:
				b.cache.gone[Region(200+rng.IntN(50))] = true
			}
			u := Use{At: b.now, Region: Region(buf / 2), Buf: buf, Pages: uint32(1 + rng.IntN(20)), Stack: callsite.Stack{1}}
			b.ctx.Note(&u, MakeCall(1, buf), 0)
			b.cache.demand(u.Region)
			b.dq.Put(&u)
		}
		clear(b.cache.refs)
		b.until(b.now + 10_000*ms)
		for _, a := range b.took() {
			acts[a]++
		}
		require.Empty(t, b.p.rq)
		require.Empty(t, b.p.vigil)
		require.Empty(t, b.p.table.regions)
	}
	for a := GaveBack; a <= Expired; a++ {
		require.Positive(t, acts[a], "%v was never reached: %v", a, acts)
	}
}
