package selector

import (
	"math"
	"math/bits"
	"sync/atomic"

	"gopgas/internal/superpipe"
)

// Selector holds the answers of Select for one machine; Machine.Selector makes it. Any goroutine may use it.
type Selector struct {
	m       Machine
	reading superpipe.Model // of gets
	allowed uint32
	limits  [regions - 1]int // largest sizes of the regions but the last
	// Four bits for each answer: the protocol plus one, or 0 until somebody has asked. What is computed twice is equal.
	answer [entries / perWord]atomic.Uint32
}

// A query's size falls into a class, four to a factor of two, and into a region between the limits at which protocols
// end; the limits are exact, costs are taken at the middle of what is left of the class.
const (
	classes = 4 * 33
	regions = 4 // inline, message, slot, more
	reuses  = 3 // 1, 2 to 15, more
	places  = 4 // registered, one move away, several, never
	carried = 3 // by anything, not by a hybrid, by no pipe
	entries = 2 * 2 * 2 * carried * reuses * places * regions * classes
	perWord = 8
)

// Selector returns the answers for the machine. Each is computed when it is first asked for, which takes some
// microseconds. Protocols not in allowed, a set of bits (0: all), are left out wherever another can do it.
func (m Machine) Selector(allowed uint32) *Selector {
	s := &Selector{m: m, reading: *m.Model.Reading(), allowed: allowed}
	inline := m.Caps.MaxInline
	s.limits = [...]int{inline, max(inline, min(m.Payload, m.Slot)), max(inline, m.Payload, m.Slot)}
	return s
}

// Machine returns what the costs are computed from.
func (s *Selector) Machine() Machine { return s.m }

// Select chooses the protocol of a put or get: the one with the least cost for this machine. Its answer depends on
// nothing but its arguments; it neither waits nor allocates.
func Select(q Query, s *Selector) Protocol { return s.at(s.index(&q)) }

// at is entry i of the table.
func (s *Selector) at(i uint) Protocol {
	if known := s.answer[i/perWord].Load() >> (i % perWord * (32 / perWord)) & 0xf; known != 0 {
		return Protocol(known - 1)
	}
	return s.first(i)
}

// first computes entry i of the table.
func (s *Selector) first(i uint) Protocol {
	q, ok := s.sample(int(i))
	if !ok {
		return None
	}
	p := s.cheapest(q)
	s.answer[i/perWord].Or(uint32(p+1) << (i % perWord * (32 / perWord)))
	return p
}

// index is the place of a query's answer. What is true of a query is added up, since the processor cannot foresee branches on it. The
// query is passed by its address: its fields are more than the registers for arguments.
func (s *Selector) index(q *Query) uint {
	place := min(uint(q.Moves), 2)
	if q.Never {
		place = 3
	}
	carry := bit(q.NoTail)
	if q.NoPipe {
		carry = 2
	}
	reuse := bit(q.Uses > 1) + bit(q.Uses > 15)
	region := bit(q.Bytes > s.limits[0]) + bit(q.Bytes > s.limits[1]) + bit(q.Bytes > s.limits[2]) // they ascend
	i := bit(q.Get)<<2 | bit(q.Waited)<<1 | bit(q.Covered)
	return ((((i*carried+carry)*reuses+reuse)*places+place)*regions+region)*classes + uint(class(q.Bytes))
}

func bit(b bool) uint {
	if b {
		return 1
	}
	return 0
}

// class of a size: four to an octave.
func class(n int) int {
	if n < 4 {
		return max(0, n)
	}
	top := bits.Len(uint(n)) - 1
	return min(4*(top-1)+n>>(uint(top-2)&63)&3, classes-1)
}

// classStart is the least size of a class.
func classStart(c int) int {
	if c < 4 {
		return c
	}
	return (4 + c&3) << (c>>2 - 1)
}

