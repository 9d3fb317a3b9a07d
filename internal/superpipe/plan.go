package superpipe

import "math"

// Defaults of a plan where nothing was measured: "hardwired" values that the paper found almost as good as optimal
// ones (section 4, discussion).
const (
	defaultFirst = 12 << 10
	defaultRatio = 1.5
)

// steepest is the largest ratio that is planned with. A copy that takes longer than was measured, out of memory or beside other
// work, is exposed with all of a chunk that has grown too fast; growing slower costs a gap or two more.
const steepest = 2

// flattest is the smallest ratio that grows; below it the geometric sum divides by almost nothing, and growing from
// chunk to chunk gains nothing either.
const flattest = 1 + 1.0/64

// Rules bound the chunks of a plan, in bytes of payload.
type Rules struct {
	Slot  int // the largest chunk: workspace / N, the NIC's longest message, the reach of a gather list
	Unit  int // chunks but the last are multiples of it; Slot is rounded down to one. 0: 64
	Least int // the smallest first chunk worth a message; 0: Unit
}

func (r Rules) withDefaults() Rules {
	if r.Unit <= 0 {
		r.Unit = 64
	}
	r.Slot = max(r.Unit, r.Slot/r.Unit*r.Unit)
	r.Least = max(r.Unit, min(r.Least, r.Slot))
	return r
}

// Plan cuts a transfer of Bytes into Chunks pieces. Sizes grow by Ratio from First until they reach Slot, the regime in
// which the gaps grow as log L; from then on they are Slot, and the gaps grow with L. A plan made for a get shrinks: it
// is the same sequence from its end. A Plan is a value; its methods are pure and allocate nothing.
type Plan struct {
	Bytes  int
	Chunks int
	First  float64 // C_0: of the growing end, so it is the last chunk of a get
	Ratio  float64 // q; 1: a flat pipeline

	rules   Rules
	growing int // chunks before those of Slot bytes
	shrink  bool
}

// PlanPut cuts a put to a target that is registered: there is no rendezvous to hide behind and nobody copies at the
// target, so T = C_0/B_copy + n*g + lambda + L/B_net, and C_0 is the one for which this is least, n being an integer. The source is
// taken for fresh: what is in a cache is copied sooner than planned, and waits for the wire.
func PlanPut(m *Model, length int, r Rules) Plan {
	r = r.withDefaults()
	q := ratio(m, length)
	if q == 1 {
		return flat(length, math.Sqrt(2)*m.BestChunk(float64(length)), r) // one exposed copy: equation 3 without its 2
	}
	copying, gap := m.Copy(float64(length)), m.Cutting()
	shortest := min(max(float64(r.Least), m.least(q)), float64(r.Slot), float64(length))
	hides := m.Hides()
	try := func(n int) (cost float64, fits bool) {
		first, _ := fit(length, n, q, r.Slot)
		return m.head(max(first, shortest), float64(length)) + float64(n)*gap, !hides || first >= shortest
	}
	// Where dT/dC_0 is zero, with the real n of equation 7, is near the best integer. The exposed copy falls ever slower
	// with n while the gaps' cost rises steadily, so there is one minimum.
	a := float64(length) * (q - 1)
	first := 2 * gap * copying / math.Log(q) / (1 + math.Sqrt(1+4*gap*copying/(a*math.Log(q))))
	fewest := max(1, fewest(length, r.Slot))
	best := max(fewest, count(length, min(max(first, shortest), float64(r.Slot)), q, r.Slot))
	least, fits := try(best)
	for best > fewest {
		cost, ok := try(best - 1)
		if cost > least && fits {
			break
		}
		best, least, fits = best-1, cost, ok
	}
	for best < length {
		cost, ok := try(best + 1)
		if cost >= least || !ok {
			break
		}
		best, least = best+1, cost
	}
	return grow(length, best, q, r)
}

