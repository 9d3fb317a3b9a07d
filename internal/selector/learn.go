package selector

import (
	"math"
	"sync/atomic"
)

// Learned is what large transfers have really cost, beside what a machine's costs say of them: those may have been measured
// in a bad moment, or with another peer. The zero Learned has seen nothing. Any goroutine may use it; of two that note at
// once one may be lost.
type Learned struct{ kinds [kinds]kind }

// Kinds of transfers: two to a factor of two in size, get or put, waited for or not, of memory that is registered or seen
// before, or that is neither.
const (
	kinds = 8 * classes / 2
	arms  = 4
)

// kind is what is known of one kind of transfer.
type kind struct {
	seen atomic.Uint32 // choices that were made for it
	more atomic.Uint32 // transfers, beside one for each choice
	sure atomic.Bool   // what Sure says
	arms [arms]arm
}

// arm is one protocol for a kind.
type arm struct {
	estimate atomic.Uint32    // bits of a float32, seconds; 0: not asked for yet
	moves    [2]atomic.Uint32 // the same, of what one move of firehoses adds to it, and of what several do
	spent    atomic.Uint32    // the same, on trials: by how much they were dearer than the cheapest, in transfers by that
	noted    atomic.Uint64    // bits of a float32, about the lower third of what was noted, and how often, below
}

// armsOf are the protocols that are compared: for memory that is neither registered nor seen before, and for other.
func armsOf(known bool) [arms]Protocol {
	if known {
		return [arms]Protocol{Direct, Bounce, Pipe, None}
	}
	return [arms]Protocol{Register, Bounce, Pipe, Hybrid}
}

// Trial is a transfer whose cost may be noted. The zero Trial is none.
type Trial struct {
	place int32 // of the arm, plus one
	quiet bool  // enough is known: the cost is not asked for
	short bool  // it is to end soon
}

// Wanted reports whether Note is to be called for it.
func (t Trial) Wanted() bool { return t.place != 0 && !t.quiet }

// Quiet is the trial without a wish for its cost.
func (t Trial) Quiet() Trial {
	t.quiet = true
	return t
}

// ShortTrial is how many transfers that are waited for together a short trial has at most.
const ShortTrial = 16

// Short reports whether the trial is to be short: one of what seems dearer, or one of the first of a kind, that tell what it costs at all.
func (t Trial) Short() bool { return t.short }

// Alike reports whether both are trials of the same protocol for the same kind of transfer.
func (t Trial) Alike(o Trial) bool { return t.place == o.place }

// By reports whether the trial is one by a protocol. The zero Trial is by none.
func (t Trial) By(p Protocol) bool {
	at := int(t.place - 1)
	return t.place != 0 && armsOf(at/arms/(classes/2)&1 == 1)[at%arms] == p
}

// Again reports whether a transfer q, which comes before that of the trial is known to be over, is to travel by the same
// protocol, and by which: what is waited for together is tried together, so that the wait can be told to be one's.
func (t Trial) Again(q Query) (Protocol, bool) {
	if t.place == 0 {
		return None, false
	}
	known := q.Covered || q.Uses > 1
	at, i := int(t.place-1)/arms, int(t.place-1)%arms
	if at != kindOf(&q, known) || q.Moves > 0 || q.Never {
		return None, false
	}
	if known && !q.Covered && i == 0 {
		return Register, q.Uses >= often
	}
	p := armsOf(known)[i]
	return p, !q.bars(p)
}

// price is what is believed of an arm.
type price struct {
	seconds  float64
	noted    uint32  // how often it was seen; 0: seconds is an estimate
	spent    float64 // on trials
	estimate float64 // for even circumstances
}

