package tcp

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// domain is the TCP NIC of one rank.
type domain struct {
	cfg    Config
	job    transport.Config
	caps   transport.Caps
	stride int // every so many requests one is acknowledged though it reports nothing
	sched  *sched.Sched
	table  *softnic.Table

	me        address
	jobHash   [32]byte
	listeners []*net.TCPListener
	control   string // of congestion: the system's choice, for connections that leave the machine; set before there are any

	links []atomic.Pointer[link] // by rank: the newest
	stale *link                  // for older endpoints
	busy  atomic.Pointer[link]   // the link of the newest posts: Poll looks at it

	cq    completions
	recvs recvQueue
	later atomic.Bool // links that wait for a receive buffer should be told of one

	performed atomic.Uint64        // times that something was done for a peer, or a part of something long came
	asking    atomic.Pointer[link] // over which the newest of that came

	hushers atomic.Int32         // who polls without a pause
	hushed  atomic.Pointer[link] // whose reader sleeps meanwhile; nil: none
	lull    lull                 // who polls without a pause, and does not, by turns
	lefts   atomic.Int32         // links of which something is left to be sent

	empty    int          // Polls in a row that found nothing; the poller's
	woken    atomic.Bool  // Wake was called and no Wait has taken it
	sleeping atomic.Int32 // how who is in Wait or WaitSolicited sleeps
	bell     chan struct{}
	naps     sched.Naps // of who is in WaitSolicited

	open atomic.Pointer[[]*link] // those of all, for look

	stop    atomic.Bool
	ctx     context.Context // ends when the domain closes
	cancel  context.CancelFunc
	running atomic.Int64 // goroutines of this domain

	mu     sync.Mutex
	all    map[*link]struct{} // whose reader has not returned
	young  []net.Conn         // who has called, in the handshake, oldest first
	dialed []net.Conn         // this rank's own calls in the handshake
	mirror *link              // the far end of the connection with the own rank
	calls  []*call            // by rank: a connection being made
	last   []uint32           // by rank: the newest incarnation
}

func openDomain(ctx context.Context, cfg Config, c transport.Config, pins *softnic.Pins) (*domain, error) {
	if err := available(); err != nil {
		return nil, err
	}
	table, err := softnic.NewTable(pins, cfg.MaxRegions)
	if err != nil {
		return nil, err
	}
	ips, err := listenOn(c.Device, cfg.AcrossNodes)
	if err != nil {
		return nil, err
	}
	d := &domain{
		cfg: cfg, job: c, sched: c.Sched, table: table, stride: max(1, cfg.MaxPost/4),
		caps: transport.Caps{
			MaxInline: maxInline, MaxSGE: len(transport.Op{}.SGE), MaxMessage: cfg.MaxMessage, MaxPost: cfg.MaxPost,
			MaxRegions: table.Cap(), MaxPinned: pins.Limit(),
			Atomics64: true, AtomicsCPU: true, OrderedWrites: true, Sends: true, WriteImm: true, Busy: true,
		},
		jobHash: jobHash(c), links: make([]atomic.Pointer[link], c.Size),
		recvs: recvQueue{bufs: softnic.NewRecvs(cfg.MaxRecv)},
		bell:  make(chan struct{}, 1), naps: sched.NewNaps(), all: map[*link]struct{}{},
		calls: make([]*call, c.Size), last: make([]uint32, c.Size), lull: lull{bell: make(chan struct{}, 1)},
	}
	if d.caps.MaxPinned == 1<<63-1 {
		d.caps.MaxPinned = 0
	}
	d.stale = newStale(d)
	d.open.Store(&[]*link{})
	d.cq.reserve(cfg.MaxRecv + cfg.MaxPost + c.Size)
	var seed [8]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("random number: %w", err)
	}
	d.me = address{rank: uint32(c.Rank), instance: binary.LittleEndian.Uint64(seed[:])}
	if err := d.listen(ctx, ips); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	for _, l := range d.listeners {
		spare := openSpare()
		d.spawn(func() { d.accept(l, spare) })
	}
	d.spawn(d.keep)
	d.spawn(d.guard)
	return d, nil
}

func (d *domain) listen(ctx context.Context, ips []netip.Addr) error {
	for _, ip := range ips {
		lc := net.ListenConfig{Control: unpaced(func(control string) { d.control = control })}
		l, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(ip, 0).String())
		if err != nil {
			for _, l := range d.listeners {
				err = errors.Join(err, l.Close())
			}
			if short := transport.Shortage("listening on "+ip.String(), err); short != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
				return short
			}
			if errors.Is(err, syscall.EADDRNOTAVAIL) {
				return fmt.Errorf("listen on %s, which is no address of this host: name one of its own, or an interface, by PGAS_DEVICE: %w", ip, err)
			}
			return fmt.Errorf("listen on %s: %w", ip, err)
		}
		d.listeners = append(d.listeners, l.(*net.TCPListener))
		d.me.places = append(d.me.places, netip.AddrPortFrom(ip, l.Addr().(*net.TCPAddr).AddrPort().Port()))
	}
	return nil
}

// spawn starts a goroutine that Close waits for.
func (d *domain) spawn(f func()) {
	d.running.Add(1)
	d.sched.Go(func() {
		f()
		d.running.Add(-1)
		d.sched.Ring()
	})
}