// PlanBehind cuts a put whose first chunk is copied during a round trip of so many seconds: that of a rendezvous, or
// of a firehose that moves. C_0 = B_copy * round trip, or what is copied of fresh memory in that time.
func PlanBehind(m *Model, length int, roundTrip float64, r Rules) Plan {
	r = r.withDefaults()
	q := ratio(m, length)
	if q == 1 {
		return flat(length, m.BestChunk(float64(length)), r)
	}
	first := m.Copy(float64(length)) * roundTrip
	if m.Hides() {
		first = min(first, max(m.least(q), (roundTrip-m.FreshStart)*m.Fresh))
	}
	return PlanWith(length, first, q, r)
}

// PlanGet cuts a get, the mirror of PlanPut: the copy follows the transfer and the last chunk's is exposed, so chunks
// shrink, each at least a q-th of the one before.
func PlanGet(m *Model, length int, r Rules) Plan {
	p := PlanPut(m, length, r)
	p.shrink = true
	return p
}

// plans are the last few that were made, each for as long as others have not taken its place: programs transfer the same lengths again, and the
// wire waits while a plan is made. The zero plans are ready. Origin.mu guards them.
type plans struct {
	made [4]planned
	next int
}

// planned is a plan, and what it was made of.
type planned struct {
	m      *Model
	length int
	get    bool
	rules  Rules
	plan   Plan
}

// of is PlanPut or PlanGet.
func (k *plans) of(m *Model, length int, get bool, r Rules) Plan {
	for i := range k.made {
		if c := &k.made[i]; c.m == m && c.length == length && c.get == get && c.rules == r {
			return c.plan
		}
	}
	c := &k.made[k.next%len(k.made)]
	k.next++
	*c = planned{m, length, get, r, PlanPut(m, length, r)}
	c.plan.shrink = get
	return c.plan
}

// PlanFlat cuts into chunks of one size, C_opt (equation 3): the plain pipeline.
func PlanFlat(m *Model, length int, r Rules) Plan {
	return flat(length, m.BestChunk(float64(length)), r.withDefaults())
}

// PlanWith cuts with a given first chunk and ratio, such as the defaults. The number of chunks is that of equation 7
// rounded up, in both regimes; the first chunk is then made as small as it can be for that number.
func PlanWith(length int, first, q float64, r Rules) Plan {
	r = r.withDefaults()
	first = min(max(first, float64(r.Least)), float64(r.Slot))
	if q < flattest {
		return flat(length, first, r)
	}
	return grow(length, max(1, count(length, first, q, r.Slot)), q, r)
}

// count is equation 7 rounded up where no chunk reaches the slot, and beyond that as many more as the rest takes.
func count(length int, first, q float64, slot int) int {
	k := growth(first, q, slot)
	if grown := sum(first, q, float64(k)); float64(length) > grown {
		return k + int(math.Ceil((float64(length)-grown)/float64(slot)))
	}
	return int(math.Ceil(gaps(float64(length), first, q) - 1e-9))
}

// ratio is the planner's q, of copies beside the NIC: 1 where those are not faster than the network, steepest at most. Copies of fresh memory
// are no reason for less, as Hides says.
func ratio(m *Model, length int) float64 {
	if q := m.Ratio(float64(length)) - m.Slowed; q >= flattest && !math.IsInf(q, 1) && !math.IsNaN(q) {
		return min(q, steepest)
	}
	return 1
}

// flat is a plan of equal chunks.
func flat(length int, chunk float64, r Rules) Plan {
	c := r.Slot
	if chunk < float64(r.Slot) {
		c = max(r.Least, int(chunk))
	}
	n := max(1, fewest(length, c))
	c = roundUp((length+n-1)/n, r.Unit)
	r.Slot = max(c, r.Unit)
	return Plan{Bytes: length, Chunks: max(1, fewest(length, r.Slot)), First: float64(min(c, length)), Ratio: 1, rules: r}
}

