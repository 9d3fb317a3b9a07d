package firehose

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Server keeps account of what peers hold of this rank's ranges, and registers accordingly. All methods may be called
// concurrently; none waits for anything but its Registrar, which is called without the lock.
type Server struct {
	b   Budget
	reg Registrar
	age func() uint64

	mu     sync.Mutex
	ranges map[uint32]*served
	at     index
	slab   []bucket
	free   []int32
	idle   chain // registered, used by nobody
	idleW  int64
	own    int64 // units charged to the owner: registered or about to be, with local uses or without any
	going  int64 // of these, being deregistered
	limit  int64 // of own: Budget.Victims
	peers  []account
	late   []deferred
	later  atomic.Int32 // their number, for who asks without the lock
	moving bool         // a move is being carried out
	away   int          // calls whose Registrar is at work
	stats  ServerStats
}

// served is a range that this rank exposes.
type served struct {
	r       Range
	closing bool
	n       int   // buckets in the table
	order   uint8 // of the buckets that a peer was given last
}

// account is what a peer holds.
type account struct {
	held int64 // units
	gone bool
}

// bucket is a bucket that is registered, or about to be or not to be.
type bucket struct {
	b       Bucket
	in      *served
	pin     Pin
	since   uint64 // when it fell idle, by Server.age
	local   int32  // uses by this rank
	remote  int32  // firehoses of peers: a count, not a set, so that moves may arrive in any order
	transit bool   // the Registrar is at it
	leaving bool   // to deregister it
	holder  holding
	others  []holding
}

// holding is how many firehoses a peer has on a bucket: for a moment more than one, if a move that takes it back
// arrives before the one that gives it up.
type holding struct {
	rank  int32
	count int32
}

// deferred is a move that had to be put aside. It is carried out as if it had arrived later.
type deferred struct {
	rank int
	m    Move
}

// NewServer returns the account of a rank that exposes nothing yet. age is the clock by which idle buckets age, for who
// compares them with other registrations; it takes no lock. nil: they have no age.
func NewServer(b Budget, reg Registrar, age func() uint64) *Server {
	if age == nil {
		age = func() uint64 { return 0 }
	}
	return &Server{b: b, reg: reg, age: age, ranges: make(map[uint32]*served), limit: b.Victims, peers: make([]account, b.Ranks)}
}

// Expose lets peers ask for buckets of r. Its memory must stay mapped until Withdraw has said that it is done.
func (s *Server) Expose(r Range) error {
	if err := r.check(s.b.Shift); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.unlock()
	if s.ranges[r.ID] != nil {
		return fmt.Errorf("%w: range %d is exposed already", ErrRange, r.ID)
	}
	s.ranges[r.ID] = &served{r: r}
	return nil
}

// txn is what one call has the Registrar do, as places in the slab. A place in transit is nobody else's.
type txn struct {
	fresh []int32 // to register
	out   []int32 // to deregister
	outW  int64   // their weight
	did   int     // fresh ones that are registered
}

// Serve carries out a move of rank and sets r to the answer. It returns false if a bucket is just being registered or
// deregistered by another call, or another move being carried out: then the move is kept, and Resume gives the answer later. If the answer says Stored the
// caller puts the bytes of m.Put into memory before it sends the answer.
func (s *Server) Serve(rank int, m *Move, r *Reply) (done bool) {
	s.mu.Lock()
	defer s.unlock()
	*r = Reply{ID: m.ID, Keys: r.Keys[:0]}
	if s.peers[rank].gone {
		r.Status = statusWithdrawn
		return true
	}
	r.Status = s.judge(rank, m)
	if r.Status != statusMalformed && s.mustWait(m) {
		s.late = append(s.late, deferred{rank, m.clone()})
		s.later.Store(int32(len(s.late)))
		return false
	}
	s.perform(rank, m, r)
	return true
}

// Resume gives the answer to one move that Serve has kept, with the move and its origin; ok is false while there is
// none. Whoever calls Serve calls it whenever it makes progress.
func (s *Server) Resume(r *Reply) (rank int, m Move, ok bool) {
	if s.later.Load() == 0 {
		return 0, Move{}, false
	}
	s.mu.Lock()
	defer s.unlock()
	for i, d := range s.late {
		status := s.judge(d.rank, &d.m)
		if status != statusMalformed && s.mustWait(&d.m) {
			continue
		}
		s.late = append(s.late[:i], s.late[i+1:]...)
		s.later.Store(int32(len(s.late)))
		s.stats.Deferred++
		*r = Reply{ID: d.m.ID, Keys: r.Keys[:0], Status: status}
		s.perform(d.rank, &d.m, r)
		return d.rank, d.m, true
	}
	return 0, Move{}, false
}

