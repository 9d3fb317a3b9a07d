package cost

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFitFindsTheLine(t *testing.T) {
	l, err := Fit([]Sample{{1, 1200}, {10, 3000}, {100, 21000}})
	require.NoError(t, err)
	require.InDelta(t, 200, l.A, 1e-6)
	require.InDelta(t, 1000, l.B, 1e-6)
	require.InDelta(t, 0, l.Residual, 1e-6)
	require.Equal(t, 2000*time.Nanosecond, Line{A: 200, B: 1000}.Mean(5))
	require.Equal(t, 2300*time.Nanosecond, Line{A: 200, B: 1000, Residual: 300}.Upper(5))

	// By hand: weights 1, 1/4 at (1, 1), (3, 2): two samples lie on their line.
	l, err = Fit([]Sample{{1, 1}, {3, 2}})
	require.NoError(t, err)
	require.InDelta(t, 0.5, l.A, 1e-9)
	require.InDelta(t, 0.5, l.B, 1e-9)
}

func TestFitIsAnUpperBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		a, b := rng.Float64()*500, rng.Float64()*9000
		var s []Sample
		for n := 1; n <= 1024; n *= 2 {
			s = append(s, Sample{n, (a*float64(n) + b + 1) * (0.7 + 0.6*rng.Float64())})
		}
		l, err := Fit(s)
		require.NoError(t, err)
		require.NoError(t, l.check("line"))
		for _, x := range s {
			require.GreaterOrEqual(t, float64(l.Upper(x.N))+1e-6*x.Nanos, x.Nanos) // K2
			require.GreaterOrEqual(t, l.Upper(x.N), l.Mean(x.N))
		}
	}
}

func TestFitOfStrangeSamples(t *testing.T) {
	l, err := Fit([]Sample{{1, 100}, {100, 50}})
	require.NoError(t, err)
	require.Zero(t, l.A, "costs do not fall with pages")
	l, err = Fit([]Sample{{10, 1}, {20, 4}})
	require.NoError(t, err)
	require.Zero(t, l.B, "nor begin below zero")
	for _, s := range [][]Sample{nil, {{1, 2}}, {{1, 2}, {1, 3}}, {{1, 0}, {2, 1}}, {{-1, 1}, {2, 1}}, {{1, math.NaN()}, {2, 1}}, {{1, math.Inf(1)}, {2, 1}}} {
		_, err := Fit(s)
		require.Error(t, err, "%v", s)
	}
}

func TestCurve(t *testing.T) {
	c := Curve{{100, 10}, {200, 30}, {400, 100}}
	for bytes, want := range map[int]time.Duration{0: 0, 1: 10, 100: 10, 150: 20, 200: 30, 300: 65, 400: 100, 800: 200} {
		require.Equal(t, want, c.At(bytes), "%d bytes", bytes)
	}
	require.InDelta(t, 4e9, c.Rate(400), 1)
	require.Zero(t, Curve(nil).At(7))
	require.NoError(t, c.check("c"))
	require.Error(t, Curve{{100, 10}, {100, 30}}.check("c"))
	require.Error(t, Curve{{100, 10}, {200, 9}}.check("c"))
}

func TestNamedModels(t *testing.T) {
	for _, name := range Names() {
		m, err := Named(name)
		require.NoError(t, err)
		require.NoError(t, m.check())
		require.Contains(t, strings.Join(m.Notes, ";"), "assumed", "K3")
		var b bytes.Buffer
		require.NoError(t, m.Write(&b))
		again, err := Read(&b)
		require.NoError(t, err)
		require.Equal(t, m, again)
	}
	_, err := Named("wishful")
	require.ErrorIs(t, err, ErrModel)
	require.ErrorContains(t, err, "helper-threads, superpipeline")

	// What the paper's figure 2 says of 5 MB must come out again.
	m, err := Named("helper-threads")
	require.NoError(t, err)
	longer := m.OnDemand(5<<20).Seconds() / m.Transfer.At(5<<20).Seconds()
	require.InDelta(t, 0.2583, longer, 0.01)
	// And the superpipeline's: 68 us and 200 ns a page.
	m, err = Named("superpipeline")
	require.NoError(t, err)
	require.Equal(t, 68*time.Microsecond+51200*time.Nanosecond, m.Register.Mean(m.Pages(1<<20)))
}

func TestReadRefuses(t *testing.T) {
	good := `{"name":"x","page_bytes":4096,"register":{"ns_per_page":1,"ns_fixed":2,"ns_residual":0},
		"deregister":{"ns_per_page":1,"ns_fixed":2,"ns_residual":0},"ns_lookup":1,"ns_compare":1}`
	_, err := Read(strings.NewReader(good))
	require.NoError(t, err)
	for _, change := range [][2]string{
		{"4096", "4097"},
		{"4096", "0"},
		{`"ns_per_page":1`, `"ns_per_page":-1`},
		{`"ns_lookup":1`, `"ns_lookup":-1`},
		{`"ns_lookup":1`, `"ns_lookup":1,"ns_slice":-1`},
		{`"ns_lookup":1`, `"ns_lookup":1,"ns_swap":-1`},
		{`"ns_lookup":1`, `"ns_lookup":1,"ns_hash":-1`},
		{`"name":"x"`, `"nam":"x"`},
		{`{"name"`, `["name"`},
		{`"ns_per_page":1,"ns_fixed":2`, `"ns_per_page":0,"ns_fixed":0`},
		{`"ns_compare":1`, `"ns_compare":1,"copy":[{"n":5,"ns":3},{"n":5,"ns":4}]`},
	} {
		_, err := Read(strings.NewReader(strings.Replace(good, change[0], change[1], 1)))
		require.ErrorIs(t, err, ErrModel, "%v", change)
	}
}

