package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// domain is the NIC as one rank uses it.
type domain struct {
	f      *Fabric
	rank   int
	opened uint64
	sched  *sched.Sched
	caps   transport.Caps
	table  table
	cq     completions
	recvs  recvQueue
	eps    []*end         // by peer: the newest incarnation
	inc    map[int]uint32 // incarnations of connections that were made anew
	old    *end           // takes what is posted to older incarnations
	thirst []*end         // peers' ends whose next message waits for a receive buffer here
	woken  bool           // Wake was called and no Wait has taken it
	closed bool
	vain   int    // polls in vain since something last happened
	seen   uint64 // actions at the last of them
	waited uint64 // actions when Wait last returned
}

func newDomain(f *Fabric, rank int, opened uint64, s *sched.Sched) *domain {
	d := &domain{
		f: f, rank: rank, opened: opened, sched: s, caps: f.caps(), eps: make([]*end, len(f.ranks)),
		table: table{maxRegions: f.cfg.MaxRegions, maxPinned: f.cfg.MaxPinned, rng: f.sim.Rand()},
	}
	d.old = &end{d: d, peer: d, link: &link{state: linkBroken}, posted: list{own: true}}
	return d
}

// Caps implements transport.Domain.
func (d *domain) Caps() transport.Caps { return d.caps }

// Address implements transport.Domain.
func (d *domain) Address() []byte { return address(d.rank, d.opened) }

// Connect implements transport.Domain.
func (d *domain) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	if ctx.Err() != nil {
		return transport.EP{}, context.Cause(ctx)
	}
	if _, err := d.reach(peer, addr); err != nil {
		return transport.EP{}, err
	}
	if e := d.eps[peer]; e != nil && e.link.state == linkUp {
		return e.ep, nil
	}
	d.sched.Charge(d.f.model.Connect)
	b, err := d.reach(peer, addr) // anew: time has passed
	if err != nil {
		return transport.EP{}, err
	}
	if e := d.eps[peer]; e != nil && e.link.state == linkUp {
		return e.ep, nil
	}
	l := new(link)
	inc := max(d.incarnation(peer), b.incarnation(d.rank)) + 1
	e := d.attach(b, l, inc)
	if b != d {
		b.attach(d, l, inc)
	}
	return e.ep, nil
}

func (d *domain) reach(peer int, addr []byte) (*domain, error) {
	if d.closed {
		return nil, transport.ErrClosed
	}
	return d.f.at(peer, addr)
}

func (d *domain) incarnation(peer int) uint32 {
	if e := d.eps[peer]; e != nil {
		return e.ep.Incarnation
	}
	return d.inc[peer]
}

// attach makes this rank's end of a new connection with peer, in place of an older one.
func (d *domain) attach(peer *domain, l *link, inc uint32) *end {
	e := &end{
		d: d, peer: peer, link: l, ep: transport.EP{Index: uint32(peer.rank), Incarnation: inc},
		latency: d.f.model.latency(d.f.Node(d.rank) == d.f.Node(peer.rank)), posted: list{own: true},
	}
	l.ends[l.n] = e
	l.n++
	d.eps[peer.rank] = e
	return e
}

// Disconnect implements transport.Domain.
func (d *domain) Disconnect(ep transport.EP) error {
	if d.closed {
		return transport.ErrClosed
	}
	if int(ep.Index) >= len(d.eps) {
		return fmt.Errorf("disconnect: no endpoint %d", ep.Index)
	}
	if e := d.eps[ep.Index]; e != nil && e.ep == ep {
		e.breakUp(linkBroken, d.f.sim.Now())
		if d.inc == nil {
			d.inc = make(map[int]uint32)
		}
		d.inc[int(ep.Index)] = ep.Incarnation
		d.eps[ep.Index] = nil
	}
	return nil
}

var errEmptyRange = errors.New("register: a range of no bytes")

// Register implements transport.Domain.
func (d *domain) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if d.closed {
		return transport.Region{}, transport.ErrClosed
	}
	if r.Bytes <= 0 || r.Base == nil {
		return transport.Region{}, errEmptyRange
	}
	d.sched.Charge(d.f.model.Register.of(r.Bytes))
	if d.closed {
		return transport.Region{}, transport.ErrClosed
	}
	pub, err := d.table.add(r, a)
	if err == nil {
		c := &d.f.counts
		c.Registrations++
		c.Pinned += int64(r.Bytes)
		c.PeakPinned = max(c.PeakPinned, c.Pinned)
	}
	return pub, err
}