// When something is tried that seems to cost more than the cheapest.
const (
	settled    = 4    // choices of a kind before anything is
	pause      = 4    // choices from one trial to the next
	trials     = 4    // until what was noted is believed
	convincing = 6    // until it is believed that what copies nothing takes longer than what does
	copying    = 1.05 // times as long may take what copies nothing, beside what does: that takes a core and caches from others
	hope       = 0.65 // of its estimate is what it is hoped to cost
	againPause = 16   // choices from one trial of something that is believed to the next
	often      = 16   // uses from which on a registration is not lost if it was a trial
	doubtPause = 16   // choices from one trial of what seems far off by an estimate alone to the next
	doubt      = 0.1  // of such an estimate is what it may cost: it was made in another state of the NIC
	noteAll    = 64   // choices of a kind from which on only some of the cheapest's costs are asked for
	noteEach   = 8
	young      = 16 // choices of a kind that are short

	// What all trials of one protocol may cost beyond the cheapest, in transfers by that: so much and so many times the root of the transfers so far,
	// and no more than so many times these either; of the first one of what is hoped for that is more.
	// The three of them take 3 % of 100 transfers at most, 4 % of 1000, 1 % of 10000, and 0.1 % of a million, beside what is a surprise once.
	early = 0.01
	first = 0.04
	stake = 4
	share = 0.3
)

// Choose is Select by what was learned, as far as there is anything. If note is set the transfer is one whose cost can be told:
// then it may be used to try something, and the Trial is for Note when it is over.
func (l *Learned) Choose(q Query, s *Selector, note bool) (Protocol, Trial) {
	if q.Bytes == 0 || q.Never {
		return Select(q, s), Trial{}
	}
	known := q.Covered || q.Uses > 1
	at := kindOf(&q, known)
	k := &l.kinds[at]
	var prices [arms]price
	all := armsOf(known)
	for i, p := range all {
		if q.bars(p) || p == Hybrid && !s.m.Idle {
			prices[i].seconds = math.Inf(1)
			continue
		}
		prices[i] = k.arms[i].price(p, &q, s)
	}
	inCircumstances(&prices)
	if q.Moves > 0 {
		for i, p := range all {
			if !math.IsInf(prices[i].seconds, 1) {
				prices[i].seconds += k.arms[i].moving(p, q, s)
			}
		}
	}
	bare := q.Covered && (q.Get || q.Waited) // Direct copies nothing, and the others do besides
	if bare {                                // they may be seen to take less, and are not thought to, nor by a few bad moments
		for i := 1; i < arms; i++ {
			if prices[i].noted == 0 || prices[0].noted < convincing {
				prices[i].seconds = max(prices[i].seconds, prices[0].seconds)
			}
		}
	}
	if known && !q.Covered { // the registration is no part of what registered transfers cost, but its share is to be paid
		prices[0].seconds += s.m.newly(q)
		if q.Uses < often {
			prices[0].noted, prices[0].spent = trials, math.Inf(1) // it is not tried: that would be paid in vain
		}
	}
	if q.Moves > 0 {
		note = false // what a move takes is no part of what transfers of the kind cost
	}
	best := cheapest(&prices)
	if bare && best > 0 && prices[0].seconds <= copying*prices[best].seconds {
		best = 0
	}
	if best < 0 {
		return Select(q, s), Trial{}
	}
	if q.Moves > 0 {
		if known && !q.Covered && best == 0 {
			return Register, Trial{}
		}
		return all[best], Trial{}
	}
	n, i, quiet := uint32(0), best, true
	if note {
		n = k.seen.Add(1)
		if q.Covered && mayTry(n) {
			k.sure.Store(isSure(&prices, best))
		}
		i = k.pick(&prices, best, n)
		quiet = i == best && n > noteAll && n%noteEach != 0
	}
	t := Trial{int32(at*arms+i) + 1, quiet, i != best || n <= young && n > 0}
	if known && !q.Covered && i == 0 { // with the registration it would cost more than what is compared
		if q.Uses < often {
			return Register, Trial{}
		}
		return Register, t.Quiet()
	}
	return all[i], t
}

// How many times what was estimated transfers are believed to take for their circumstances, at most, and how many times an estimate alone may be wrong.
const (
	slowest = 9
	astray  = 1.25
)

