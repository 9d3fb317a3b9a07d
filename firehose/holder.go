package firehose

import "fmt"

// HolderConfig is what a Holder is made of.
type HolderConfig struct {
	Budget  Budget
	Payload int   // largest message, bytes: at least LeastPayload
	Costs   Costs // what misses cost; zero: the order of a range is never changed by itself
}

// Holder is the table of the firehoses that this rank holds of others: which of their buckets it may read and write
// with RDMA alone. Its methods never wait. They are not safe for concurrent use: the caller's lock, which a
// transfer takes anyway, guards them, and Requests and Views with it.
type Holder struct {
	c     HolderConfig
	peers []peer
	wire  wireLimits
	stats HolderStats
}

// peer is what is held of one rank.
type peer struct {
	at      index
	slab    []hose
	free    []int32
	idle    chain
	idleW   int64 // weights, in units: of the idle chain,
	used    int64 // of all that is charged to the share,
	back    int64 // of what flights will give back when they are answered
	views   []*View
	first   *Request // blocked requests, oldest first
	end     *Request
	flights []flight
	rest    []int32 // unused flights
	wasted  uint64  // hoses asked for ahead of a use that did not come
	pressed bool    // some hose was given up for want of share
	outbox  []int32 // flights not sent yet, oldest first
	drops   []Bucket
	err     error // not nil: the rank is gone
}

// hose is one firehose.
type hose struct {
	b     Bucket
	key   uint64
	ref   int32 // requests that use it or wait for it
	state hoseState
	why   cause // it was asked for, until it is used
	due   int64 // when its next use is expected, by the predictor's clock; 0: nobody knows
	v     *View
	wait  *Request // those that hang here
}

type hoseState uint8

const (
	held    hoseState = iota // the owner has registered the bucket and keeps it so
	pending                  // asked for
	failed                   // refused; here only until the requests that wanted it know
)

// cause is for whom a hose was asked.
type cause uint8

const (
	byUse   cause = iota // a use, or it was used since
	byAhead              // a use that is predicted
	byFetch              // a use that will ask for it
)

// View is a range of a peer as a Holder sees it.
type View struct {
	p      *peer
	peer   int
	r      Range
	order  uint8
	shift  uint8  // binary logarithm of a bucket's bytes
	skew   uint64 // of the range in such a bucket
	base   Bucket // bucket 0 of this order
	known  bool   // the order was chosen by what was seen
	fixed  bool   // or by the caller
	closed bool   // the owner has withdrawn it
	held   int    // hoses in the table
	m      meter
}

// NewHolder returns the table of a rank that holds nothing.
func NewHolder(c HolderConfig) (*Holder, error) {
	if c.Payload < LeastPayload {
		return nil, fmt.Errorf("%w: messages of %d bytes, at least %d are needed", ErrLimits, c.Payload, LeastPayload)
	}
	return &Holder{c: c, peers: make([]peer, c.Budget.Ranks), wire: limitsOf(c.Payload)}, nil
}

// View returns a range of peer, as its owner described it; a second call with the same ID returns the same View.
func (h *Holder) View(rank int, r Range) (*View, error) {
	if err := r.check(h.c.Budget.Shift); err != nil {
		return nil, err
	}
	p := &h.peers[rank]
	for _, v := range p.views {
		if v.r == r {
			return v, nil
		}
		if v.r.ID == r.ID {
			return nil, fmt.Errorf("%w: range %d of rank %d is known as another one", ErrRange, r.ID, rank)
		}
	}
	v := &View{p: p, peer: rank, r: r}
	v.setOrder(h.c.Budget.Shift, 0)
	p.views = append(p.views, v)
	return v, nil
}

// Known returns the View of a range if there is one that its owner has not withdrawn, else nil.
func (h *Holder) Known(rank int, r Range) *View {
	for _, v := range h.peers[rank].views {
		if v.r == r && !v.closed {
			return v
		}
	}
	return nil
}

// Pressed reports whether firehoses on a rank's memory were ever given up for others. As long as none was, nothing that was used before
// misses, and there is nothing to foresee.
func (h *Holder) Pressed(rank int) bool { return h.peers[rank].pressed }

