package hose

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"gopgas/firehose"
	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/regmgr"
)

// NIC is what a Set needs of the engine beside its lock. A Set calls none of it while it holds that.
type NIC interface {
	// Gone returns why rank is gone, or nil.
	Gone(rank int) error
	// Parted reports whether this rank has parted from all others: nothing of them is in flight any more.
	Parted() bool
	// WaitUntil returns when cond holds, with the poller's work done meanwhile, or with an error when rank is gone, the
	// NIC is closed or ctx has ended. cond waits for nothing. The rank -1 stands for no single one.
	WaitUntil(ctx context.Context, op string, rank int, cond func() bool) error
	// Send sends one message, whose end is told to Answered with cookie; sent is false where there is no room, or no
	// connection, now. It waits for nothing. To a rank that is gone it sends nothing, and says so to nobody.
	Send(rank int, k Kind, body []byte, cookie uint64) (sent bool, err error)
	// Drop ends the messages of Sets to rank that are under way and returns their cookies; none of them arrives any more.
	Drop(rank int) []uint64
	// Wake has the poller look again, whoever that is. It waits for nothing.
	Wake()
	// Store writes src to exposed memory of this rank, a word as one.
	Store(dst, src mem.Range)
	// Model is what registrations cost with this NIC: it may measure that.
	Model() (cost.Model, error)
}

// Config is what a Set is made of.
type Config struct {
	Size       int   // ranks of the world
	Bytes      int64 // that may be registered for others and for this rank's own transfers together
	Regions    int   // that the NIC can have; 0: without limit
	Payload    int   // of a message, bytes: at least firehose.LeastPayload
	Pieces     int   // operations that are under way at once; they are numbered from 0
	Sched      *sched.Sched
	Registered *regmgr.Manager // whose budget Bytes is
	Lock       sync.Locker     // the engine's, under which pieces are taken and given back
	NIC        NIC
	Unanswered error // why firehoses end where the owner of memory could not deliver an answer
}

// Set is the firehoses of one rank: those that it holds on others' memory, and those that others hold on its own. Methods
// whose names end in Locked want Config.Lock held, the others take it where they need it. New is the only way to make one.
type Set struct {
	size       int
	sched      *sched.Sched
	reg        *regmgr.Manager
	lock       sync.Locker // the engine's
	nic        NIC
	unanswered error

	budget firehose.Budget
	server *firehose.Server

	holder *firehose.Holder   // under lock, with all below
	q      []firehose.Request // by piece
	out    []outgoing
	asked  []bool // by rank: moves were sent there
	ahead  *outlook
	part   firehose.Request // of Fetch, in no call but it
	costs  firehose.Costs
	fixed  int     // not 0: the order of the buckets of new views, plus one
	known  bool    // costs were asked for
	trip   float64 // the shortest move so far, without registrations, nanoseconds; 0: none

	fetchers sync.Pool // of *fetcher

	work  atomic.Bool // moves may have to be sent
	mu    sync.Mutex
	parts map[uint32]mem.Range // under mu, with all below
	next  uint32
	keys  map[uint64]lent             // by ID
	lives map[uint32]*regmgr.Lifetime // of parts
}

// Far is another rank's memory that is registered in buckets, as this rank sees it.
type Far struct {
	rank  int
	start uint64 // its first byte's address at its owner
	r     firehose.Range
	v     *firehose.View // what the holder knows of r, once it was asked; under the engine's lock
	bare  bool           // it is not registered, and there are no buckets
}

// rangeOf is memory as the accounts know it, by the address that its owner has it at. Its buckets are counted from its first page: a program
// lays out what it exposes by offsets, so what it puts at multiples of a size does not lie across the end of a bucket, as it would where
// the kernel happened to map it. Of the address only the place in a page counts, because two buckets must not share one.
func rangeOf(id uint32, start, bytes uint64) firehose.Range {
	return firehose.Range{ID: id, Start: start % uint64(os.Getpagesize()), Bytes: bytes}
}

// Bare is memory of which nothing is registered and nothing will be: every question for a bucket is refused. A Set that is nil answers
// for it too.
func Bare(rank int) *Far { return &Far{rank: rank, bare: true} }

// Bare reports whether there are no buckets.
func (f *Far) Bare() bool { return f.bare }