// inCircumstances has estimates grow with what all that was noted took more than its own. They are of transfers that follow each other; behind a pause
// of the program's the processor has forgotten code and data of every way, and each takes two to four times as long. If not for this, whatever is noted first
// would lose to what is not. Half of it, in factors, is laid to the circumstances, and half to the estimate, but for what no estimate is wrong by.
func inCircumstances(prices *[arms]price) {
	slow := math.Inf(1)
	for i := range prices {
		if p := &prices[i]; p.noted > 0 && p.estimate > 0 {
			slow = min(slow, p.seconds/p.estimate)
		}
	}
	if slow <= 1 || math.IsInf(slow, 1) {
		return
	}
	slow = min(slow, slowest)
	more := max(math.Sqrt(slow), slow/astray)
	for i := range prices {
		if p := &prices[i]; p.noted == 0 {
			p.seconds *= more
		}
	}
}

// cheapest returns the place of the lowest price, -1 where nothing can do it.
func cheapest(prices *[arms]price) int {
	best := -1
	for i, p := range prices {
		if !math.IsInf(p.seconds, 1) && (best < 0 || p.seconds < prices[best].seconds) {
			best = i
		}
	}
	return best
}

// pick is the function of this name for choice n, and notes what a trial is believed to cost.
func (k *kind) pick(prices *[arms]price, best int, n uint32) int {
	if !mayTry(n) {
		return best
	}
	for i := range prices {
		prices[i].spent += k.arms[i].trialed()
	}
	more := float64(k.more.Load())
	each := min(ShortTrial, 1+more/float64(n)) // transfers of a trial
	i := pick(prices, best, n, float64(n)+more, each)
	if i != best {
		a, p := &k.arms[i], &prices[i]
		a.spent.Store(math.Float32bits(float32(p.spent + p.regret(prices[best].seconds, each))))
	}
	return i
}

// mayTry reports whether choice n may be one for a trial.
func mayTry(n uint32) bool { return n >= settled && n%pause == 0 }

// pick returns the place of the cheapest price, best, or at times that of another one that may be cheaper than is believed, if its trials have
// cost little so far. n counts the choices, made the transfers, and each is how many of these a trial has.
func pick(prices *[arms]price, best int, n uint32, made, each float64) int {
	if !mayTry(n) {
		return best
	}
	least, most := prices[best].seconds, stake+share*math.Sqrt(made)
	tried := best
	for i, p := range prices {
		hoped := p.noted == 0 && p.seconds*hope < least
		may := min(most, early*made)
		if hoped {
			may = min(most, first*made)
		}
		if i == best || math.IsInf(p.seconds, 1) || p.spent+p.regret(least, each) > may {
			continue
		}
		doubted := p.noted == 0 && n > doubtPause && n%doubtPause == 0 && p.seconds*doubt < least
		turn := n%againPause == uint32(i)*pause
		if (hoped || doubted || 0 < p.noted && p.noted < trials || p.noted >= trials && turn) && (tried == best || p.seconds < prices[tried].seconds) {
			tried = i
		}
	}
	return tried
}

// regret is by how much a trial of so many transfers is dearer than the cheapest, in transfers by that. What was noted only a few times
// may have been noted in bad moments, the first of something more than that, so that only half of it is believed.
func (p *price) regret(least, each float64) float64 {
	seconds := p.seconds
	if p.noted == 1 {
		seconds /= 2
	}
	return each * max(0, seconds/least-1)
}

// Made tells how many transfers were made by one choice, beside the first.
func (l *Learned) Made(t Trial, more int) {
	if t.place != 0 && more > 0 {
		l.kinds[int(t.place-1)/arms].more.Add(uint32(more))
	}
}

// Note tells what a transfer has cost, in seconds.
func (l *Learned) Note(t Trial, seconds float64) {
	if t.place == 0 || !(seconds > 0) {
		return
	}
	at := int(t.place - 1)
	a := &l.kinds[at/arms].arms[at%arms]
	old := a.noted.Load()
	level, n := float64(math.Float32frombits(uint32(old>>32))), uint32(old)
	switch {
	case n == 0:
		level = seconds
	case n < trials, seconds < level/2:
		level = min(level, seconds) // the first of something is dearer than the rest
	case seconds < level:
		level -= (level - seconds) / 2
	default: // however long somebody else had the processor, it says little
		level += (min(seconds, 2*level) - level) / 32
	}
	a.noted.Store(uint64(math.Float32bits(float32(level)))<<32 | uint64(min(n+1, 1<<31)))
}

