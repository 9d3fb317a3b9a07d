package soft

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// domain is the soft NIC of one rank.
type domain struct {
	cfg    Config
	job    transport.Config
	caps   transport.Caps
	sched  *sched.Sched
	table  *softnic.Table
	mapper transport.Mapper

	me      address
	address []byte
	board   board
	bell    sched.Bell    // wakes the engine; in the board
	beds    atomic.Uint64 // times that its thread has lain down to sleep
	roused  atomic.Uint64 // which time it was when somebody of this rank wakened it last
	seats   []seat        // by rank

	cq      completions
	recvs   recvQueue
	starved atomic.Bool // a message waits for a receive buffer

	posted []atomic.Uint64 // ranks with new operations in their ring, a bit each
	hot    atomic.Int64    // the rank whose ring the engine looks at without being told by posted
	events atomic.Uint64   // counts what else the engine should look at: connections made, ended, peers dead

	longs   atomic.Uint64 // long operations that were posted
	from    atomic.Int32  // the processor from which the last one was, where the NIC is slowed
	seen    uint64        // of them, when somebody polled; the poller's
	vain    uint32        // polls in a row that found nothing since; the poller's
	crowded bool          // the threads of all ranks and engines are more than there are processors

	poll      sched.Bell   // wakes Wait
	bulk      atomic.Int64 // operations that are not brief, posted and not finished
	heavy     atomic.Int64 // of them, those for which a poller needs patience
	woken     atomic.Bool
	pollWords [2]atomic.Uint32

	stop    atomic.Bool
	ended   atomic.Bool  // the engine has returned
	users   atomic.Int64 // calls inside methods that use shared memory
	helpers atomic.Int64 // goroutines of this domain

	_      [lineBytes]byte
	mu     sync.Mutex // posting
	pace   pace       // guarded by mu
	_      [lineBytes]byte
	engine engine // the engine's own
}

func newDomain(cfg Config, c transport.Config, table *softnic.Table, mapper transport.Mapper, b board) *domain {
	d := &domain{
		cfg: cfg, job: c, sched: c.Sched, table: table, mapper: mapper, board: b, bell: b.bell(),
		caps: transport.Caps{
			MaxInline: maxInline, MaxSGE: len(transport.Op{}.SGE), MaxMessage: cfg.MaxMessage, MaxPost: cfg.MaxPost,
			Atomics64: true, AtomicsCPU: true, OrderedWrites: true, Sends: true, WriteImm: true, Busy: true,
		},
		seats:  make([]seat, c.Size),
		posted: make([]atomic.Uint64, (c.Size+63)/64),
		recvs:  recvQueue{bufs: softnic.NewRecvs(cfg.MaxRecv)},

		crowded: 2*c.Size > min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
	}
	for r := range d.seats {
		d.seats[r].rank = r
	}
	d.poll = sched.NewBell(&d.pollWords[0], &d.pollWords[1])
	d.cq.init(cfg.MaxPost + cfg.MaxRecv)
	d.hot.Store(int64(c.Rank))
	d.engine.init(d)
	return d
}

// enter begins a call that uses shared memory; Close waits for its leave.
func (d *domain) enter() bool {
	d.users.Add(1)
	if d.stop.Load() {
		d.users.Add(-1)
		return false
	}
	return true
}

func (d *domain) leave() { d.users.Add(-1) }

// alert has the engine look at everything.
func (d *domain) alert() {
	d.events.Add(1)
	d.bell.Ring()
}

func (d *domain) Caps() transport.Caps { return d.caps }

func (d *domain) Address() []byte { return append([]byte(nil), d.address...) }

func (d *domain) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if !d.enter() {
		return transport.Region{}, transport.ErrClosed
	}
	defer d.leave()
	reg, err := d.table.Add(r, a)
	if err != nil {
		return reg, err
	}
	d.board.publish(softnic.Slot(reg.RKey), reg.RKey, r, uint64(a))
	return reg, nil
}

func (d *domain) Deregister(reg transport.Region) error {
	if !d.enter() {
		return transport.ErrClosed
	}
	defer d.leave()
	return d.deregister(reg)
}

// deregister ends a registration when no engine is inside it any more: neither a peer's, whose hazard would
// say so, nor this rank's, which holds the region.
func (d *domain) deregister(reg transport.Region) error {
	h, err := d.table.Revoke(reg)
	if err != nil {
		return err
	}
	slot := softnic.Slot(reg.RKey)
	d.board.withdraw(slot)
	for r := range d.seats {
		if err := d.awaitExit(r, slot); err != nil {
			return err
		}
	}
	sp := d.sched.Begin(context.Background(), sched.What{Op: "deregister", Peer: -1}, nil)
	for !h.Idle() {
		_ = sp.Step() // no watch, no context that ends: no error
	}
	sp.End()
	return d.table.Free(h)
}

