package eager

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// byHand: a copy of 4 KiB costs 1100 ns, the lookup 100, a registration 56 us: 56000/1000 = 56, so 57 uses repay it.
func byHand() Costs {
	return Costs{
		{Bytes: 64, Copy: 50, Register: 56000, Lookup: 100, Wire: 2000},
		{Bytes: 512, Copy: 300, Register: 56000, Lookup: 100, Wire: 2000},
		{Bytes: 4096, Copy: 1100, Register: 56000, Lookup: 100, Wire: 3000},
		{Bytes: 8192, Copy: 2100, Register: 60000, Lookup: 100, Wire: 4000},
	}
}

func TestBreakEvenByHand(t *testing.T) {
	for _, c := range []struct {
		cost Cost
		n    float64
		ok   bool
	}{
		{Cost{Copy: 1100, Lookup: 100, Register: 56000}, 57, true},
		{Cost{Copy: 1100, Lookup: 100, Register: 56500}, 57, true},
		{Cost{Copy: 300, Lookup: 100, Register: 56000}, 281, true},
		{Cost{Copy: 300, Lookup: 100}, 1, true},
		{Cost{Copy: 50, Lookup: 100, Register: 1}, math.Inf(1), false},
		{Cost{Copy: 100, Lookup: 100, Register: 1}, math.Inf(1), false},
		// The less of what is saved in and out of the caches counts.
		{Cost{Copy: 1100, Lookup: 100, Register: 56000, ColdCopy: 3000, ColdAsk: 200}, 57, true},
		{Cost{Copy: 90, Lookup: 100, Register: 1, ColdCopy: 3000, ColdAsk: 200}, math.Inf(1), false},
		{Cost{Copy: 1100, Lookup: 100, Register: 56000, ColdCopy: 300, ColdAsk: 1300}, math.Inf(1), false},
	} {
		n, ok := c.cost.BreakEven()
		require.Equal(t, c.ok, ok)
		require.InDelta(t, 0, min(n, 1e9)-min(c.n, 1e9), 1e-9, "%+v", c.cost)
		if ok {
			cost := func(uses float64) (bounce, bypass float64) {
				return uses * c.cost.Copy, uses*c.cost.Lookup + c.cost.Register
			}
			bounce, bypass := cost(n)
			require.Less(t, bypass, bounce, "n uses repay it")
			bounce, bypass = cost(n - 1)
			require.GreaterOrEqual(t, bypass, bounce, "fewer do not")
		}
	}
	// The paper's example: 60 uses at 4 KB, registered at 15 with 25 %.
	require.InDelta(t, 15, Speculate(60, 25), 0)
	require.InDelta(t, 30, Speculate(60, 50), 0)
	require.InDelta(t, 60, Speculate(60, 100), 0)
	require.InDelta(t, 2, Speculate(3, 25), 0, "never at the first use")
	require.InDelta(t, 1, Speculate(1, 25), 0, "but where that repays it")
}

func TestCostsBetweenPoints(t *testing.T) {
	c := byHand()
	require.InDelta(t, 1100, c.At(4096).Copy, 1e-9)
	require.InDelta(t, 1600, c.At(6144).Copy, 1e-9)
	require.InDelta(t, 58000, c.At(6144).Register, 1e-9)
	require.InDelta(t, 3100, c.At(12288).Copy, 1e-9, "the last line goes on")
	require.InDelta(t, 50, c.At(1).Copy, 1e-9, "below the first point")
	require.InDelta(t, 7, Costs{{Bytes: 100, Copy: 7}}.At(5000).Copy, 1e-9)
	for _, bad := range []Costs{nil, {{Bytes: 2}, {Bytes: 2}}, {{Bytes: 1, Copy: math.NaN()}}, {{Bytes: 1, Lookup: -1}}, {{Bytes: 1, Wire: math.Inf(1)}}} {
		_, err := New(Config{Costs: bad, Limits: Limits{Slot: 8192}})
		require.Error(t, err)
	}
}

