package superpipe

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// sizes lists the chunks of a plan in the order of sending.
func sizes(p Plan) []int {
	out := make([]int, p.Chunks)
	for i := range out {
		_, out[i] = p.Piece(i)
	}
	return out
}

func TestPlansGolden(t *testing.T) {
	m := simple() // q = 2.5, g*B = 500 bytes
	for _, c := range []struct {
		name string
		plan Plan
		want []int
	}{
		{"1000 doubling to 31000", PlanWith(31000, 1000, 2, Rules{Slot: 1 << 20, Unit: 1}), []int{1000, 2000, 4000, 8000, 16000}},
		{"the slot caps the fifth", PlanWith(31000, 1000, 2, Rules{Slot: 8000, Unit: 1}), []int{1000, 2000, 4000, 8000, 8000, 8000}},
		{"n is rounded up, C_0 shrinks to fit", PlanWith(24000, 1000, 2, Rules{Slot: 1 << 20, Unit: 1}), []int{775, 1548, 3097, 6193, 12387}},
		{"from the first chunk on capped", PlanWith(32, 8, 2, Rules{Slot: 8, Unit: 1}), []int{8, 8, 8, 8}},
		{"one chunk", PlanWith(100, 1000, 2, Rules{Slot: 1 << 20, Unit: 1}), []int{100}},
		{"nothing", PlanWith(0, 1000, 2, Rules{Slot: 1 << 20}), []int{0}},
		{"copying no faster than the wire: flat", PlanWith(10000, 4000, 1, Rules{Slot: 1 << 20, Unit: 1}), []int{3334, 3334, 3332}},
		{"units of a block", PlanWith(100000, 12<<10, 1.5, Rules{Slot: 1 << 20, Unit: Payload}), []int{8176, 12264, 16352, 28616, 34592}},
		{"the paper's hardwired values", PlanWith(1<<18, defaultFirst, defaultRatio, Rules{Slot: 64 << 10}), []int{9984, 14912, 22336, 33536, 50304, 65536, 65536}},
		{"a rendezvous of 2 us, and not as steep as copies allow", PlanBehind(m, 65000, 2*us, Rules{Slot: 1 << 20, Unit: 1}), []int{9286, 18572, 37142}},
		{"shrinking", PlanGet(m, 100000, Rules{Slot: 1 << 20, Unit: 1}), nil},
	} {
		if c.want != nil {
			require.Equal(t, c.want, sizes(c.plan), c.name)
		}
	}
	put, get := sizes(PlanPut(m, 100000, Rules{Slot: 1 << 20})), sizes(PlanGet(m, 100000, Rules{Slot: 1 << 20}))
	for i := range put {
		require.Equal(t, put[len(put)-1-i], get[i], "a get is the mirror of a put")
	}
}

// models whose copies are faster than the wire, as fast, slower, and fall through cache levels.
func models() []*Model {
	var all []*Model
	for _, copying := range []float64{1e9, 2e9, 2.04e9, 2.5e9, 5.2e9, 60e9, 1e13} {
		m := simple()
		m.Copy = func(float64) float64 { return copying }
		all = append(all, m)
	}
	levels := simple()
	levels.Copy = func(length float64) float64 { return 2e9 + 10e9/(1+length/1e6) }
	slow := paper()
	slow.Net, slow.Gap, slow.Latency = 1e8, 5*us, 40*us
	return append(all, levels, slow, fresh())
}

// TestPlansHold checks what every plan promises: pieces that adjoin, cover the length and stay within the slot, and
// chunks that grow (shrink) by no more than the ratio.
func TestPlansHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		m := models()[rng.IntN(len(models()))]
		length := int(math.Exp(rng.Float64() * math.Log(1<<31)))
		r := Rules{Slot: 64 + rng.IntN(1<<(7+rng.IntN(14))), Unit: []int{0, 1, 64, Payload}[rng.IntN(4)], Least: rng.IntN(8192)}
		if length/r.Slot > 100 {
			length = length % (100 * r.Slot)
		}
		plans := map[string]Plan{
			"put": PlanPut(m, length, r), "get": PlanGet(m, length, r), "behind": PlanBehind(m, length, 4*us*rng.Float64(), r),
			"flat": PlanFlat(m, length, r), "with": PlanWith(length, float64(length/1000+rng.IntN(1<<16)), 0.5+2*rng.Float64(), r),
		}
		for name, p := range plans {
			full := r.withDefaults()
			at, before := 0, 0
			for i := range p.Chunks {
				off, n := p.Piece(i)
				require.Equal(t, at, off, "%s of %d bytes, %+v, chunk %d of %d", name, length, r, i, p.Chunks)
				require.LessOrEqual(t, n, full.Slot, "%s of %d bytes, %+v: chunk %d of %d", name, length, r, i, p.Chunks)
				require.True(t, n > 0 || length == 0, "%s of %d bytes, %+v: chunk %d of %d is empty", name, length, r, i, p.Chunks)
				if i > 0 && name == "get" {
					require.LessOrEqual(t, float64(before-full.Unit), p.Ratio*float64(n+full.Unit)+1, "%s of %d bytes: chunk %d", name, length, i)
				} else if i > 0 {
					require.LessOrEqual(t, float64(n-full.Unit), p.Ratio*float64(before+full.Unit)+1, "%s of %d bytes, %+v: chunk %d of %d", name, length, r, i, p.Chunks)
				}
				if i < p.Chunks-1 && name != "get" {
					require.Zero(t, n%full.Unit)
				}
				at, before = at+n, n
			}
			require.Equal(t, length, at, "%s, %+v", name, r)
		}
	}
}