// Barred reports whether nothing of a rank's memory can be held from now on: there is no share, or Lost was called for it.
func (h *Holder) Barred(rank int) bool { return h.c.Budget.Share == 0 || h.peers[rank].err != nil }

// SetCosts changes what misses cost: a measurement has come in, or a better one.
func (h *Holder) SetCosts(c Costs) { h.c.Costs = c }

func (v *View) setOrder(unitShift, order uint8) {
	v.order, v.shift = order, unitShift+order
	v.skew, v.base = v.r.skew(v.shift), MakeBucket(v.r.ID, order, 0)
}

// Order returns the order of the buckets that requests ask for now.
func (v *View) Order() uint8 { return v.order }

// Fix makes the view keep to buckets of one order.
func (h *Holder) Fix(v *View, order uint8) error {
	if order > h.c.Budget.MaxOrder() {
		return fmt.Errorf("%w: buckets of order %d; the largest that can be held is of order %d", ErrTooLarge, order, h.c.Budget.MaxOrder())
	}
	v.fixed = true
	v.setOrder(h.c.Budget.Shift, order)
	return nil
}

// Acquire asks for the buckets that n bytes at off of the view lie in, and returns the request's state: Ready (a hit:
// the keys are there), Waiting (Send must be called; the state changes when replies come and others release), or
// Failed. Each Ready request must be given back with Release. Who holds one must be able to finish with it before a
// further one is Ready: else two could wait for each other for ever.
func (h *Holder) Acquire(v *View, q *Request, off, n uint64) State {
	if h.single(v, q, off, n) {
		return Ready
	}
	return h.acquire(v, q, off, n)
}

// single makes q Ready if its bytes lie in one bucket, which is held.
func (h *Holder) single(v *View, q *Request, off, n uint64) bool {
	first := (v.skew + off) >> v.shift
	p := v.p
	if n-1 < v.r.Bytes && off <= v.r.Bytes-n && p.first == nil && !v.closed && first == (v.skew+off+n-1)>>v.shift {
		if i := p.at.find(v.base | Bucket(first)); i >= 0 && p.slab[i].state == held {
			x := &p.slab[i]
			if x.ref == 0 {
				p.wake(i)
			}
			x.ref++
			q.v, q.run, q.key = v, Run{x.b, 1}, x.key
			q.state, q.moved, q.carried, q.came = Ready, false, false, byUse
			if x.why != byUse {
				h.came(q, x)
			}
			v.m.use(n, 1)
			h.stats.Hits++
			h.stats.BucketHits++
			return true
		}
	}
	return false
}

// acquire is Acquire for everything but a hit on one bucket.
func (h *Holder) acquire(v *View, q *Request, off, n uint64) State {
	if !h.admit(v, q, off, n) {
		return q.state
	}
	v.m.use(n, q.run.Count)
	if v.p.first != nil || !h.attempt(q) {
		h.block(q)
	}
	h.tidy(v.p)
	return q.state
}

// admit prepares q; it returns false when q has its final state already.
func (h *Holder) admit(v *View, q *Request, off, n uint64) bool {
	*q = Request{Put: q.Put, Early: q.Early, more: q.more[:0], v: v, off: off, n: n}
	b := h.c.Budget
	switch {
	case !v.r.holds(off, n):
		q.fail(fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, n, off, v.r.Bytes))
	case v.p.err != nil:
		q.fail(v.p.err)
	case v.closed:
		q.fail(ErrWithdrawn)
	case b.Share == 0:
		q.fail(ErrNoShare)
	case n == 0:
		q.run = v.r.Run(b.Shift, v.order, off, 0)
		q.state = Ready
	default:
		q.run = v.r.Run(b.Shift, v.order, off, n)
		if most := h.MaxBuckets(v.order); q.run.Count > most {
			q.fail(fmt.Errorf("%w: %d buckets of %d bytes, at most %d at once", ErrTooLarge, q.run.Count, uint64(1)<<v.shift, most))
			return false
		}
		return true
	}
	return false
}

// MaxBuckets returns how many buckets of an order one request may ask for.
func (h *Holder) MaxBuckets(order uint8) uint32 {
	return uint32(min(int64(h.wire.buckets), h.c.Budget.Share>>order))
}