// Late reports whether there are moves that Serve has kept: who ends what they waited for has Resume called.
func (s *Server) Late() bool { return s.later.Load() != 0 }

// clone copies what lies in a message's buffer.
func (m *Move) clone() Move {
	return Move{
		ID: m.ID, New: append([]Run(nil), m.New...), Old: append([]Run(nil), m.Old...),
		Put: Put{m.Put.Range, m.Put.Off, append([]byte(nil), m.Put.Data...)},
	}
}

// judge returns how a move will be answered, registration aside. It changes nothing.
func (s *Server) judge(rank int, m *Move) Status {
	status := statusGranted
	var units int64
	for _, run := range m.New {
		if o := run.First.Order(); o > s.b.MaxOrder() || run.Weight() > s.b.Share-units {
			return statusMalformed
		}
		units += run.Weight()
		in := s.ranges[run.First.Range()]
		if in == nil || in.closing {
			status = statusWithdrawn
		} else if !in.r.has(s.b.Shift, run) {
			return statusMalformed
		}
	}
	for i, run := range m.Old {
		in := s.ranges[run.First.Range()]
		if in == nil || run.First.Order() > s.b.MaxOrder() || !in.r.has(s.b.Shift, run) || int64(run.Count) > s.b.Share {
			return statusMalformed
		}
		for k := range run.Count {
			at := s.at.find(run.At(k))
			if at < 0 || s.slab[at].count(rank) < 1 || s.slab[at].transit || repeated(m.Old[:i], run.At(k)) {
				return statusMalformed
			}
		}
	}
	if s.peers[rank].held+units-weigh(m.Old) > s.b.Share {
		return statusMalformed
	}
	if p := m.Put; len(p.Data) > 0 {
		if in := s.ranges[p.Range]; in == nil || in.closing {
			status = statusWithdrawn
		} else if !in.r.holds(p.Off, uint64(len(p.Data))) {
			return statusMalformed
		}
	}
	return status
}

// repeated reports whether b is named in runs.
func repeated(runs []Run, b Bucket) bool {
	for _, r := range runs {
		if r.contains(b) {
			return true
		}
	}
	return false
}

// mustWait reports whether a move cannot be carried out now. Two at once could register too much for a moment: what one
// has given up but not deregistered yet may be backed by a bucket that it shares with the other, who lets go of it.
func (s *Server) mustWait(m *Move) bool {
	if s.moving {
		return true
	}
	for _, run := range m.New {
		for i := range run.Count {
			if at := s.at.find(run.At(i)); at >= 0 && s.slab[at].transit {
				return true
			}
		}
	}
	return false
}

// perform carries out a move that was judged. It holds the lock but for the Registrar's time.
func (s *Server) perform(rank int, m *Move, r *Reply) {
	s.stats.Moves++
	if r.Status == statusMalformed {
		s.stats.Refused++
		return
	}
	s.moving = true
	var t txn
	granted := r.Status == statusGranted
	if granted {
		s.gain(rank, m.New, &t) // before Old: a bucket that falls free and is wanted again is not deregistered
	}
	s.lose(rank, m.Old, &t)
	s.overflow(&t)
	if err := s.execute(&t); err != nil {
		r.Status = statusRefused
		if !s.peers[rank].gone {
			s.lose(rank, m.New, &t)
		}
		s.undo(&t)
	}
	s.commit(&t)
	s.moving = false
	r.Stored = len(m.Put.Data) > 0 && granted // the CPU stores it, registered or not
	if r.Status != statusGranted {
		s.stats.Refused++
		return
	}
	for _, run := range m.New {
		for i := range run.Count {
			r.Keys = append(r.Keys, s.keyOf(run.At(i)))
		}
	}
}

// keyOf returns the key of a bucket; it is missing only if the origin was lost meanwhile, who will never see the answer.
func (s *Server) keyOf(b Bucket) uint64 {
	if at := s.at.find(b); at >= 0 {
		return s.slab[at].pin.Key
	}
	return 0
}