// TestPutCostIsLeast compares C_0 of a put with all numbers of chunks around it.
func TestPutCostIsLeast(t *testing.T) {
	m := paper()
	r := Rules{Slot: 256 << 10, Unit: 1}
	for length := 1000; length < 1<<26; length = length*9/4 + 1 {
		p := PlanPut(m, length, r)
		cost := func(n int) float64 {
			first, _ := fit(length, n, p.Ratio, r.Slot)
			return first/m.Copy(float64(length)) + float64(n)*m.Gap
		}
		for n := max(fewest(length, r.Slot), p.Chunks-3); n < p.Chunks+4; n++ {
			if n > 0 {
				require.LessOrEqual(t, cost(p.Chunks), cost(n)*(1+1e-9), "%d bytes in %d chunks, not %d", length, p.Chunks, n)
			}
		}
	}
}

// TestGapsGrowAsLogThenLinear pins both regimes.
func TestGapsGrowAsLogThenLinear(t *testing.T) {
	m := paper()
	for length := 1 << 17; length <= 1<<30; length *= 2 {
		p := PlanBehind(m, length, 2*us, Rules{Slot: 1 << 40, Unit: 1})
		require.Equal(t, int(math.Ceil(gaps(float64(length), m.FirstChunk(0), p.Ratio))), p.Chunks)
	}
	const slot = 1 << 16
	p := PlanBehind(m, 1<<28, 2*us, Rules{Slot: slot})
	require.InDelta(t, (1<<28)/slot, p.Chunks, 3)
}

func TestPlanAllocatesNothing(t *testing.T) {
	m := paper()
	sum := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p := PlanPut(m, 1<<20, Rules{Slot: 1 << 17})
		for i := range p.Chunks {
			_, n := p.Piece(i)
			sum += n
		}
	}))
	require.Positive(t, sum)
}

func BenchmarkPlanPut(b *testing.B) {
	m := paper()
	b.ReportAllocs()
	for b.Loop() {
		p := PlanPut(m, 1<<20, Rules{Slot: 1 << 17})
		_, _ = p.Piece(p.Chunks - 1)
	}
}

// TestPlanTimeByHand: 1000 to 16000 bytes, at 5 GB/s into slots and 2 GB/s on the wire.
func TestPlanTimeByHand(t *testing.T) {
	m := simple()
	p := PlanWith(31000, 1000, 2, Rules{Slot: 1 << 20, Unit: 1})
	require.InEpsilon(t, (0.2+15.5+5*0.1+1)*us, p.Time(m, 0), 1e-9)
	require.InEpsilon(t, (15.5+5*0.1+1)*us, p.Time(m, 2*us), 1e-9, "the first copy hides")
	require.InEpsilon(t, 6.2*us, p.Busy(m, 3), 1e-9, "all copies, one after another")
	slow := simple()
	slow.Copy = func(float64) float64 { return 1e9 }
	p = PlanWith(30000, 10000, 1, Rules{Slot: 1 << 20, Unit: 1})
	require.InEpsilon(t, (30+5+3*0.1+1)*us, p.Time(slow, 0), 1e-9, "copying is the bottleneck, up to the last chunk's wire")
}

// TestShortBlockComesFirst: a chunk that does not fill its blocks begins with the short one, on a word, before its flag, and
// the wire carries payload and flags only.
func TestShortBlockComesFirst(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, Payload - 1, Payload, Payload + 1, 4 * Payload, 4*Block - 3} {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(i%251 + 1)
		}
		slot := mem.Of(make([]uint64, 8*Block/8))
		layOut(slot, mem.Of(payload))
		seal(slot, n, 3, 5)
		count, at := blocks(n), lead(n)
		require.Zero(t, at%8)
		require.Less(t, count*Block-at-n-8*count, 8, "no more than less than a word of nothing")
		var got []byte
		for b := range count {
			here, marks := landed(slot, b, 3, 5+b)
			require.True(t, here)
			require.Equal(t, b == count-1, marks&endFlag != 0)
			require.Equal(t, b == 0 && n%Payload != 0, marks&shortFlag != 0)
			part := slot.Slice(b*Block, Payload)
			if b == 0 {
				part = slot.Slice(at, first(n))
			}
			got = append(got, part.Data()...)
		}
		require.Equal(t, payload, got)
	}
}