// Piece returns how many of n bytes at off the next request should ask for. The first call for a view chooses the
// order of its buckets by n.
func (h *Holder) Piece(v *View, off, n uint64) uint64 {
	if !v.known && !v.fixed && h.c.Costs != (Costs{}) {
		v.known = true
		order, _ := h.c.Budget.Order(Usage{Stretch: int64(n), Places: 1, Reuse: 1}, h.c.Costs, h.wire.buckets)
		v.setOrder(h.c.Budget.Shift, order)
	}
	return v.r.Piece(h.c.Budget.Shift, v.order, off, n, max(1, h.MaxBuckets(v.order)))
}

// Try is Acquire for who cannot wait: Ready if all buckets are held already, and else false with nothing changed. It
// may say so although a moment later it would not.
func (h *Holder) Try(v *View, q *Request, off, n uint64) bool {
	if h.single(v, q, off, n) {
		return true
	}
	if v.p.first != nil || !h.admit(v, q, off, n) {
		return q.state == Ready
	}
	for i := range q.run.Count {
		if k := v.p.at.find(q.run.At(i)); k < 0 || v.p.slab[k].state != held {
			q.state = Idle
			return false
		}
	}
	v.m.use(n, q.run.Count)
	h.hit(q)
	return true
}

// Held reports whether Try would be Ready. It changes nothing.
func (h *Holder) Held(v *View, off, n uint64) bool {
	if v.p.first != nil || v.p.err != nil || v.closed || !v.r.holds(off, n) {
		return false
	}
	run := v.r.Run(h.c.Budget.Shift, v.order, off, n)
	for i := range run.Count {
		if k := v.p.at.find(run.At(i)); k < 0 || v.p.slab[k].state != held {
			return false
		}
	}
	return true
}

// Partial is Try for the first bytes of those asked for that are held: it returns where they begin and how many they
// are; none if it says 0. More than MaxBuckets are never returned.
func (h *Holder) Partial(v *View, q *Request, off, n uint64) (start, bytes uint64) {
	if v.p.first != nil || v.p.err != nil || v.closed || n == 0 || !v.r.holds(off, n) {
		return 0, 0
	}
	all := v.r.Run(h.c.Budget.Shift, v.order, off, n)
	is := func(i uint32) bool {
		k := v.p.at.find(all.At(i))
		return k >= 0 && v.p.slab[k].state == held
	}
	from := uint32(0)
	for from < all.Count && !is(from) {
		from++
	}
	to := from
	for to < all.Count && to-from < h.MaxBuckets(v.order) && is(to) {
		to++
	}
	if from == to {
		return 0, 0
	}
	lo, _ := v.r.Extent(h.c.Budget.Shift, all.At(from))
	end, size := v.r.Extent(h.c.Budget.Shift, all.At(to-1))
	start = max(lo, off)
	bytes = min(end+size, off+n) - start
	return start, bytes * b2u(h.Try(v, q, start, bytes))
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Release gives back a Ready request: the operation on its bytes is complete at the target, not only posted. It sends no
// message, but may let blocked requests go on: call Send after it when it returns true.
func (h *Holder) Release(q *Request) (more bool) {
	if q.state != Ready {
		return false
	}
	p := q.v.p
	q.state = Idle
	for i := range q.run.Count { // in ascending order, so that neighbours are evicted together
		p.unref(p.at.find(q.run.At(i)))
	}
	if p.first == nil && len(p.drops) == 0 && p.err == nil {
		return false
	}
	h.pump(p)
	h.tidy(p)
	return len(p.outbox) > 0
}

// Abandon ends the caller's interest in a request whatever its state. What it holds is released, now or when its
// replies come; until its state is Idle or Failed the request must stay where it is.
func (h *Holder) Abandon(q *Request) {
	switch {
	case q.state == Ready:
		h.Release(q)
	case q.state == Waiting && q.blocked:
		p := q.v.p
		p.unblock(q)
		q.state = Idle
		h.pump(p)
		h.tidy(p)
	case q.state == Waiting:
		q.abandoned = true
	}
}

// fail gives q its final state.
func (q *Request) fail(err error) { q.state, q.err = Failed, err }