// grow is a plan of n growing chunks.
func grow(length, n int, q float64, r Rules) Plan {
	first, k := fit(length, n, q, r.Slot)
	p := Plan{Bytes: length, Chunks: n, First: first, Ratio: q, rules: r, growing: k}
	// Rounding up to whole units may need fewer chunks.
	for p.Chunks > 1 && p.cut(p.Chunks-1) >= length {
		p.Chunks--
	}
	p.growing = min(p.growing, p.Chunks)
	return p
}

// fit returns the first of n chunks that grow by q up to slot and make up length together, and how many of them come
// before those that are capped.
func fit(length, n int, q float64, slot int) (first float64, growing int) {
	if n*slot <= length {
		return float64(slot), 0
	}
	// With m capped chunks the others are a geometric series; m is the least for which the last of those fits. The
	// search begins where there is room for a series that begins with one byte, so that what is left is positive.
	span := int(math.Ceil(math.Log(float64(slot))/math.Log(q))) + 1
	m := max(0, length/slot-span)
	rest, power := float64(length)-float64(m)*float64(slot), math.Pow(q, float64(n-m))
	for ; m < n; m++ {
		first = rest * (q - 1) / (power - 1) // equation 6
		power /= q
		if first*power <= float64(slot) { // the last one, q^(n-m-1)
			return first, n - m
		}
		rest -= float64(slot)
	}
	return float64(slot), 0
}

// growth is how many chunks are smaller than slot.
func growth(first, q float64, slot int) int {
	return max(0, int(math.Ceil(math.Log(float64(slot)/first)/math.Log(q)-1e-9)))
}

// cut is the number of payload bytes in the first i chunks of the growing sequence. Rounding whole sums, not chunks,
// keeps every chunk within the slot, since the slot is a multiple of the unit.
func (p *Plan) cut(i int) int {
	switch {
	case i <= 0:
		return 0
	case i <= p.growing:
		return min(p.Bytes, p.round(sum(p.First, p.Ratio, float64(i))))
	default:
		return min(p.Bytes, p.round(sum(p.First, p.Ratio, float64(p.growing)))+(i-p.growing)*p.rules.Slot)
	}
}

// round rounds a sum up to whole units, but for the error of its computation.
func (p *Plan) round(sum float64) int {
	return int(math.Ceil(sum/float64(p.rules.Unit)*(1-1e-12))) * p.rules.Unit
}

// Piece returns the offset and the length of chunk i, counted from 0 in the order of sending.
func (p *Plan) Piece(i int) (offset, bytes int) {
	if p.shrink {
		i = p.Chunks - 1 - i
	}
	from, to := p.cut(i), p.Bytes
	if i < p.Chunks-1 {
		to = p.cut(i + 1)
	}
	if p.shrink {
		return p.Bytes - to, to - from
	}
	return from, to - from
}

// fewest is how many pieces of at most size bytes length takes.
func fewest(length, size int) int { return (length + size - 1) / size }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// Time is what a put by the plan takes in seconds, until its last byte is at the target: the chunks' gaps, the wire, and
// the copy that hides behind nothing. hidden is for how long, in seconds, the first copy has something to hide behind.
// A get takes as long, and its request's latency.
func (p *Plan) Time(m *Model, hidden float64) float64 {
	length := float64(p.Bytes)
	last := float64(p.Bytes - p.cut(p.Chunks-1))
	copying := m.Copy(length)
	// Either the wire is the bottleneck, from the first chunk's copy on, or the copying is, up to the last chunk's wire.
	wire := max(0, min(p.First, length)/copying-hidden) + length/m.Net
	copies := length/copying - hidden + last/m.Net
	return max(wire, copies) + float64(p.Chunks)*m.Cutting() + m.Latency
}

// Busy is for how long, in seconds, a put by the plan needs its source: until the last chunk is copied, which waits for
// the one that has its slot, fold chunks before.
func (p *Plan) Busy(m *Model, fold int) float64 {
	length := float64(p.Bytes)
	sent := float64(p.cut(max(0, p.Chunks-fold)))
	last := float64(p.Bytes - p.cut(p.Chunks-1))
	copying := m.Copy(length)
	return max(length/copying, min(p.First, length)/copying+sent/m.Net+last/copying)
}