func (d *domain) Caps() transport.Caps { return d.caps }

func (d *domain) Address() []byte { return d.me.append(nil) }

func (d *domain) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if d.stop.Load() {
		return transport.Region{}, transport.ErrClosed
	}
	reg, err := d.table.Add(r, a)
	if err == nil && d.stop.Load() { // Close may not have seen it
		_ = d.table.Remove(d.sched, reg)
		return transport.Region{}, transport.ErrClosed
	}
	return reg, err
}

// Deregister waits until no byte of the region is being received or sent any more.
func (d *domain) Deregister(reg transport.Region) error {
	if d.stop.Load() {
		return transport.ErrClosed
	}
	return d.table.Remove(d.sched, reg)
}

var errRecvKey = errors.New("post receive: the buffer is not covered by its LKey with the right to write")

func (d *domain) PostRecv(bufs []transport.Recv) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	var err error
	for i := range bufs {
		if b := bufs[i].Buf; !d.table.Local(b.Mem, b.LKey, transport.LocalWrite) {
			bufs, err = bufs[:i], errRecvKey
			break
		}
	}
	n := d.recvs.add(bufs)
	if n > 0 {
		d.callWaiting()
	}
	return n, err
}

// callWaiting asks peers again for messages that had to wait, as many as there are buffers.
func (d *domain) callWaiting() {
	for told := 0; ; {
		l := d.recvs.next(told)
		if l == nil {
			return
		}
		if l.callAgain() {
			told++
		}
	}
}

// report puts an entry into the completion queue; ring wakes who waits for it.
func (d *domain) report(e entry) { d.cq.push(e) }

func (d *domain) ring() {
	if how := d.sleeping.Load(); how != awake && d.hasFor(how) {
		d.wake()
	}
	d.sched.Ring()
}

// patience is how many Polls in a row must find nothing before Poll looks at the socket: who looks once and then
// sleeps in Wait is served by the reader.
const patience = 1

// others is how many looks at the newest link there are for one at another.
const others = 4

// Poll takes what is there. Where nothing is, it looks itself whether an answer has come to the newest posts.
func (d *domain) Poll(cq []transport.Completion) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	n, recvs := d.cq.pop(cq)
	if n > 0 || len(cq) == 0 {
		d.empty = 0
	} else if d.empty++; d.empty > patience && d.look() {
		n, recvs = d.cq.pop(cq)
	}
	if recvs > 0 {
		d.recvs.polled(recvs)
	}
	return n, nil
}

// look reads from the link of the newest posts, if an answer is to be expected there, or, for who lingers, from that of the newest requests, and now and then
// from another one, whose reader may wait for a processor that the poller has.
func (d *domain) look() bool {
	unpaused := d.hushers.Load() > 0
	l := d.busy.Load()
	if l == nil || l.inflight.Load() == l.lazy.Load() { // those of a lazy kind that are over and not polled yet make no more of it
		l = nil
		if unpaused {
			l = d.asking.Load()
		}
	}
	if unpaused && d.lefts.Load() > 0 {
		d.help()
	}
	if l != nil {
		if unpaused {
			d.hush(l)
		}
		l.look()
	}
	if d.empty%others == 0 {
		if open := *d.open.Load(); len(open) > 0 {
			open[d.empty/others%len(open)].look()
		}
	}
	return d.cq.count.Load() > 0
}

// look reads what has come, unless somebody else does.
func (l *link) look() {
	if !l.alive.Load() || !l.rmu.TryLock() {
		return
	}
	if !l.rests() {
		_ = l.raw.Control(l.pollFn) // an error: the link has ended, and its reader reports it
	}
	l.rmu.Unlock()
}

// Performed implements sched.Server.
func (d *domain) Performed() uint64 { return d.performed.Load() }

// Close tells the peers, ends all connections and waits until nothing of this domain runs any more.
func (d *domain) Close() error {
	d.mu.Lock()
	first := !d.stop.Swap(true)
	links := make([]*link, 0, len(d.all))
	for l := range d.all {
		links = append(links, l)
	}
	young := append(d.young, d.dialed...)
	d.young, d.dialed = nil, nil
	d.mu.Unlock()
	if !first {
		return transport.ErrClosed
	}
	d.cancel()
	d.wake()
	d.sched.Ring()
	var errs []error
	for _, l := range d.listeners {
		errs = append(errs, l.Close())
	}
	for _, c := range young {
		_ = c.Close() // it was in the middle of a handshake
	}
	for _, l := range links {
		l.farewell()
	}
	sp := d.sched.Begin(context.Background(), sched.What{Op: "close tcp", Peer: -1}, nil)
	for d.running.Load() > 0 {
		_ = sp.Step() // without a context that ends and a watch there is no error
	}
	sp.End()
	for _, reg := range d.table.Regions() {
		errs = append(errs, d.table.Remove(d.sched, reg))
	}
	return errors.Join(errs...)
}

// farewell says, if the socket takes it at once, that this rank closes, and cuts the link.
func (l *link) farewell() {
	l.mu.Lock()
	if l.state == stateUp {
		l.bye = wire.ByeClosed
		l.endLocked(endSaid)
	}
	l.mu.Unlock()
	l.awaitReader()
	l.flush()
	l.end(endClose)
}