// TestDecide is the table of decisions.
func TestDecide(t *testing.T) {
	l, cost := Limits{Inline: 128, Slot: 8192}, Cost{Copy: 1100, Lookup: 100, Wire: 3000}
	cheapWire := Cost{Copy: 1100, Lookup: 100, Wire: 900}
	for _, c := range []struct {
		name string
		mode Mode
		q    Query
		cost Cost
		want Choice
	}{
		{"small put", Auto, Query{Bytes: 128}, cost, Inline},
		{"small put, frequent", Auto, Query{Bytes: 8, Frequent: true, Waited: true}, cost, Inline},
		{"a get is never inline", Auto, Query{Get: true, Bytes: 8}, cost, Bounce},
		{"put", Auto, Query{Bytes: 129, Waited: true}, cost, Bounce},
		{"frequent and waited for", Auto, Query{Bytes: 4096, Frequent: true, Waited: true}, cost, Bypass},
		{"frequent, not waited for", Auto, Query{Bytes: 4096, Frequent: true}, cost, Bounce},
		{"the wait is shorter than the copy", Auto, Query{Bytes: 4096, Frequent: true}, cheapWire, Bypass},
		{"registered, the wait is shorter", Auto, Query{Bytes: 4096, Covered: true}, cheapWire, Bypass},
		{"frequent get", Auto, Query{Get: true, Bytes: 4096, Frequent: true}, cost, Bypass},
		{"registered get", Auto, Query{Get: true, Bytes: 200, Covered: true}, cost, Bypass},
		{"the lookup costs more", Auto, Query{Get: true, Bytes: 200, Frequent: true}, Cost{Copy: 90, Lookup: 100}, Bounce},
		{"no slot is so large", Auto, Query{Bytes: 8193}, cost, Bypass},
		{"forced inline", OnlyInline, Query{Bytes: 128}, cost, Inline},
		{"forced inline, too large", OnlyInline, Query{Bytes: 129, Frequent: true, Waited: true}, cost, Bounce},
		{"forced bounce", OnlyBounce, Query{Bytes: 8}, cost, Bounce},
		{"forced bounce, too large", OnlyBounce, Query{Bytes: 8193}, cost, Bypass},
		{"forced bypass", OnlyBypass, Query{Bytes: 8}, cost, Bypass},
	} {
		require.Equal(t, c.want, Decide(c.mode, c.q, l, c.cost), c.name)
	}
}

func newChooser(t testing.TB, c Config) *Chooser {
	if c.Costs == nil {
		c.Costs = byHand()
	}
	if c.Limits == (Limits{}) {
		c.Limits = Limits{Inline: 128, Slot: 8192}
	}
	e, err := New(c)
	require.NoError(t, err)
	return e
}

func TestChooserRegistersAtItsShare(t *testing.T) {
	for percent, want := range map[int]int{25: 15, 50: 29, 100: 57} {
		e := newChooser(t, Config{Percent: percent})
		n, ok := e.Threshold(true, 4096)
		require.True(t, ok)
		require.Equal(t, want, n)
		for use := 1; use < 100; use++ {
			choice := e.Get(0x1000, 4096, false)
			require.Equal(t, use >= want, choice == Bypass, "use %d, %d %%", use, percent)
		}
		require.Equal(t, Usage{Buffers: 1, Frequent: 1}, e.Stats().Usage)
	}
	e := newChooser(t, Config{})
	_, ok := e.Threshold(true, 64)
	require.False(t, ok, "the lookup costs more than the copy")
	for range 1000 {
		require.Equal(t, Bounce, e.Get(0x1000, 64, false))
	}
	require.Zero(t, e.Stats().Buffers, "not even counted")
	// The count of the address is compared with the threshold of the size at hand.
	small, _ := e.Threshold(true, 512)
	for range 20 {
		e.Get(0x2000, 4096, false)
	}
	require.Equal(t, 71, small)
	require.Equal(t, Bounce, e.Get(0x2000, 512, false))
	require.Equal(t, Bypass, e.Get(0x2000, 4096, false))
}

// TestAskedWhereItPays: puts and gets have costs of their own, and what would save less than asking costs is not asked about.
func TestAskedWhereItPays(t *testing.T) {
	puts, gets := byHand(), byHand()
	for i := range puts {
		puts[i].Lookup, puts[i].Ask = 1000, 90 // of 1100 bytes 100 are saved by 4 KiB, of 2100 1100 by 8 KiB
		gets[i].Lookup, gets[i].Ask = 1000, 110
	}
	e := newChooser(t, Config{Costs: puts, Gets: gets})
	put, ok := e.Least(false)
	require.True(t, ok)
	require.Equal(t, 4096, put)
	get, ok := e.Least(true)
	require.True(t, ok)
	require.Equal(t, 4096+64, get)
	for range 5000 {
		require.Equal(t, Bounce, e.Get(0x1000, 4096, false))
	}
	require.Zero(t, e.Stats().Buffers)
	uses, ok := e.Threshold(false, 4096)
	require.True(t, ok)
	for range uses - 1 {
		require.Equal(t, Bounce, e.Put(0x1000, 4096, 0, true, false))
	}
	require.Equal(t, Bypass, e.Put(0x1000, 4096, 0, true, false))
	gets[0].Lookup, gets[1].Lookup, gets[2].Lookup, gets[3].Lookup = 9000, 9000, 9000, 9000
	e = newChooser(t, Config{Costs: puts, Gets: gets})
	_, ok = e.Least(true)
	require.False(t, ok)
}

