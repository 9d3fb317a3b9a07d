package regmgr

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/predict"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Errors of Acquire, Reserve and Keep; match with errors.Is.
var (
	// ErrCopy: the memory is not registered and the caller should copy. It is no failure.
	ErrCopy = errors.New("not registered: copy instead")
	// ErrBudget: the budget has no room, under a policy that does not copy.
	ErrBudget = errors.New("budget of registered memory")
	// ErrReadOnly: the destination cannot be written.
	ErrReadOnly = errors.New("destination is read-only memory")
	// ErrLifetime: the range cannot be kept as asked.
	ErrLifetime = errors.New("lifetime of registered memory")
)

// Registrar registers memory; every transport.Domain is one.
type Registrar interface {
	Register(r mem.Range, a transport.Access) (transport.Region, error)
	Deregister(transport.Region) error
}

// Config is what a Manager is made of.
type Config struct {
	Policy    Policy
	Why       string // this policy, for Stats
	Registrar Registrar
	Sched     *sched.Sched // how callers wait for each other, and the clock
	// Bytes and Regions are the limits of the budget; 0 is none.
	Bytes   int64
	Regions int
	// HeapBytes limits what idle Go memory may stay registered, since its objects stay alive for it; 0: what the cache may have
	// of Bytes, or 1 GiB where Bytes is 0.
	HeapBytes int64
	// Threshold is the size in bytes below which transfers are copied; 0: LeastRegistered.
	Threshold int
	// Ahead makes Predictive predict; without it Predictive registers on demand.
	Ahead *Ahead
	// Costs are those of this machine and NIC; only the policy Predictive asks for them.
	Costs cost.Model
	// Quiet leaves garbage collections unwatched, as they are in virtual time: the owner calls Collected himself.
	Quiet bool

	// NoPin leaves Go objects unpinned. Never set it: it is for the test that shows the stale bytes which the pin prevents.
	NoPin bool
}

// Manager is the registered memory of one rank on one NIC. Make one with New.
type Manager struct {
	cfg    Config
	keeps  atomic.Bool // idle regions stay
	over   atomic.Bool // heapKept is above its limit: some were in use when room was made
	page   int
	budget *Budget

	uses     atomic.Uint64 // references taken, and collections; where uses are predicted the queue counts those that are over: see tick
	counts   counters
	reaping  atomic.Int32  // goroutines that reap
	stirring atomic.Int32  // registrations ahead of a use, and deregistrations, that are under way
	stirred  atomic.Uint64 // those that have ended
	closed   atomic.Bool

	victims atomic.Pointer[Victims]     // nil: nobody shares the budget
	exposed atomic.Pointer[[]*Lifetime] // of exposed memory; changed under mu, the slice never
	ahead   *aheader                    // under Predictive, with a helper; nil: none
	queue   *predict.Queue              // of uses, then: its producing side

	returning returning
	names     *mem.Names // of memory that the program uses, in virtual time; else nil

	index index // changed under mu, read without
	hints hints // of what the index would find

	mu        sync.Mutex
	idle      idleList
	heapBytes int64       // charged for regions on the Go heap
	heapKept  int64       // of those, for the ones that stay when they are idle
	lifetimes []*Lifetime // not overlapping, in no order; exposed memory apart
	spots     spots
	collected uint64    // the count of uses at the last garbage collection; 0: there was none
	stuck     []*Region // the NIC would not deregister them
	ceiling   ceiling   // what the NIC has refused
	refusal   error     // the first one
}