// Deregister implements transport.Domain.
func (d *domain) Deregister(r transport.Region) error {
	if d.closed {
		return transport.ErrClosed
	}
	bytes, err := d.table.remove(r)
	if err != nil {
		return err
	}
	d.f.counts.Deregistrations++
	d.f.counts.Pinned -= int64(bytes)
	d.sched.Charge(d.f.model.Deregister.of(bytes))
	return nil
}

var (
	errRecvKey = errors.New("post receive: the buffer is not covered by its LKey with the right to write")
	errClosed  = transport.ErrClosed
)

// PostRecv implements transport.Domain.
func (d *domain) PostRecv(bufs []transport.Recv) (int, error) {
	if d.closed {
		return 0, errClosed
	}
	d.sched.Charge(d.f.model.Send.Post)
	if d.f.virtual() {
		_ = d.sched.Sleep(context.Background(), 0) // messages that wait take the buffers at the time of the call, not before
	}
	if d.closed { // while time passed
		return 0, errClosed
	}
	for i := range bufs {
		if b := bufs[i].Buf; d.table.local(b.Mem, b.LKey, transport.LocalWrite) == nil {
			return d.addRecvs(bufs[:i]), errRecvKey
		}
	}
	return d.addRecvs(bufs), nil
}

func (d *domain) addRecvs(bufs []transport.Recv) int {
	n := 0
	for n < len(bufs) && d.recvs.owned < d.f.cfg.MaxRecv {
		d.recvs.add(bufs[n])
		n++
	}
	d.quench()
	return n
}

// takeBack gives a receive buffer that a message has taken and not used to the next one.
func (d *domain) takeBack(r transport.Recv) {
	d.recvs.putBack(r)
	d.quench()
}

// quench has those messages look again that wait for a receive buffer.
func (d *domain) quench() {
	thirsty := d.thirst
	d.thirst = nil
	for _, e := range thirsty {
		e.dry = false
		e.serve()
	}
}

// manyVain is how many polls in vain, without anything happening between them, take time: a program that asks again
// and again whether something is done must not stop the world.
const manyVain = 16

// Poll implements transport.Domain.
func (d *domain) Poll(cq []transport.Completion) (int, error) {
	if d.closed {
		return 0, errClosed
	}
	n, recvs := d.cq.pop(cq)
	d.recvs.owned -= recvs
	if n > 0 {
		d.vain = 0
		d.sched.Charge(time.Duration(n) * d.f.model.Reap)
		return n, nil
	}
	if !d.f.virtual() {
		return 0, nil
	}
	if now := d.f.sim.Counts().Events; now != d.seen {
		d.seen, d.vain = now, 0
	}
	if d.vain++; d.vain == manyVain {
		d.vain = 0
		_ = d.sched.Sleep(context.Background(), max(manyVain*d.f.model.Poll, 1)) // ends early only where the world has ended
	}
	return 0, nil
}

// Wait implements transport.Domain.
func (d *domain) Wait(ctx context.Context) error {
	if events := d.f.sim.Counts().Events; events == d.waited && !d.woken {
		// Somebody else takes the completions that it has been told of, but needs time for it.
		_ = d.sched.Sleep(ctx, max(d.f.model.Poll, 1))
	}
	err := d.sched.WaitUntil(ctx, func() bool { return d.closed || d.woken || d.cq.completions > 0 })
	d.waited = d.f.sim.Counts().Events
	switch {
	case d.closed:
		return errClosed
	case err != nil:
		return err
	}
	d.woken = false
	return nil
}

// Wake implements transport.Domain.
func (d *domain) Wake() {
	d.woken = true
	d.sched.Ring()
}

// Close implements transport.Domain. The peers hear of it when the word can have reached them.
func (d *domain) Close() error {
	if d.closed {
		return errClosed
	}
	d.leave(d.f.sim.Now() + d.f.model.Latency)
	return nil
}