// fresh is the simple machine with copies of fresh memory as a first use makes them: they begin late.
func fresh() *Model {
	m := simple()
	m.FreshStart, m.Fresh, m.Cut = 0.4*us, 10e9, 0.02*us
	return m
}

// TestFreshPlans: chunks of what nobody has touched for long begin small, since the copy of the first hides behind nothing, and so large that the copy and
// the posting of each of the others hide behind the chunk before. By hand: (0.4 + 0.1 + 1) us / (1 / 2e9 - 2 / 10e9) are 5000 bytes.
func TestFreshPlans(t *testing.T) {
	m := fresh()
	require.True(t, m.Hides())
	require.InDelta(t, 5000, m.least(steepest), 1e-6)
	require.InDelta(t, 0.02*us, m.Cutting(), 1e-12)
	for length := 1 << 10; length <= 16<<20; length += 1 + length/3 {
		p := PlanPut(m, length, Rules{Slot: 128 << 10})
		all := sizes(p)
		if p.Chunks == 1 {
			require.Less(t, length, 3*5000+64)
			continue
		}
		require.GreaterOrEqual(t, all[0]+64, 5000, "%d bytes: %v", length, all)
		require.Less(t, all[0], 3*5000, "%d bytes: %v", length, all)
		for i := range all[1:] {
			took := m.FreshStart + float64(all[i+1])/m.Fresh + m.Gap + m.Latency
			require.LessOrEqual(t, took, float64(all[i]+128)/m.Net, "%d bytes: chunk %d of %v does not hide", length, i+1, all)
		}
	}
}

// TestFreshDoesNotHide: where copies of fresh memory do not hide behind the wire plans are those of copies.
func TestFreshDoesNotHide(t *testing.T) {
	for _, c := range []struct {
		bandwidth, slowed float64
	}{{0, 0}, {3.9e9, 0}, {4.5e9, 0.5}} {
		m := fresh()
		m.Fresh, m.Slowed = c.bandwidth, c.slowed
		plain := simple()
		plain.Slowed = c.slowed
		require.False(t, m.Hides(), c)
		require.Zero(t, m.least(steepest))
		for _, n := range []int{5000, 64 << 10, 1 << 20} {
			require.Equal(t, PlanPut(plain, n, Rules{Slot: 128 << 10}), PlanPut(m, n, Rules{Slot: 128 << 10}))
			require.Equal(t, PlanBehind(plain, n, 2*us, Rules{Slot: 128 << 10}), PlanBehind(m, n, 2*us, Rules{Slot: 128 << 10}))
		}
	}
}

// TestFreshBehind: of fresh memory no more is copied behind a round trip than there is time for: in 2 us, of which it begins 0.4 late, 16 000 bytes at 10 GB/s,
// fewer than hot copies of 20 GB/s would be.
func TestFreshBehind(t *testing.T) {
	hot := func() *Model {
		m := fresh()
		m.Copy = func(float64) float64 { return 20e9 }
		return m
	}
	cold := hot()
	none := hot()
	none.Fresh = 0
	for _, c := range []struct {
		m    *Model
		want int
	}{{cold, 16_000}, {none, 40_000}} {
		const length = 1 << 30 // so long that rounding the number of chunks up is no matter
		p := PlanBehind(c.m, length, 2*us, Rules{Slot: 1 << 28, Unit: 1})
		require.LessOrEqual(t, p.First, float64(c.want))
		require.Greater(t, p.First, float64(c.want)/steepest-1)
	}
}

// TestPlansAreKept: whatever was asked for before, and of which model, a plan is the one that would be made.
func TestPlansAreKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var k plans
	all := models()
	rules := []Rules{{Slot: 64 << 10}, {Slot: 128 << 10}, {Slot: 64 << 10, Unit: 1}}
	for range 2000 {
		m, length, r := all[rng.IntN(2)*(len(all)-1)], 1<<(10+rng.IntN(3)), rules[rng.IntN(len(rules))]
		require.Equal(t, PlanPut(m, length, r), k.of(m, length, false, r))
		require.Equal(t, PlanGet(m, length, r), k.of(m, length, true, r))
	}
	m := fresh()
	require.Zero(t, testing.AllocsPerRun(100, func() { k.of(m, 1<<20, false, rules[0]) }))
}

// BenchmarkPlan is what a plan costs that is made, and one that was.
func BenchmarkPlan(b *testing.B) {
	m, r := fresh(), Rules{Slot: 128 << 10}
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			PlanPut(m, 100_000, r)
		}
	})
	var k plans
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			k.of(m, 100_000, false, r)
		}
	})
}