// New returns a manager. It needs Close before the NIC is closed, and Forget after that.
func New(c Config) (*Manager, error) {
	if c.Registrar == nil || c.Sched == nil {
		return nil, errors.New("registered memory needs a registrar and a scheduler")
	}
	if c.Policy < 0 || c.Policy >= policies {
		return nil, fmt.Errorf("policy of registration %d: want one of: %s", c.Policy, Policies())
	}
	if c.Bytes < 0 || c.Regions < 0 || c.HeapBytes < 0 || c.Threshold < 0 {
		return nil, fmt.Errorf("limits of registered memory below zero: %d bytes, %d regions, %d bytes of Go heap, threshold %d",
			c.Bytes, c.Regions, c.HeapBytes, c.Threshold)
	}
	if c.HeapBytes == 0 && c.Bytes == 0 {
		c.HeapBytes = 1 << 30
	}
	if c.Threshold == 0 {
		c.Threshold = LeastRegistered
	}
	c.Registrar = guarded{c.Registrar}
	m := &Manager{cfg: c, page: os.Getpagesize(), budget: NewBudget(c.Bytes, c.Regions, c.Sched.Now)}
	if c.Sched.Virtual() {
		m.names = mem.NewNames()
	}
	m.keeps.Store(c.Policy.keeps())
	if c.Ahead != nil && c.Policy == Predictive {
		if err := m.startAhead(*c.Ahead); err != nil {
			return nil, err
		}
	}
	if !c.Quiet && !c.Sched.Virtual() {
		watchCollections(m)
	}
	return m, nil
}

// Policy returns the policy in use.
func (m *Manager) Policy() Policy { return m.cfg.Policy }

// Budget returns the rank's budget.
func (m *Manager) Budget() *Budget { return m.budget }

// Names are what memory is remembered by in virtual time, where nothing may go by its address; nil in real time.
func (m *Manager) Names() *mem.Names { return m.names }

// Plan says how a transfer of so many bytes is registered.
func (m *Manager) Plan(bytes int) Plan { return m.cfg.Policy.PlanFor(bytes, m.cfg.Threshold) }

// Request is memory that a transfer needs registered.
type Request struct {
	Mem    mem.Range
	Access transport.Access // 0: the NIC only reads it; LocalWrite: a destination
	// Within is memory of the same owner around Mem that may be registered with it, for the whole pages that Mem lies on:
	// a slice up to its capacity. Empty: just Mem.
	Within mem.Range
	// Of is the hold of an earlier piece of the same transfer, where there is one: what the policy learns from is the
	// whole. It may have been released.
	Of *Hold

	ahead bool // for a use to come: no miss and no copy is counted
}

// Hold is a reference to registered memory, and what the policy must remember of the use until its end. Whoever begins an
// operation keeps one for it; the zero Hold is empty and ready. It is one operation's at a time.
type Hold struct {
	region *Region
	use    predict.Use
}

// LKey returns the key for SGEs that name the memory acquired.
func (h *Hold) LKey() uint64 { return h.region.key.LKey }

// RKey returns the key by which other ranks reach the memory, as far as the rights asked for allow.
func (h *Hold) RKey() uint64 { return h.region.key.RKey }

// Region returns the region held, nil where none is.
func (h *Hold) Region() *Region { return h.region }

// Acquire makes h hold a region that contains the request: the memory is registered with the rights asked for until Release.
// The error wraps ErrCopy where the caller should copy instead, ErrReadOnly for a destination that cannot be written, and
// ErrBudget under a policy that never copies; h stays empty then. It waits only for registrations and deregistrations.
func (m *Manager) Acquire(h *Hold, q Request) error {
	lo := q.Mem.Addr()
	hi := lo + uint64(q.Mem.Bytes)
	if r := m.hints.at(lo).Load(); m.ahead != nil {
		found := r != nil && r.serves(lo, hi, q.Access) // before the time is read, since what follows that waits for it
		m.ahead.called(&h.use, q.Of, m.names.Of(q.Mem), q.Access)
		if found && r.ref() {
			h.region = r
			return nil
		}
	} else if r != nil && r.serves(lo, hi, q.Access) && r.ref() {
		m.uses.Add(1)
		h.region = r
		return nil
	}
	return m.search(h, q)
}

// whole is the region that the transfer has of which this is a piece, if it is one for which that matters.
func (q *Request) whole(lo uint64) *Region {
	if q.Of == nil || q.Of.region == nil || !q.Of.region.alone || !q.Of.region.holds(lo, lo+uint64(q.Mem.Bytes), q.Access) {
		return nil
	}
	return q.Of.region
}