// TestAskedOutOfTheCold: what asking costs there has to be saved there too.
func TestAskedOutOfTheCold(t *testing.T) {
	for _, c := range []struct {
		copy, ask float64
		ok        bool
	}{{0, 0, true}, {0, 40, true}, {0, 50, false}, {500, 500, false}, {920, 500, true}} {
		costs := byHand()
		for i := range costs {
			costs[i].Lookup, costs[i].Ask, costs[i].ColdCopy, costs[i].ColdAsk = 1000, 20, c.copy, c.ask
			costs[i].Copy = min(costs[i].Copy, 1100)
		}
		_, ok := newChooser(t, Config{Costs: costs}).Least(false)
		// 100 are saved and 20 asked; cold 100 + copy - ask, and 20 + ask.
		require.Equal(t, c.ok, ok, "%+v", c)
	}
}

// TestSends: the payloads of messages have costs of their own, and count in the one table.
func TestSends(t *testing.T) {
	dear, cheap := byHand(), byHand()
	for i := range dear {
		dear[i].Lookup = 1e6
	}
	e := newChooser(t, Config{Costs: dear, Sends: cheap})
	_, ok := e.Least(false)
	require.False(t, ok)
	least, ok := e.LeastSent()
	require.True(t, ok)
	require.Equal(t, 192, least)
	for use := 1; use < 40; use++ {
		frequent := e.UsedSent(0x1000, 4096)
		require.Equal(t, use >= 15, frequent)
		require.Equal(t, frequent, e.SendOf(frequent, 4096, 7, true) == Bypass)
	}
	require.False(t, e.UsedSent(0x1000, 128), "it would go inline")
	require.Equal(t, Bounce, e.SendOf(true, 4096, 8, false), "nobody waits")
	e.Flushed()
	e.SendOf(true, 4096, 8, false)
	e.Flushed()
	require.Equal(t, Bypass, e.SendOf(true, 4096, 8, false), "a flush follows")
	require.Equal(t, Usage{Buffers: 1, Frequent: 1}, e.Stats().Usage)
	e = newChooser(t, Config{})
	least, _ = e.LeastSent()
	put, _ := e.Least(false)
	require.Equal(t, put, least, "without costs of their own those of puts")
}

// TestChooserLearnsFlushes: a put bypasses where a flush follows it, and only there.
func TestChooserLearnsFlushes(t *testing.T) {
	e := newChooser(t, Config{})
	for range 50 {
		e.Put(0x1000, 4096, 7, false, false)
		e.Flushed()
		require.Equal(t, Bounce, e.Put(0x1000, 4096, 8, false, false), "nobody waits for this one")
		e.Get(0x5000, 64, false)
	}
	require.Equal(t, Bypass, e.Put(0x1000, 4096, 7, false, false))
	require.Equal(t, Bypass, e.Put(0x1000, 4096, 9, true, false), "a handle")
	for range 4 { // the program changes its mind
		e.Put(0x1000, 4096, 7, false, false)
		e.Get(0x5000, 64, false)
	}
	require.Equal(t, Bounce, e.Put(0x1000, 4096, 7, false, false))
}