// awaitExit waits until rank r's engine is not inside a slot. A dead engine is inside nothing; that of a rank which is closing ends the chunk that it
// is at. One that lives and stays inside is stopped in the middle of a copy: its region stays locked for ever.
func (d *domain) awaitExit(r, slot int) error {
	hazard := d.board.hazard(r)
	inside := uint64(slot) + 1
	if hazard.Load() != inside {
		return nil
	}
	began := d.sched.Now()
	sp := d.sched.Begin(context.Background(), sched.What{Op: "deregister", Peer: r}, nil)
	defer sp.End()
	for hazard.Load() == inside {
		if p := d.seats[r].p.Load(); p == nil || p.silent() {
			return nil
		}
		if d.sched.Now()-began > d.cfg.FailureTimeout {
			return transport.NewOpError("deregister", r, fmt.Errorf("the peer is still copying after %v: its process is stopped", d.cfg.FailureTimeout))
		}
		_ = sp.Step()
	}
	return nil
}

var errRecvKey = errors.New("post receive: the buffer is not covered by its LKey with the right to write")

func (d *domain) PostRecv(bufs []transport.Recv) (int, error) {
	if !d.enter() {
		return 0, transport.ErrClosed
	}
	defer d.leave()
	var err error
	for i := range bufs {
		if b := bufs[i].Buf; !d.table.Local(b.Mem, b.LKey, transport.LocalWrite) {
			bufs, err = bufs[:i], errRecvKey
			break
		}
	}
	n := d.recvs.add(bufs)
	if n > 0 && d.starved.Load() {
		d.bell.Ring()
	}
	return n, err
}

func (d *domain) Poll(cq []transport.Completion) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	n, recvs := d.cq.pop(cq)
	if longs := d.longs.Load(); longs != d.seen {
		d.seen, d.vain = longs, 0
	}
	if n == 0 && d.engine.help(d.vain) {
		d.vain = 0
		n, recvs = d.cq.pop(cq)
	}
	if recvs > 0 {
		d.recvs.polled(recvs)
	}
	if n > 0 {
		d.vain = 0
	} else if d.vain++; d.crowded && d.vain%courtesy == 0 {
		sched.Yield() // what would bring something may need this processor
	}
	return n, nil
}

// Pace of Wait: how often it looks before it sleeps, and how long it sleeps before it looks whether its context
// has ended. Completions and Wake end the sleep at once.
const (
	waitSpins = 2000
	waitLimit = 20 * time.Millisecond
)

func (d *domain) Wait(ctx context.Context) error {
	for range waitSpins {
		if d.cq.ready() || d.woken.Load() || d.stop.Load() {
			break
		}
		sched.Pause()
	}
	for {
		seq := d.poll.Arm()
		// S2 of package sched: look once more after the announcement.
		switch {
		case d.stop.Load():
			d.poll.Disarm()
			return transport.ErrClosed
		case d.woken.Swap(false), d.cq.ready():
			d.poll.Disarm()
			return nil
		case ctx.Err() != nil:
			d.poll.Disarm()
			return context.Cause(ctx)
		}
		d.poll.Wait(seq, waitLimit)
		d.poll.Disarm()
	}
}

func (d *domain) Wake() {
	d.woken.Store(true)
	d.poll.Ring()
}

// report puts a completion into the queue and wakes who waits for one. s is nil for what holds no place.
func (d *domain) report(c transport.Completion, s *seat) {
	d.cq.push(entry{c, s})
	d.poll.Ring()
}

// Close takes the rank off. Its engine ends first, then the registrations, when no peer is inside them, then
// the memory that peers have mapped.
func (d *domain) Close() error {
	d.mu.Lock()
	first := !d.stop.Swap(true) // nobody posts after this
	d.mu.Unlock()
	if !first {
		return transport.ErrClosed
	}
	d.poll.Ring()
	d.bell.Ring()
	d.settle("close", func() bool { return d.users.Load() == 0 })
	d.board.state().Store(boardClosing)
	d.alert()
	d.settle("close", d.ended.Load)
	d.board.state().Store(boardDrained)
	var errs []error
	for _, p := range d.peers() {
		if !p.self {
			p.board.tell(d.job.Rank)
		}
	}
	for _, reg := range d.table.Regions() {
		errs = append(errs, d.deregister(reg))
	}
	for _, p := range d.peers() {
		if p.life != nil {
			p.life.close()
		}
	}
	d.settle("close", func() bool { return d.helpers.Load() == 0 })
	errs = append(errs, d.mapper.Close()) // with all that it has mapped
	return errors.Join(errs...)
}

// settle waits for what this domain's own goroutines are about to make true.
func (d *domain) settle(op string, cond func() bool) {
	sp := d.sched.Begin(context.Background(), sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !cond() {
		_ = sp.Step()
	}
}
