package selector

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// cluster is a machine with the constants of the superpipeline paper's cluster graphene; post, lookup, handler and gap
// are assumed.
func cluster() Machine {
	copying := func(bytes float64) float64 {
		switch { // through the levels of the cache
		case bytes <= 32<<10:
			return 12e9
		case bytes <= 4<<20:
			return 8e9
		default:
			return 5.2e9
		}
	}
	return Machine{
		Caps:  transport.Caps{MaxInline: 128, MaxMessage: 8 << 20, MaxSGE: 4},
		Model: superpipe.Model{Gap: 0.2e-6, Latency: 1e-6, Net: 2e9, Copy: copying, RegLatency: 68e-6, Reg: 20e9},
		Post:  0.2e-6, Lookup: 0.05e-6, Handler: 0.5e-6,
		Slot: 64 << 10, Payload: 4032, BulkSlot: 256 << 10, Fold: 3, Lease: true, Idle: true,
	}
}

// slowCopies is a machine whose network outruns its copies.
func slowCopies() Machine {
	m := cluster()
	m.Model.Net, m.Model.Copy = 12e9, func(float64) float64 { return 6e9 }
	return m
}

var update = flag.Bool("update", false, "write the golden files anew")

// table prints what is chosen at all sizes, as runs of equal choices.
func table(s *Selector) string {
	var b strings.Builder
	for i := range 2 * 2 * 2 * reuses * places {
		q := Query{
			Get: i&1 != 0, Waited: i&2 != 0, Covered: i&4 != 0,
			Uses: []uint8{1, 4, 255}[i/8%reuses], Moves: []uint8{0, 1, someMoves, 0}[i/8/reuses], Never: i/8/reuses == 3,
		}
		if q.Covered && q.Uses > 1 || q.Get && q.Waited {
			continue // nothing to register; a get is always waited for
		}
		fmt.Fprintf(&b, "%s:", describe(q))
		last := Protocols
		sizes := []int{s.limits[0] + 1, s.limits[1] + 1, s.limits[2] + 1}
		for c := range classes {
			sizes = append(sizes, classStart(c))
		}
		slices.Sort(sizes)
		for _, q.Bytes = range sizes {
			if p := Select(q, s); p != last {
				fmt.Fprintf(&b, " %d %v", q.Bytes, p)
				last = p
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func describe(q Query) string {
	pick := func(b bool, yes, no string) string {
		if b {
			return yes
		}
		return no
	}
	here := pick(q.Covered, "registered", fmt.Sprintf("unregistered, %d uses", q.Uses))
	there := pick(q.Never, "unregistered", []string{"held", "a move away", "", "", "moves away"}[q.Moves])
	return fmt.Sprintf("%s, %s, here %s, there %s", pick(q.Get, "get", "put"), pick(q.Waited, "waited", "not waited"), here, there)
}

func TestSelectGolden(t *testing.T) {
	for name, m := range map[string]Machine{"cluster": cluster(), "slowcopies": slowCopies()} {
		got := table(m.Selector(0))
		file := "testdata/select." + name + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	}
}

// TestSelectIsCheapest: at any size the choice costs no more than 30 % above the best, the width of a class; and it is
// one that can do it.
func TestSelectIsCheapest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range []Machine{cluster(), slowCopies()} {
		s := m.Selector(0)
		for range 3000 {
			q := Query{
				Bytes: int(math.Exp(rng.Float64() * math.Log(1<<31))), Get: rng.IntN(2) == 0, Waited: rng.IntN(2) == 0,
				Covered: rng.IntN(2) == 0, Uses: []uint8{0, 1, 4, 255}[rng.IntN(4)], Moves: []uint8{0, 0, 1, someMoves}[rng.IntN(4)], Never: rng.IntN(3) == 0,
				NoPipe: rng.IntN(4) == 0, NoTail: rng.IntN(4) == 0,
			}
			got, best, least := Select(q, s), None, math.Inf(1)
			for p := Inline; p < Protocols; p++ {
				if c := s.Cost(p, q); c < least {
					best, least = p, c
				}
			}
			if best == None {
				require.Equal(t, None, got, "%+v", q)
				continue
			}
			require.LessOrEqual(t, s.Cost(got, q), 1.3*least, "%+v: %v, not %v", q, got, best)
		}
	}
}

// TestSelectKeepsLimits looks at both sides of every limit.
func TestSelectKeepsLimits(t *testing.T) {
	m := cluster()
	s := m.Selector(0)
	q := Query{Waited: true}
	at := func(n int) Protocol {
		q.Bytes = n
		return Select(q, s)
	}
	require.Equal(t, Inline, at(m.Caps.MaxInline))
	require.NotEqual(t, Inline, at(m.Caps.MaxInline+1))
	q.Never = true
	for _, q.Get = range []bool{false, true} {
		require.Equal(t, Message, at(m.Payload))
		require.Equal(t, Lease, at(64<<10))
	}
	m.Lease = false
	s = m.Selector(0)
	require.Equal(t, Message, at(64<<10), "in many parts")
	m.Payload = 0
	s = m.Selector(0)
	require.Equal(t, None, at(64<<10), "nothing one-sided reaches unregistered memory")
}

// TestSelectForced: each protocol is taken wherever it can do it, and only where others cannot another is.
func TestSelectForced(t *testing.T) {
	m := cluster()
	free := m.Selector(0)
	for p := Inline; p < Protocols; p++ {
		s := m.Selector(1 << p)
		taken := 0
		for i := range entries {
			q, ok := s.sample(i)
			if !ok {
				continue
			}
			got := Select(q, s)
			if !math.IsInf(s.Cost(p, q), 1) {
				require.Equal(t, p, got, "%+v", q)
				taken++
			} else {
				require.Equal(t, Select(q, free), got, "%+v", q)
			}
		}
		require.Positive(t, taken, "%v", p)
	}
}

// TestSamplesFindTheirPlace: index is the inverse of sample, and classes are as they begin.
func TestSamplesFindTheirPlace(t *testing.T) {
	s := cluster().Selector(0)
	n := 0
	for i := range entries {
		if q, ok := s.sample(i); ok {
			require.EqualValues(t, i, s.index(&q), "%+v", q)
			n++
		}
	}
	require.Greater(t, n, 8*reuses*places*100)
	for c := range classes {
		require.Equal(t, c, class(classStart(c)))
		require.Equal(t, c, class(classStart(c+1)-1))
	}
	require.Equal(t, classes-1, class(math.MaxInt))
	for p := range Protocols {
		require.NotEmpty(t, p.String())
	}
}

func TestSelectAllocatesNothing(t *testing.T) {
	s := cluster().Selector(0)
	var p Protocol
	require.Zero(t, testing.AllocsPerRun(100, func() { p = Select(Query{Bytes: 70_000, Waited: true}, s) }))
	require.NotEqual(t, None, p)
}

func BenchmarkSelect(b *testing.B) {
	s := cluster().Selector(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n += 12345
		_ = Select(Query{Bytes: n & (1<<22 - 1), Waited: true}, s)
	}
}

// BenchmarkFirst asks for answers that nobody has asked for.
func BenchmarkFirst(b *testing.B) {
	s := cluster().Selector(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n = (n + 997) % entries; n < 997 {
			clear(s.answer[:])
		}
		_ = s.at(uint(n))
	}
}

// TestMoreThanTheModel: what was measured beside the model counts between its points and at their ends, for the direction and the
// protocol that it was measured of, and never makes a cost nothing.
func TestMoreThanTheModel(t *testing.T) {
	o := More{{Bytes: 100, Seconds: 1}, {Bytes: 300, Seconds: 3}}
	for bytes, want := range map[int]float64{0: 1, 100: 1, 200: 2, 300: 3, 1 << 20: 3} {
		require.InDelta(t, want, o.At(bytes), 1e-12, bytes)
	}
	require.Zero(t, More(nil).At(5))

	m := cluster()
	plain := m.Selector(0)
	m.Puts[Bounce], m.Gets[Pipe] = More{{Bytes: 64, Seconds: 1e-6}, {Bytes: 4096, Seconds: 5e-6}}, More{{Bytes: 64, Seconds: -1}}
	s := m.Selector(0)
	differ := func(p Protocol, q Query) float64 { return s.Cost(p, q) - plain.Cost(p, q) }
	require.InDelta(t, 5e-6, differ(Bounce, Query{Bytes: 32 << 10, Waited: true}), 1e-12)
	require.InDelta(t, 1e-6, differ(Bounce, Query{Bytes: 32 << 10}), 1e-12, "the caller does not wait for the NIC")
	require.Zero(t, differ(Bounce, Query{Bytes: 32 << 10, Get: true}))
	require.Zero(t, differ(Pipe, Query{Bytes: 1 << 20, Waited: true}))
	q := Query{Bytes: 1 << 20, Get: true, Waited: true}
	require.InDelta(t, plain.Cost(Pipe, q)/mostOff, s.Cost(Pipe, q), 1e-12)

	// What such transfers took is believed, though it is a tenth of what the model says; not of longer ones, nor of what nobody waits for.
	tenth := func(bytes int) struct {
		Bytes   int
		Seconds float64
	} {
		return More{{bytes, -0.9 * plain.Cost(Bounce, Query{Bytes: bytes, Waited: true})}}[0]
	}
	for _, end := range []More{nil, {{Onward, -1e6}}} {
		m.Puts[Bounce] = append(More{tenth(64), tenth(4096)}, end...)
		s = m.Selector(0)
		for _, bytes := range []int{64, 4096} {
			q := Query{Bytes: bytes, Waited: true}
			require.InEpsilon(t, plain.Cost(Bounce, q)/10, s.Cost(Bounce, q), 1e-9, "%d bytes, %d points", bytes, len(m.Puts[Bounce]))
		}
		q = Query{Bytes: 64}
		require.InEpsilon(t, plain.Cost(Bounce, q)/mostOff, s.Cost(Bounce, q), 1e-9)
	}
	q = Query{Bytes: 32 << 10, Waited: true}
	require.InEpsilon(t, plain.Cost(Bounce, q)/mostOff, s.Cost(Bounce, q), 1e-9, "it goes on far below")
	m.Puts[Bounce] = More{{64, -1}}
	q = Query{Bytes: 64, Waited: true}
	require.InEpsilon(t, plain.Cost(Bounce, q)/mostTried, m.Selector(0).Cost(Bounce, q), 1e-9)
}

// TestFirstUse: what memory takes more that is new to the NIC is part of every way that registers it, as far as that goes direct, shared by all uses that are
// foreseen; it is no part of copies, nor of what is known not to be new.
func TestFirstUse(t *testing.T) {
	m := cluster()
	old := m.Selector(0)
	m.First = 2e-9
	s := m.Selector(0)
	for _, get := range []bool{false, true} {
		q := Query{Bytes: 4 << 20, Get: get, Waited: true, Uses: 1}
		more := func(p Protocol, q Query) float64 { return s.Cost(p, q) - old.Cost(p, q) }
		require.InDelta(t, 2e-9*(4<<20), more(Register, q), 1e-12)
		require.InDelta(t, 2e-9*float64(4<<20-s.Head(4<<20)), more(Hybrid, q), 1e-12)
		for _, p := range []Protocol{Bounce, Pipe} {
			require.Zero(t, more(p, q))
		}
		require.Equal(t, Hybrid, Select(q, old))
		require.Equal(t, Pipe, Select(q, s))
		q.Moves = 1
		require.InDelta(t, 2e-9*(4<<20), more(Register, q), 1e-12)
		q.Moves, q.Uses = 0, 4
		require.InDelta(t, 2e-9*(1<<20), more(Register, q), 1e-12)
		q.Seen = true
		require.Zero(t, more(Register, q))
		require.Zero(t, more(Hybrid, q))
		q = Query{Bytes: 4 << 20, Get: get, Waited: true, Covered: true}
		require.Zero(t, more(Direct, q))
		require.Equal(t, Direct, Select(q, s))

		for _, c := range []struct {
			s    *Selector
			want Protocol
		}{{old, Register}, {s, Pipe}} {
			var l Learned
			p, _ := l.Choose(Query{Bytes: 4 << 20, Get: get, Waited: true, Uses: 255}, c.s, false)
			require.Equal(t, c.want, p)
		}
	}
}