func TestModes(t *testing.T) {
	for m := Auto; m <= OnlyBypass; m++ {
		got, err := ParseMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := ParseMode("fast")
	require.ErrorContains(t, err, "bypass")
	m, err := ParseMode("")
	require.NoError(t, err)
	require.Equal(t, Auto, m)
	for _, c := range []Config{{Percent: 101}, {Limits: Limits{Slot: 0}}, {Mode: 9}, {Limits: Limits{Slot: 8, Inline: -1}}} {
		c.Costs = byHand()
		_, err := New(c)
		require.Error(t, err, "%+v", c)
	}
}

// TestTableAgainstMap uses buffers at random, in one table and in a map.
func TestTableAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, model := NewTable(), map[uint64]int{}
	frequent := map[uint64]bool{}
	addrs := make([]uint64, 3000)
	for i := range addrs {
		addrs[i] = 0xc000000000 + uint64(rng.IntN(1<<24))*8
	}
	chained := 0
	for range 200_000 {
		a := addrs[rng.IntN(len(addrs))]
		if _, known := model[a]; !known && !table.Growing() {
			require.False(t, table.Use(a, 1))
			continue
		}
		model[a]++
		threshold := uint32(1 + rng.IntN(100))
		want := model[a] >= int(threshold)
		require.Equal(t, want, table.Use(a, threshold))
		frequent[a] = frequent[a] || want
		chained = table.Usage().Chained
	}
	n := 0
	for _, f := range frequent {
		if f {
			n++
		}
	}
	require.Equal(t, len(model), table.Usage().Buffers)
	require.Equal(t, n, table.Usage().Frequent)
	require.Less(t, chained, 100)
	require.False(t, table.Use(0, 1))
	require.False(t, table.Use(1<<50, 1))
	require.False(t, table.Use(addrs[0], never))
}

func TestCountsStay(t *testing.T) {
	table := NewTable()
	for range 3 * mostUses {
		table.Use(8, never)
	}
	require.True(t, table.Use(8, mostUses))
	require.True(t, table.Use(8, 1))
	require.False(t, table.Use(8, never))
	require.Equal(t, Usage{Buffers: 1, Frequent: 1}, table.Usage())
}

// TestTableStopsAndResumes is the adaptation: a million buffers used once stop the table's growth near its first chain;
// when the known ones turn out to be frequent it grows again.
func TestTableStopsAndResumes(t *testing.T) {
	table := NewTable()
	addr := func(i int) uint64 { return 0x7f0000000000 + uint64(i)*4096 }
	for i := range 1_000_000 {
		require.False(t, table.Use(addr(i), 2))
	}
	u := table.Usage()
	require.Less(t, u.Buffers, 900_000, "it has stopped")
	require.Equal(t, 1, u.Chained)
	require.EqualValues(t, 1_000_000-u.Buffers, u.Refused)
	require.False(t, table.Growing())
	known := u.Buffers
	for i := 0; i*5 < known; i++ {
		require.True(t, table.Use(addr(i), 2), "known buffers go on counting")
	}
	require.True(t, table.Growing(), "20 %% are frequent")
	for i := range known {
		require.True(t, table.Use(addr(i), 2), "also those that it knew when it did not grow")
	}
	require.False(t, table.Use(addr(2_000_000), 2))
	require.Equal(t, known+1, table.Usage().Buffers)
}

// TestFirstChainOfRandomBuffers: with 2^20 buckets the first chain appears near 1300 buffers.
func TestFirstChainOfRandomBuffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sum := 0
	const rounds = 20
	for range rounds {
		table := NewTable()
		for table.Growing() {
			table.Use(rng.Uint64()>>17|1, never)
		}
		sum += table.Usage().Buffers
	}
	require.InDelta(t, 1283, float64(sum)/rounds, 500)
}

