package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// domain is the loop-back NIC of one rank.
type domain struct {
	f      *Fabric
	rank   int
	opened uint64
	caps   transport.Caps
	sched  *sched.Sched
	table  *table
	recvs  recvQueue
	cq     completions

	stop  atomic.Bool
	gone  atomic.Bool // the agent has returned
	agent sched.Bell  // wakes the agent
	poll  sched.Bell  // wakes Wait
	woken atomic.Bool // Wake was called and no Wait has taken it
	words [4]atomic.Uint32

	mu   sync.Mutex
	rng  *rand.Rand
	eps  []atomic.Pointer[end] // by peer rank: the newest incarnation
	old  *end                  // takes what is posted to older incarnations; broken for ever
	ends atomic.Pointer[[]*end]
}

func newDomain(f *Fabric, rank int, opened uint64, s *sched.Sched) *domain {
	d := &domain{
		f: f, rank: rank, opened: opened, caps: f.cfg.caps(), sched: s, table: newTable(f.cfg, rank),
		recvs: recvQueue{bufs: softnic.NewRecvs(f.cfg.MaxRecv)},
		rng:   rand.New(rand.NewPCG(f.rng.Uint64(), uint64(rank))),
		eps:   make([]atomic.Pointer[end], len(f.ranks)),
	}
	d.agent = sched.NewBell(&d.words[0], &d.words[1])
	d.poll = sched.NewBell(&d.words[2], &d.words[3])
	broken := &link{}
	broken.breakUp(linkBroken)
	d.old = newEnd(&f.cfg, transport.EP{}, d, broken)
	d.ends.Store(&[]*end{d.old})
	d.makeRoom()
	return d
}

// makeRoom sizes the completion queue for all that may be outstanding (L1).
func (d *domain) makeRoom() {
	n := len(*d.ends.Load())
	d.cq.reserve(n*(d.f.cfg.MaxPost+1) + d.f.cfg.MaxRecv)
}

func (d *domain) Caps() transport.Caps { return d.caps }

func (d *domain) Address() []byte { return appendAddress(nil, d.rank, d.opened) }

func (d *domain) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	if err := ctx.Err(); err != nil {
		return transport.EP{}, context.Cause(ctx)
	}
	return d.f.connect(d, peer, addr)
}

func (d *domain) Disconnect(ep transport.EP) error { return d.f.disconnect(d, ep) }

func (d *domain) endOf(peer int) *end { return d.eps[peer].Load() }

// attach makes this rank's end of a new connection with peer, in place of an older one.
func (d *domain) attach(peer *domain, l *link, inc uint32) transport.EP {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.eps[peer.rank].Load(); e != nil {
		e.detached.Store(true)
	}
	e := newEnd(&d.f.cfg, transport.EP{Index: uint32(peer.rank), Incarnation: inc}, peer, l)
	ends := append(slices.Clone(*d.ends.Load()), e)
	d.ends.Store(&ends)
	d.makeRoom()
	d.eps[peer.rank].Store(e)
	d.agent.Ring()
	return e.ep
}

func (d *domain) detach(e *end) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.eps[e.ep.Index].Store(nil)
	e.detached.Store(true)
	d.agent.Ring()
}

// forget drops a detached end that the agent has emptied.
func (d *domain) forget(e *end) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.tail.Load() != e.head {
		return
	}
	ends := slices.DeleteFunc(slices.Clone(*d.ends.Load()), func(x *end) bool { return x == e })
	d.ends.Store(&ends)
}

var errEmptyRange = errors.New("register: a range of no bytes")

func (d *domain) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if d.stop.Load() {
		return transport.Region{}, transport.ErrClosed
	}
	if r.Bytes <= 0 || r.Base == nil {
		return transport.Region{}, errEmptyRange
	}
	return d.table.add(r, a)
}

func (d *domain) Deregister(r transport.Region) error {
	if d.stop.Load() {
		return transport.ErrClosed
	}
	return d.table.remove(r)
}

func (d *domain) PostRecv(bufs []transport.Recv) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	if !d.caps.Sends {
		return 0, fmt.Errorf("post receive: this NIC has no sends: %w", transport.ErrUnsupported)
	}
	for i := range bufs {
		if b := bufs[i].Buf; !d.table.local(b.Mem, b.LKey, transport.LocalWrite) {
			return d.addRecvs(bufs[:i]), errRecvKey
		}
	}
	return d.addRecvs(bufs), nil
}

var errRecvKey = errors.New("post receive: the buffer is not covered by its LKey with the right to write")

func (d *domain) addRecvs(bufs []transport.Recv) int {
	n := d.recvs.add(bufs)
	for i := range d.f.ranks {
		if p := d.f.ranks[i].Load(); p != nil && n > 0 {
			p.agent.Ring() // its agent may hold a message for this rank
		}
	}
	return n
}

func (d *domain) Poll(cq []transport.Completion) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	n, recvs := d.cq.pop(cq)
	if recvs > 0 {
		d.recvs.polled(recvs)
	}
	return n, nil
}

// waitLimit is how long a sleep may last before it looks again, by S1 of package sched.
const waitLimit = 2 * time.Millisecond

func (d *domain) Wait(ctx context.Context) error {
	for range yields {
		if d.cq.count.Load() > 0 || d.woken.Load() {
			break
		}
		runtime.Gosched() // an agent is soon done
	}
	_, err := d.sleep(ctx, &d.cq.count, math.MaxInt64)
	return err
}

// WaitSolicited is Wait for what peers have sent, and reports whether there may be some. It has no time of its own in a simulated world, where nobody
// calls it.
func (d *domain) WaitSolicited(ctx context.Context, limit time.Duration) (some bool, err error) {
	return d.sleep(ctx, &d.cq.recvs, d.sched.Now()+limit)
}

// sleep waits until there are some, or Wake, and reports true, or for the end of ctx or of the domain, or a time.
func (d *domain) sleep(ctx context.Context, some *atomic.Int32, until time.Duration) (bool, error) {
	for {
		seq := d.poll.Arm()
		switch {
		case d.stop.Load():
			d.poll.Disarm()
			return false, transport.ErrClosed
		case d.woken.Swap(false), some.Load() > 0:
			d.poll.Disarm()
			return true, nil
		case d.sched.Now() >= until:
			d.poll.Disarm()
			return false, nil
		case ctx.Err() != nil:
			d.poll.Disarm()
			return false, context.Cause(ctx)
		}
		d.poll.Wait(seq, waitLimit)
		d.poll.Disarm()
	}
}

func (d *domain) Wake() {
	d.woken.Store(true)
	d.poll.Ring()
}

// report puts an entry into the completion queue and wakes who waits for one.
func (d *domain) report(e entry) {
	d.cq.push(e)
	d.poll.Ring()
}

// Close takes the rank off the fabric. It returns when the agent has ended and no peer touches its memory.
func (d *domain) Close() error {
	if !d.f.leave(d) {
		return transport.ErrClosed
	}
	d.agent.Ring()
	d.poll.Ring()
	d.table.revokeAll()
	sp := d.sched.Begin(context.Background(), sched.What{Op: "close loopback", Peer: -1}, nil)
	defer sp.End()
	for !d.gone.Load() {
		_ = sp.Step() // without a context that ends and a watch there is no error
	}
	return nil
}