// price returns what is believed of an arm. One transfer by it that took longer than was estimated says nothing yet: the first finds its buffers
// untouched, or somebody else has the processor, and may take a hundred times as long as the second. If that counted, the arm would lose to
// whatever is merely noted next, and trials of it would seem too dear to be made.
func (a *arm) price(p Protocol, q *Query, s *Selector) price {
	w, e := a.noted.Load(), a.estimate.Load()
	if e == 0 {
		e = a.estimated(p, *q, s)
	}
	estimate := float64(math.Float32frombits(e))
	noted := price{seconds: float64(math.Float32frombits(uint32(w >> 32))), estimate: estimate, noted: uint32(w)}
	if noted.noted > 1 || noted.noted == 1 && noted.seconds < estimate { // nothing takes less by chance
		return noted
	}
	return price{seconds: estimate, estimate: estimate}
}

// trialed is what trials of an arm have cost.
func (a *arm) trialed() float64 { return float64(math.Float32frombits(a.spent.Load())) }

// estimated computes an arm's estimate.
func (a *arm) estimated(p Protocol, q Query, s *Selector) uint32 {
	q.Covered, q.Moves = p == Direct, 0
	e := math.Float32bits(float32(s.Lasting(p, q)))
	a.estimate.Store(e)
	return e
}

// Lasting estimates what each of many such transfers takes, the flush behind them included, which is what Learned is told: of puts that nobody waits
// for it is what was measured of such (Machine.Runs). Of sizes of which nothing was it is no less than what one takes that is waited for, but for what is behind the transfers before it: the way there and, unless the NIC is a program,
// which needs the same cores and caches, the copy that comes first.
func (s *Selector) Lasting(p Protocol, q Query) float64 {
	c := s.Cost(p, q)
	if q.Get || q.Waited || math.IsInf(c, 1) {
		return c
	}
	if run, ok := s.run(p, q); ok {
		return run
	}
	q.Waited = true
	hidden := s.m.Model.Latency
	if !s.m.Caps.Busy && (p == Bounce || p == Pipe || p == Hybrid) {
		hidden += s.m.Model.CopyTime(float64(q.Bytes - s.Later(p, q)))
	}
	return max(c, s.Cost(p, q)-hidden)
}

// run is what was measured of puts that are flushed together; ok is false where nothing was.
func (s *Selector) run(p Protocol, q Query) (seconds float64, ok bool) {
	by, registering := p, 0.0
	if p == Register {
		by, registering = Direct, s.m.newly(q)
	}
	all := s.m.Runs[by]
	return registering + all.At(q.Bytes), all.Has(q.Bytes)
}

// moving returns by how much longer a transfer by the protocol takes if firehoses have to move first, as far as is estimated: copies hide
// behind that, and what is posted from where it lies does not.
func (a *arm) moving(p Protocol, q Query, s *Selector) float64 {
	cache := &a.moves[min(int(q.Moves), 2)-1]
	e := cache.Load()
	if e == 0 {
		q.Covered, q.Moves = p == Direct, [...]uint8{1, someMoves}[min(int(q.Moves), 2)-1]
		still := q
		still.Moves = 0
		more := max(s.Cost(p, q)-s.Cost(p, still), math.SmallestNonzeroFloat32)
		e = math.Float32bits(float32(more))
		cache.Store(e)
	}
	return float64(math.Float32frombits(e))
}

// kindOf is the place of a query's kind.
func kindOf(q *Query, known bool) int {
	return int(bit(q.Get)<<2|bit(q.Waited)<<1|bit(known))*(classes/2) + class(q.Bytes)/2
}