// search is Acquire where no hint helps.
func (m *Manager) search(h *Hold, q Request) error {
	lo := q.Mem.Addr()
	if r := q.whole(lo); r != nil && r.ref() {
		m.count()
		h.region = r
		return nil
	}
	if r := m.index.find(lo, lo+uint64(q.Mem.Bytes), q.Access); r != nil && r.ref() {
		m.hints.at(lo).Store(r) // under the reference, so before forget looks for it
		m.count()
		h.region = r
		return nil
	}
	if m.ahead != nil {
		return m.missAhead(h, q)
	}
	r, err := m.miss(q)
	h.region = r
	return err
}

// missAhead is miss where uses are predicted. The use remembers how long the registration has kept the caller.
func (m *Manager) missAhead(h *Hold, q Request) (err error) {
	begin := m.ahead.clock.Now()
	h.region, err = m.miss(q)
	h.use.Pay(m.ahead.clock.Now() - begin)
	return err
}

// Borrow is Acquire of a source that is registered already: it never registers anything, or waits, and reports false where it would have
// to. Under the policy Predictive it always is false: a use that its caller does not foresee teaches nothing.
func (m *Manager) Borrow(h *Hold, source mem.Range) bool {
	if m.ahead != nil {
		return false
	}
	lo := source.Addr()
	r := m.index.find(lo, lo+uint64(source.Bytes), 0)
	if r == nil || r.state() != ready || !r.ref() {
		return false
	}
	m.count()
	h.region = r
	return true
}

// count counts a reference, unless the queue of uses will.
func (m *Manager) count() {
	if m.ahead == nil {
		m.uses.Add(1)
	}
}

// tick is the clock of the idle list: it has moved on between two uses of which one came after the other.
func (m *Manager) tick() uint64 {
	n := m.uses.Load()
	if m.ahead != nil {
		n += m.queue.Heard()
	}
	return n
}

// taken is how many references have been taken, where so many are held now.
func (m *Manager) taken(held int) uint64 {
	if m.ahead != nil {
		return m.ahead.ended() + uint64(held)
	}
	others := m.counts.collections.Load() // first: each of them was counted before it was one
	return m.uses.Load() - others
}

// Release empties h. Nothing that used it is in flight any more. Where the policy, or the memory's owner, demands it the
// memory is no longer registered when Release returns from dropping its last reference.
func (m *Manager) Release(h *Hold) {
	r := h.region
	h.region = nil
	if m.ahead != nil {
		h.use.Pages = uint32(r.pages)
		h.use.Region = predict.Region(r.spot.id)
	}
	if r.unref(m.tick()) {
		switch {
		case r.once || !m.keeps.Load():
			if r.retire() {
				m.drop(r, &m.counts.released)
			}
		case m.over.Load():
			m.heapRoom(0, false)
		}
	}
	if p := m.ahead; p != nil { // done, without a call more
		m.queue.Put(&h.use)
		if p.posts() {
			p.post()
		}
	}
}

// Close gives up everything. Nothing may be referenced any more; the error names what is, or what the NIC would not
// deregister.
func (m *Manager) Close() error {
	m.closed.Store(true)
	if m.ahead != nil {
		if err := m.ahead.stop(); err != nil {
			return err
		}
	}
	m.waitFor("deregister", func() bool { return m.reaping.Load() == 0 })
	for m.evict(nil) {
	}
	u := m.budget.Usage()
	if m.mu.Lock(); len(m.idle.heap) > 0 {
		n := len(m.idle.heap)
		m.mu.Unlock()
		return fmt.Errorf("close the registered memory: %d of %d regions are still referenced", n, u.Regions)
	}
	m.mu.Unlock()
	if n := m.counts.stuck.Load(); n > 0 {
		return fmt.Errorf("close the registered memory: the NIC would not deregister %d regions; their memory stays pinned", n)
	}
	return nil
}

// Forget lets go of all memory without a word to the NIC, which is closed: pins that are left, because of references or of
// registrations that the NIC would not end, hold nothing up any more. A manager that is dropped without it may end the
// program, since the runtime does not forgive a pin that nobody can take back.
func (m *Manager) Forget() {
	m.closed.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range append(m.idle.heap, m.stuck...) {
		if r.pin != nil {
			r.pin.Unpin()
		}
	}
	m.idle.heap, m.stuck = nil, nil
}