func TestMeasure(t *testing.T) {
	began := time.Now()
	nic := &registrar{}
	asked := map[bool]int{}
	c, gets, err := Measure(Measurement{
		Now: func() time.Duration { return time.Since(began) }, Registrar: nic, Largest: 10_000, Ask: func(get bool) { asked[get]++ },
		Past: func(get bool) (time.Duration, error) {
			if get {
				return -time.Hour, nil // they cost less, but no less than nothing
			}
			return 1000, nil
		},
		Longer: func(_ bool, bytes int) (time.Duration, error) { return time.Duration(-bytes), nil }, LongerFrom: 8192,
	})
	require.NoError(t, err)
	require.NoError(t, c.validate())
	require.NoError(t, gets.validate())
	require.Positive(t, asked[false])
	require.Equal(t, asked[false], asked[true])
	require.InDelta(t, 1000, c.At(4096).Lookup-c.At(4096).Ask, 1e-6)
	long := c.At(8192)
	require.InDelta(t, max(0, long.Ask+long.Copy-8192), long.Lookup, 1e-6, "what it saves was measured")
	long = c.At(10_000)
	require.InDelta(t, max(0, long.Ask+long.Copy-10_000), long.Lookup, 1e-6)
	require.Zero(t, gets.At(4096).Lookup)
	require.Positive(t, gets.At(4096).Ask)
	require.InDelta(t, c.At(4096).Copy, gets.At(4096).Copy, 1e-6)
	require.Equal(t, 64, c[0].Bytes)
	require.Equal(t, 10_000, c[len(c)-1].Bytes)
	require.Positive(t, nic.calls)
	require.Zero(t, nic.live)
	require.InDelta(t, unknownWire, c.At(4096).Wire, 1)
	_, err = New(Config{Costs: c, Gets: gets, Limits: Limits{Slot: 10_000}})
	require.NoError(t, err)
	_, _, err = Measure(Measurement{
		Now: func() time.Duration { return 0 }, Registrar: nic, Largest: 100, Past: func(bool) (time.Duration, error) { return 0, errors.ErrUnsupported },
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, _, err = Measure(Measurement{
		Now: func() time.Duration { return 0 }, Registrar: nic, Largest: 100, Longer: func(bool, int) (time.Duration, error) { return 0, errors.ErrUnsupported },
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	nic.err = errors.New("no")
	_, _, err = Measure(Measurement{Now: func() time.Duration { return 0 }, Registrar: nic, Largest: 100})
	require.ErrorIs(t, err, nic.err)
}

type registrar struct {
	calls, live int
	err         error
}

func (r *registrar) Register(mem.Range, transport.Access) (transport.Region, error) {
	r.calls++
	r.live++
	return transport.Region{}, r.err
}

func (r *registrar) Deregister(transport.Region) error {
	r.live--
	return nil
}

// TestChoosesAsDecided: what a chooser says is what Decide says of the same, for all sizes and modes.
func TestChoosesAsDecided(t *testing.T) {
	l := Limits{Inline: 128, Slot: 8192}
	for mode := Auto; mode <= OnlyBypass; mode++ {
		e := newChooser(t, Config{Mode: mode, Limits: l})
		for bytes := 8; bytes <= 9000; bytes += 56 {
			cost := Cost{}
			if bytes <= l.Slot {
				cost = e.sides[puts].costs[bytes>>classBits]
			}
			for bits := range 8 {
				q := Query{Bytes: bytes, Get: bits&1 != 0, Covered: bits&2 != 0, Frequent: bits&4 != 0, Waited: true}
				require.Equal(t, Decide(mode, q, l, cost), e.choose(puts, q), "%v %+v", mode, q)
			}
		}
	}
}

func TestChoosingAllocatesNothing(t *testing.T) {
	e := newChooser(t, Config{})
	addr := uint64(0xc000000000)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		addr += 4096
		e.Put(addr, 4096, addr>>14, true, false)
		e.Get(addr, 4096, false)
		e.Flushed()
	}))
}

// TestRefusedIsAsUsed: who asks without the lock first chooses and counts as who does not, whatever the table does meanwhile.
func TestRefusedIsAsUsed(t *testing.T) {
	plain, asked := newChooser(t, Config{Percent: 1}), newChooser(t, Config{Percent: 1})
	rng := rand.New(rand.NewPCG(7, 8))
	refused, resumed := 0, 0
	addrs := make([]uint64, 40_000)
	for i := range addrs {
		addrs[i] = rng.Uint64()>>17 | 1
		addr := addrs[i]
		if i > 10_000 && i < 20_000 { // known buffers, until growth resumes
			addr = addrs[rng.IntN(500)]
		}
		get, bytes := rng.IntN(2) == 0, 64<<rng.IntN(8)
		ask := func(e *Chooser) Choice {
			if get {
				return e.Get(addr, bytes, false)
			}
			return e.Put(addr, bytes, 7, true, false)
		}
		stopped := !asked.table.Growing()
		want, got := ask(plain), Bounce
		if asked.Refused(get, addr, bytes) {
			refused++
			asked.Other()
		} else {
			got = ask(asked)
		}
		require.Equal(t, want, got, "use %d", i)
		require.Equal(t, plain.Stats(), asked.Stats(), "use %d", i)
		if stopped && asked.table.Growing() {
			resumed++
		}
	}
	require.Greater(t, refused, 1000)
	require.Positive(t, resumed)
}

// TestFewAreTakenForKnown: where growth has stopped early hardly any use of a buffer that is not known touches the table.
func TestFewAreTakenForKnown(t *testing.T) {
	table := NewTable()
	rng := rand.New(rand.NewPCG(9, 10))
	passed, stopped := 0, 0
	for range 1_000_000 {
		addr := rng.Uint64()>>17 | 1
		if !table.Growing() {
			stopped++
			if !table.ignores(addr) {
				passed++
			}
		}
		table.Use(addr, never)
	}
	require.Greater(t, stopped, 900_000)
	require.Less(t, passed*100, stopped, "less than one in a hundred")
	require.False(t, table.ignores(1<<50), "no address: it says nothing")
}
