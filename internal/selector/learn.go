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
	seen atomic.Uint32
	arms [arms]arm
}

// arm is one protocol for a kind.
type arm struct {
	estimate atomic.Uint32    // bits of a float32, seconds; 0: not asked for yet
	moves    [2]atomic.Uint32 // the same, of what one move of firehoses adds to it, and of what several do
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
}

// Wanted reports whether Note is to be called for it.
func (t Trial) Wanted() bool { return t.place != 0 && !t.quiet }

// Quiet is the trial without a wish for its cost.
func (t Trial) Quiet() Trial { return Trial{t.place, true} }

// Alike reports whether both are trials of the same protocol for the same kind of transfer.
func (t Trial) Alike(o Trial) bool { return t.place == o.place }

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
	seconds float64
	noted   uint32 // how often it was seen; 0: seconds is an estimate
}

// When something is tried that seems to cost more than the cheapest.
const (
	settled    = 4    // transfers of a kind before anything is
	pause      = 4    // transfers from one trial of what is not believed yet to the next
	trials     = 4    // until it is believed
	hope       = 0.75 // of its estimate is what it is hoped to cost
	againPause = 64   // transfers from one trial of something else that was tried to the next
	againBelow = 1.5  // of the cheapest: what costs more is tried more seldom
	often      = 16   // uses from which on a registration is not lost if it was a trial
	doubtPause = 16   // transfers from one trial of what seems far off by an estimate alone to the next
	doubt      = 0.1  // of such an estimate is what it may cost: it was made in another state of the NIC
	farPause   = 1024
	farBelow   = 8
	noteAll    = 64 // transfers of a kind from which on only some of the cheapest's costs are asked for
	noteEach   = 8
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
		if q.Moves > 0 && !math.IsInf(prices[i].seconds, 1) {
			prices[i].seconds += k.arms[i].moving(p, q, s)
		}
	}
	if known && !q.Covered { // the registration is no part of what registered transfers cost, but its share is to be paid
		prices[0].seconds += s.m.Model.Register(float64(q.Bytes)) / float64(q.Uses)
		if q.Uses < often {
			prices[0].noted = trials // it is not tried: that would be paid in vain
		}
	}
	n := uint32(0)
	if q.Moves > 0 {
		note = false // what a move takes is no part of what transfers of the kind cost
	}
	if note {
		n = k.seen.Add(1)
	}
	best := cheapest(&prices)
	if best < 0 {
		return Select(q, s), Trial{}
	}
	if q.Moves > 0 {
		if known && !q.Covered && best == 0 {
			return Register, Trial{}
		}
		return all[best], Trial{}
	}
	i := pick(&prices, best, n)
	if known && !q.Covered && i == 0 && q.Uses < often {
		return Register, Trial{}
	}
	if known && !q.Covered && i == 0 { // with the registration it would cost more than what is compared
		return Register, Trial{int32(at*arms+i) + 1, true}
	}
	quiet := n == 0 || i == best && n > noteAll && n%noteEach != 0
	return all[i], Trial{int32(at*arms+i) + 1, quiet}
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

// pick returns the place of the cheapest price, best, or at times that of another one that may be cheaper than is believed; n
// counts the transfers.
func pick(prices *[arms]price, best int, n uint32) int {
	if n < settled || n%pause != 0 && n%againPause >= arms && n%farPause-againPause/2 >= arms { // none of what follows
		return best
	}
	least := prices[best].seconds
	for i, p := range prices {
		switch {
		case i == best:
		case p.noted == 0 && n%pause == 0 && p.seconds*hope < least, 0 < p.noted && p.noted < trials && n%pause == 0:
			return i
		case p.noted == 0 && n > doubtPause && n%doubtPause == 0 && p.seconds*doubt < least:
			return i
		case p.noted >= trials && n%againPause == uint32(i) && p.seconds < againBelow*least:
			return i
		case n%farPause == againPause/2+uint32(i) && p.seconds < farBelow*least:
			return i
		}
	}
	return best
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

// price returns what is believed of an arm.
func (a *arm) price(p Protocol, q *Query, s *Selector) price {
	if w := a.noted.Load(); w != 0 {
		return price{float64(math.Float32frombits(uint32(w >> 32))), uint32(w)}
	}
	e := a.estimate.Load()
	if e == 0 {
		e = a.estimated(p, *q, s)
	}
	return price{seconds: float64(math.Float32frombits(e))}
}

// estimated computes an arm's estimate.
func (a *arm) estimated(p Protocol, q Query, s *Selector) uint32 {
	q.Covered, q.Moves = p == Direct, 0
	e := math.Float32bits(float32(s.Cost(p, q)))
	a.estimate.Store(e)
	return e
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