// machine costs what it is told, in a time of its own.
type machine struct {
	now        time.Duration
	a, b       float64
	noise      *rand.Rand
	registered int
	flying     int
	rounds     int // registrations of one page
}

func (m *machine) spend(ns float64) {
	if m.noise != nil && m.noise.IntN(3) == 0 {
		ns *= 1 + 5*m.noise.Float64() // disturbances only make it longer
	}
	m.now += time.Duration(ns)
}

func (m *machine) probe() Probe {
	return Probe{
		Now: func() time.Duration { return m.now }, PageBytes: 4096, Pages: 200,
		Register:   func(n int) error { m.rounds += 1 / n; m.registered = n; m.spend(m.a*float64(n) + m.b); return nil },
		Deregister: func() error { m.spend((m.a*float64(m.registered) + m.b) / 4); return nil },
		Copy:       func(n int) { m.spend(40 + float64(n)/4) }, CopyBytes: 1 << 20,
		Post: func(n int) error { m.flying += n; m.spend(250 + 50*float64(n)); return nil }, Posts: 16,
		Drain:  func() error { m.spend(20_000); m.flying = 0; return nil },
		Lookup: func() { m.spend(45) }, Compare: func() { m.spend(3) }, Hash: func() { m.spend(230) },
	}
}

func TestMeasure(t *testing.T) {
	m := &machine{a: 150, b: 4000, noise: rand.New(rand.NewPCG(5, 5))}
	got, err := Measure(m.probe())
	require.NoError(t, err)
	require.InEpsilon(t, 150, got.Register.A, 0.05)
	require.InEpsilon(t, 4000, got.Register.B, 0.05)
	require.InEpsilon(t, 1000, got.Deregister.B, 0.05)
	require.InEpsilon(t, 300, got.Post, 0.05)
	require.InEpsilon(t, 50, got.PostLine.A, 0.05)
	require.Equal(t, 16, got.PostSamples[len(got.PostSamples)-1].N)
	require.Zero(t, m.flying, "what is posted is waited for")
	require.Greater(t, m.rounds, 10)
	require.InEpsilon(t, 45, got.Lookup, 0.9)
	require.InEpsilon(t, 230, got.Hash, 0.9)
	require.InEpsilon(t, 16424, float64(got.Copy.At(1<<16)), 0.2)
	require.Equal(t, 200, got.RegisterSamples[len(got.RegisterSamples)-1].N)
	require.Less(t, m.now, 16*time.Millisecond, "the time it was given, by its own clock")
	require.Equal(t, 16384, got.LeastRegistered(16<<10))
	slow := Model{Copy: Curve{{N: 256, Nanos: 104}, {N: 16384, Nanos: 4136}, {N: 65536, Nanos: 16424}}, Lookup: 5000}
	require.Equal(t, 32768, slow.LeastRegistered(0), "where a copy takes 40 + 8192 ns")

	p := m.probe()
	p.Register = func(int) error { return errors.New("no more") }
	_, err = Measure(p)
	require.ErrorContains(t, err, "registration of 1 pages: no more")
	_, err = Measure(Probe{})
	require.Error(t, err)
	still := m.probe()
	still.Now = func() time.Duration { return 0 }
	_, err = Measure(still)
	require.ErrorContains(t, err, "stands still")
}

// TestMeasureKeepsItsTime: on a machine that is slow, or is taken away for a while, there are fewer tries, and not more time.
func TestMeasureKeepsItsTime(t *testing.T) {
	slow := &machine{a: 1e4, b: 2e6}
	p := slow.probe()
	p.Post, p.Copy = nil, nil
	got, err := Measure(p)
	require.NoError(t, err)
	require.Equal(t, 1, slow.rounds, "each size once")
	require.InEpsilon(t, 2e6, got.Register.B, 0.01)
	require.Less(t, slow.now, 26*time.Millisecond, "which takes 20.6 ms, and deregistrations")

	for _, away := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 12 * time.Millisecond, 100 * time.Millisecond} {
		for _, when := range []int{0, 1, 7, 50, 200} { // registrations before it is taken away
			m := &machine{a: 150, b: 4000}
			p, register := m.probe(), 0
			try := p.Register
			p.Register = func(n int) error {
				if register++; register == when {
					m.now += away
				}
				return try(n)
			}
			got, err := Measure(p)
			require.NoError(t, err)
			require.Less(t, m.now, 16*time.Millisecond+away)
			require.InEpsilon(t, 50, got.PostLine.A, 0.05, "%v after %d", away, when)
			require.Len(t, got.Copy, 7)
			if away < 7*time.Millisecond {
				require.InEpsilon(t, 150, got.Register.A, 0.05, "%v after %d", away, when)
			}
		}
	}

	m := &machine{a: 150, b: 4000}
	p = m.probe()
	p.Post = func(int) error { return errors.New("queue is broken") }
	_, err = Measure(p)
	require.ErrorContains(t, err, "post of 1 operations: queue is broken")
}

func TestSpeeds(t *testing.T) {
	s := Speeds{{1, 10}, {2, 20}, {4, 0}}
	for x, want := range map[float64]float64{0: 10, 1: 10, 1.5: 15, 2: 20, 3: 10, 4: 0, 9: 0} {
		require.InDelta(t, want, s.At(x), 1e-9)
	}
}