// sample is a query in the middle of what index i stands for; ok is false where that is nothing.
func (s *Selector) sample(i int) (q Query, ok bool) {
	c := i % classes
	i /= classes
	region := i % regions
	i /= regions
	place := i % places
	i /= places
	q.Moves, q.Never = [...]uint8{0, 1, someMoves, 0}[place], place == 3
	q.Uses = [...]uint8{1, 4, 255}[i%reuses]
	i /= reuses
	q.NoTail, q.NoPipe = i%carried == 1, i%carried == 2
	i /= carried
	q.Get, q.Waited, q.Covered = i&4 != 0, i&2 != 0, i&1 != 0
	low, high := classStart(c), classStart(c+1)-1
	if region > 0 {
		low = max(low, s.limits[region-1]+1)
	}
	if region < regions-1 {
		high = min(high, s.limits[region])
	}
	q.Bytes = low + (high-low)/2
	return q, low <= high
}

// cheapest compares the costs of all protocols.
func (s *Selector) cheapest(q Query) Protocol {
	best, least := None, math.Inf(1)
	for pass := range 2 {
		for p := Inline; p < Protocols; p++ {
			if pass == 0 && (s.allowed != 0 && s.allowed>>p&1 == 0 || p == Hybrid && !s.m.Idle) {
				continue
			}
			if c := s.Cost(p, q); c < least {
				best, least = p, c
			}
		}
		if best != None {
			break
		}
	}
	return best
}

// Cost estimates what the caller pays in seconds when a query travels by a protocol: until the completion where that is
// waited for, until the source is free where it is not. It is infinite where the protocol cannot do it.
func (s *Selector) Cost(p Protocol, q Query) float64 {
	c, own := s.modelled(p, q), s.m.Puts[p]
	if q.Get {
		own = s.m.Gets[p]
	}
	switch waited := q.Get || q.Waited; {
	case !waited:
		return max(c+own.At(0), c/mostOff) // what the NIC takes more is no part of it
	case own.tried(q.Bytes):
		return max(c+own.At(q.Bytes), c/mostTried)
	}
	return max(c+own.At(q.Bytes), c/mostOff) // what was measured in a bad moment is not believed without an end
}

// How many times less a transfer may cost than its model says, and one of a size for which such were made: the model is of a NIC that is left alone, and
// where that is a program who waits may do its work in a tenth of the time that its thread takes to hear of it.
const (
	mostOff   = 4
	mostTried = 64
)

// modelled is Cost without this library's part of it.
func (s *Selector) modelled(p Protocol, q Query) float64 {
	m, n := &s.m, float64(q.Bytes)
	wire, trip := m.Model.Put(n), 2*m.Model.Latency
	if q.Get {
		wire = m.Model.Fetch(n)
	}
	move := s.moving(q, trip)
	copying := 0.0
	if q.Bytes > 0 {
		copying = m.Model.CopyTime(n)
	}
	uses := float64(max(1, q.Uses))
	cannot := math.Inf(1)
	if q.Never != (p == Message || p == Lease) || q.bars(p) {
		return cannot
	}
	switch p {
	case Inline:
		if q.Get || q.Bytes > m.Caps.MaxInline {
			return cannot
		}
		return move + m.Post + done(q, wire)
	case Direct:
		if !q.Covered {
			return cannot
		}
		return move + m.Lookup + m.Post + wire
	case Bounce:
		switch {
		case q.Bytes > m.Slot:
			return s.slotted(q, move)
		case q.Get:
			return move + m.Post + wire + copying
		}
		return max(move, copying) + m.Post + done(q, wire)
	case Register:
		if q.Covered {
			return cannot
		}
		registering, first := m.Model.Register(n)/uses, m.first(q, n)/uses
		if q.Moves > 0 {
			return max(move, registering) + takenBack*registering + first + m.Lookup + m.Post + wire
		}
		return registering + first + m.Lookup + m.Post + wire
	case Pipe:
		return s.piped(q, move)
	case Hybrid:
		return s.hybrid(q, move)
	case Message:
		switch {
		case m.Payload == 0:
			return cannot
		case q.Bytes > m.Payload:
			return s.messages(q, trip)
		}
		return copying + m.Post + done(q, wire+m.Handler+copying)
	case Lease:
		if !m.Lease {
			return cannot
		}
		return s.leased(q, trip)
	}
	return cannot
}