// NewFar returns memory of a rank, by the number and the place that it told.
func NewFar(rank int, id uint32, start, bytes uint64) *Far {
	return &Far{rank: rank, start: start, r: rangeOf(id, start, bytes)}
}

// New makes the firehoses of a rank. The error wraps firehose.ErrLimits where messages are too short, or no budget can be made.
func New(c Config) (*Set, error) {
	page := int64(os.Getpagesize())
	l := firehose.Limits{Ranks: c.Size, Pinnable: c.Bytes, Page: page, Unit: max(32<<10, page)}
	for c.Regions > 0 && l.Pinnable/l.Unit > int64(c.Regions)/2 {
		l.Unit *= 2 // each bucket is a registration
	}
	b, err := firehose.Split(l)
	if err != nil {
		return nil, err
	}
	h := &Set{
		size: c.Size, sched: c.Sched, reg: c.Registered, lock: c.Lock, nic: c.NIC, unanswered: c.Unanswered,
		budget: b, q: make([]firehose.Request, c.Pieces), next: 1,
		parts: make(map[uint32]mem.Range), keys: make(map[uint64]lent), lives: make(map[uint32]*regmgr.Lifetime), asked: make([]bool, c.Size),
	}
	h.server = firehose.NewServer(b, (*registrar)(h), c.Registered.Uses)
	c.Registered.Share(h)
	if h.holder, err = firehose.NewHolder(firehose.HolderConfig{Budget: b, Payload: c.Payload}); err == nil {
		h.foresee()
	}
	return h, err
}

// Hash stands for how this rank divides its budget; that all divide theirs alike Agree checks.
func (h *Set) Hash() uint64 { return h.budget.Hash() }

// Agree checks that all ranks divide their budgets as this one does; by rank, 0 where there is none. The first call measures
// what a miss costs here.
func (h *Set) Agree(hashes []uint64) error {
	h.learn()
	return h.budget.Agree(hashes)
}

// Barred reports whether nothing of a rank's memory can be held from now on: there is no share for it, or the firehoses on it
// were given up.
func (h *Set) Barred(rank int) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.holder.Barred(rank)
}

// Victims are the buckets that nobody holds any more, for who shares the budget in another way than New does.
func (h *Set) Victims() regmgr.Victims { return h }

// Oldest implements regmgr.Victims.
func (h *Set) Oldest() (uses uint64, ok bool) { return h.server.Oldest() }

// Shed implements regmgr.Victims.
func (h *Set) Shed(bytes int64) (freed int64) {
	defer h.resume()
	return h.server.Shed(bytes)
}

// Unit returns the smallest bucket's size in bytes.
func (h *Set) Unit() int64 { return h.budget.Unit() }

// Stats returns what this rank's requests for other ranks' buckets met, and what it did for theirs.
func (h *Set) Stats() (origin firehose.HolderStats, target firehose.ServerStats) {
	h.lock.Lock()
	origin = h.holder.Stats()
	h.lock.Unlock()
	return origin, h.server.Stats()
}

// Foresight returns of how many uses of buckets the predictor was told, and of how many it was not since their call sites had gained
// nothing by it.
func (h *Set) Foresight() (told, untold uint64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	s := h.ahead.table.Stats()
	return s.Told, s.Untold
}

// Budget returns how the registrations of each rank are divided.
func (h *Set) Budget() firehose.Budget { return h.budget }

// viewLocked returns the view of f.
func (h *Set) viewLocked(f *Far) (v *firehose.View, err error) {
	if v = f.v; v == nil {
		v, err = h.holder.View(f.rank, f.r)
		if err == nil && h.fixed != 0 {
			err = h.holder.Fix(v, uint8(h.fixed-1))
		}
		if err == nil {
			f.v = v
		}
	}
	return v, err
}

// Leave gives up what this rank holds of memory that is about to be freed. It returns when the word of that is on its way: where this rank
// waits for nothing else nobody may look after it for long. If ctx ends before, it is sent when the poller comes by.
func (h *Set) Leave(ctx context.Context, fars []*Far) error {
	h.lock.Lock()
	for _, f := range fars {
		h.holder.Withdraw(f.rank, f.r.ID)
	}
	h.work.Store(true)
	h.lock.Unlock()
	return h.nic.WaitUntil(ctx, "free", nobody, func() bool { return h.nic.Parted() || !h.work.Load() })
}
