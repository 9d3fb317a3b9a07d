package firehose

// State of a Request.
type State uint8

// The states. A request begins Idle and is Idle again after Release, or after it Failed and was asked for anew.
const (
	Idle    State = iota
	Ready         // all its buckets are held: use them, then Release
	Waiting       // for replies, or for firehoses that are in use
	Failed        // Err says why; it holds nothing
)

// Request asks for the buckets of some bytes. It belongs to the caller, who may use it again and again; while it is
// Ready or Waiting it must stay where it is.
type Request struct {
	// Put is a small put to be stored by the owner, if the request misses and its move has room for it. Read Carried
	// when the request is no longer Waiting. The bytes must stay as they are until then.
	Put []byte
	// Early is set by who only fetches: whoever uses the buckets will ask for them again.
	Early bool

	v         *View
	run       Run
	off, n    uint64
	key       uint64   // of the first bucket
	more      []uint64 // of the others
	err       error
	next      *Request // in a chain of blocked ones, or of those that hang on a hose
	scan      uint32   // buckets before this one are held
	carrier   int32    // the flight that Put goes along with, plus one, until that is answered
	state     State
	moved     bool
	carried   bool
	blocked   bool
	abandoned bool
	ahead     bool  // nobody needs it yet
	came      cause // what had a bucket asked for that was there or on its way; byUse: none was so
}

// State returns the request's state.
func (q *Request) State() State { return q.state }

// Err returns why a request Failed. It wraps ErrRefused, ErrWithdrawn, ErrNoShare, ErrTooLarge, ErrRange or what
// Lost was given.
func (q *Request) Err() error { return q.err }

// Run returns the buckets asked for.
func (q *Request) Run() Run { return q.run }

// Moved reports whether the request needed a move of its own: it was neither a hit nor had it just to wait for others'.
func (q *Request) Moved() bool { return q.moved }

// Foreseen reports whether a bucket of the request, which is Ready or Waiting, was asked for ahead of this use.
func (q *Request) Foreseen() bool { return q.came == byAhead }

// Missed reports whether a bucket was not held when it was needed: the request has moved, or an Early one before it has.
func (q *Request) Missed() bool { return q.moved || q.came == byFetch }

// cause is why the buckets are asked for that the request misses.
func (q *Request) cause() cause {
	switch {
	case q.ahead:
		return byAhead
	case q.Early:
		return byFetch
	}
	return byUse
}

// Carried reports whether the owner has stored Put.
func (q *Request) Carried() bool { return q.carried }

// Key returns the key of the i-th bucket of a Ready request.
func (q *Request) Key(i uint32) uint64 {
	if i == 0 {
		return q.key
	}
	return q.more[i-1]
}

// Part returns the key for the byte at off of the range, and up to which byte it is good. The request is Ready and
// covers off.
func (q *Request) Part(off uint64) (key, end uint64) {
	shift := q.v.shift - q.v.order + q.run.First.Order() // the view's order may have changed meanwhile
	skew := q.v.r.skew(shift)
	i := (skew + off) >> shift
	return q.Key(uint32(i - q.run.First.Index())), (i+1)<<shift - skew
}

// Whole returns how many of n bytes at off end where a bucket does: as many as there are, or else the first bucket's, which may be more than n.
func (v *View) Whole(off, n uint64) uint64 {
	if end := (v.skew + off + n) >> v.shift << v.shift; end > v.skew+off {
		return end - v.skew - off
	}
	return v.End(off) - off
}

// Cut notes that what follows is the rest of a use that the end of a bucket has cut: its caller asks for one bucket at a time.
func (v *View) Cut() { v.m.cuts++ }

// End returns where the bucket ends that the byte at off lies in, for the buckets that requests ask for now.
func (v *View) End(off uint64) uint64 {
	return min(v.r.Bytes, ((v.skew+off)>>v.shift+1)<<v.shift-v.skew)
}