// done is a cost that is paid only by who waits for the completion.
func done(q Query, cost float64) float64 {
	if q.Get || q.Waited {
		return cost
	}
	return 0
}

// slotted is the cost of what goes through the bounce pool in parts: a flat pipeline. A put's parts are copied without a wait as
// long as there are slots.
func (s *Selector) slotted(q Query, move float64) float64 {
	m := s.wires(q)
	if s.m.Slot == 0 {
		return math.Inf(1)
	}
	p := superpipe.PlanWith(q.Bytes, float64(s.m.Slot), 1, superpipe.Rules{Slot: s.m.Slot})
	if q.Get || q.Waited {
		return move + s.chunked(q, &p, s.behind(q, move, laid*s.m.Slot)) + s.m.Slotted.of(q, later(&p))
	}
	return max(move, move-s.behind(q, move, laid*s.m.Slot)+p.Busy(m, max(1, s.m.Slots))) + float64(p.Chunks)*s.m.Post
}

// laid is how many slots of the bounce pool are filled while firehoses move.
const laid = 8

// behind is how long a put's copies, of so many bytes at most, go on while firehoses move.
func (s *Selector) behind(q Query, move float64, most int) float64 {
	if move == 0 || q.Get {
		return 0
	}
	return min(move, s.m.Model.CopyTime(float64(min(q.Bytes, most))))
}

// takenBack is what to give a registration back costs, of what it costs, assumed: where buckets move not all may stay registered, and
// what hides behind a move keeps others out all the same.
const takenBack = 0.5

// someMoves is how many moves several are taken for.
const someMoves = 4

// moving is how long firehoses are waited for: for the first ones until a message has gone there and back and their owner has registered
// what they are on; for each of the next as far as that takes longer than what the ones before are for.
func (s *Selector) moving(q Query, trip float64) float64 {
	if q.Moves == 0 {
		return 0
	}
	m, part := &s.m.Model, float64(q.Bytes)/float64(q.Moves)
	first := trip + s.m.Handler + m.Register(part)
	return first + float64(q.Moves-1)*max(0, first-part/m.Net)
}

// Later is how many bytes of a transfer through the bounce pool or the superpipeline are behind the first chunk.
func (s *Selector) Later(p Protocol, q Query) int {
	if p == Bounce {
		return max(0, q.Bytes-s.m.Slot)
	}
	plan := s.plan(q, 0)
	return later(&plan)
}

func later(p *superpipe.Plan) int {
	_, first := p.Piece(0)
	return p.Bytes - first
}

// plan is that of the superpipeline, whose first chunk hides behind so many seconds.
func (s *Selector) plan(q Query, move float64) superpipe.Plan {
	switch m := s.wires(q); {
	case q.Get:
		return superpipe.PlanGet(m, q.Bytes, s.rules())
	case move > 0:
		return superpipe.PlanBehind(m, q.Bytes, move, s.rules())
	default:
		return superpipe.PlanPut(m, q.Bytes, s.rules())
	}
}

// wires is the model of the transfers in a query's direction.
func (s *Selector) wires(q Query) *superpipe.Model {
	if q.Get {
		return &s.reading
	}
	return &s.m.Model
}

// chunked is what a plan takes until its last byte is there and is known to be: as long as one operation would take, and
// what chunks cost beside; or, where copying is slower, the copies and the last chunk's wire.
func (s *Selector) chunked(q Query, p *superpipe.Plan, hidden float64) float64 {
	m, n := s.wires(q), float64(q.Bytes)
	_, last := p.Piece(p.Chunks - 1)
	if q.Get {
		_, last = p.Piece(0)
	}
	copying := m.Copy(n)
	wire := max(0, min(p.First, n)/copying-hidden) + m.Put(n)
	copies := n/copying - hidden + m.Put(float64(last))
	gaps, posts := p.Chunks, p.Chunks
	if len(m.Writes) > 0 {
		gaps-- // the first one is part of what a write was measured to take
	}
	if m.Hides() {
		posts = 1 // the others hide behind the wire, as the copies do
	}
	return max(wire, copies) + float64(gaps)*m.Cutting() + float64(posts)*s.m.Post
}

func (s *Selector) rules() superpipe.Rules {
	return superpipe.Rules{Slot: min(s.m.BulkSlot, s.m.Caps.MaxMessage)}
}

// piped is the cost of the superpipeline.
func (s *Selector) piped(q Query, move float64) float64 {
	m := s.wires(q)
	if q.Bytes == 0 || s.m.BulkSlot == 0 {
		return math.Inf(1)
	}
	p := s.plan(q, move)
	hidden := s.behind(q, move, s.m.Fold*s.m.BulkSlot)
	if q.Get || q.Waited {
		return move + s.chunked(q, &p, hidden) + s.m.Piped.of(q, later(&p))
	}
	return max(move, move-hidden+p.Busy(m, s.m.Fold)) + float64(p.Chunks)*s.m.Post
}

// Head is how many bytes of an unregistered transfer are copied while the others are being registered: as many as the
// slower of wire and copying moves in that time. It is at least a slot; 0: what would be left is not worth a helper, or the helper has no core
// of its own: it would take one of those that copy and move, and the wire would wait longer than it gains.
func (s *Selector) Head(bytes int) int {
	m, n := &s.m.Model, float64(bytes)
	if bytes == 0 || s.m.BulkSlot == 0 || !s.m.Idle {
		return 0
	}
	head := m.Register(n) / (max(1/m.Net, 1/m.Copy(n)) + 1/m.Reg)
	if head = max(head, float64(s.m.BulkSlot)); 2*head > n {
		return 0
	}
	return int(head)
}

// hybrid is the cost of a head that travels by the superpipeline for as long as the tail takes to register, and of the
// tail's wire. A head's bytes cost what the slower of wire and copying takes.
func (s *Selector) hybrid(q Query, move float64) float64 {
	m, n := s.wires(q), float64(q.Bytes)
	if q.Covered || s.m.BulkSlot == 0 || q.Bytes == 0 {
		return math.Inf(1)
	}
	h := q
	h.Bytes, h.Waited = s.Head(q.Bytes), true
	if h.Bytes == 0 {
		return s.piped(q, move) // nothing is left for the helper
	}
	head := float64(h.Bytes)
	meanwhile := max(s.piped(h, move), m.Register(n-head))
	return meanwhile + s.m.first(q, n-head) + m.Put(n) - m.Put(head) + m.Gap + s.m.Lookup
}

// unanswered is how many messages a rank may have unanswered at another one.
const unanswered = 8

// messages is the cost of what takes several active messages: each is a copy and a posting here and a handler and a copy there,
// and no more than some are unanswered.
func (s *Selector) messages(q Query, trip float64) float64 {
	m, part := &s.m.Model, float64(s.m.Payload)
	parts := float64(q.Bytes) / part // not rounded up: what is asked for is the middle of a class of sizes
	copying, wire := m.CopyTime(part), m.Put(part)
	if q.Get {
		wire = m.Fetch(part)
	}
	each := max(s.m.Post+copying, s.m.Handler+copying, m.Gap+part/m.Net, (trip+s.m.Handler+2*copying)/unanswered)
	return (parts-1)*each + copying + s.m.Post + done(q, wire+s.m.Handler+copying)
}

// leased is the cost of a superpipeline through a workspace: equation 9, in both of the plan's regimes. A put's first chunk is copied
// during the rendezvous; a get's, by the target's CPU, after the request has come, and no more than the request is waited for.
func (s *Selector) leased(q Query, trip float64) float64 {
	m := &s.m.Model
	if q.Bytes == 0 || s.m.BulkSlot < superpipe.Block {
		return math.Inf(1)
	}
	p := superpipe.PlanBehind(m, q.Bytes, trip, superpipe.Rules{Slot: s.m.BulkSlot / superpipe.Block * superpipe.Payload, Unit: superpipe.Payload})
	last := superpipe.Block/m.Copy(float64(q.Bytes)) + m.Latency
	switch {
	case q.Get:
		return trip/2 + s.m.Handler + p.Time(m, 0) + last
	case q.Waited:
		return trip + s.m.Handler + p.Time(m, trip) + last
	default:
		return trip + s.m.Handler + p.Busy(m, s.m.Fold)
	}
}
