package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
	"gopgas/transport/verbs/internal/side"
)

// Provider opens verbs domains. The zero Provider is ready.
type Provider struct {
	// MaxPinned is how many bytes a domain may have registered at once; a page counts once for each registration.
	// 0: what RLIMIT_MEMLOCK allows.
	MaxPinned int64
	// FailureTimeout is how long a peer that nothing tells to be dead may be out of reach before it is called gone. The NIC
	// waits for an answer for up to a quarter of it, half a second at least.
	// 0: 5 s.
	FailureTimeout time.Duration

	tick time.Duration // between two looks for what the device has forgotten; 0: overdueTick
}

// Name returns "verbs".
func (Provider) Name() string { return "verbs" }

// domain is one port in use by one rank.
type domain struct {
	rank, size int
	sched      *sched.Sched
	port       port
	sizes      sizes
	caps       transport.Caps
	memlock    int64 // bytes that may be pinned; -1: no limit
	charged    bool  // the rings count against that
	budget     int64 // bytes that this domain may register; 0: no limit of its own
	patience   time.Duration
	tick       time.Duration    // of watchPairs
	job        transport.Config // of it, who tells of lives
	nic        ibv.NIC
	auth       side.Authority
	self       side.Address
	listener   net.Listener
	channel    *os.File // the completion channel's descriptor, for Go's poller
	async      *os.File // that of asynchronous events

	closed atomic.Bool
	silent atomic.Bool     // closing without a word, as a killed process does
	ctx    context.Context // ends with the domain
	cancel context.CancelFunc
	life   sync.RWMutex // held in write mode while the device's objects are ended
	wg     sync.WaitGroup

	peers   []peer // by rank
	stale   *pair  // takes what is posted to older incarnations; it never had a queue pair
	table   table
	regions regions
	recvs   recvQueue
	dials   dialSet

	post postSide
	poll pollSide
	news news
	wait waitSide
}

// Open opens Config.Device ("mlx5_0:1", "mlx5_0", or empty for the first port with a link) and listens for peers on the
// port's address.
func (v Provider) Open(ctx context.Context, c transport.Config) (transport.Domain, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size || c.Sched == nil {
		return nil, fmt.Errorf("verbs: open rank %d of %d: %w", c.Rank, c.Size, errConfig)
	}
	handle, p, err := openPort(c.Device)
	if err != nil {
		return nil, err
	}
	d := &domain{
		rank: c.Rank, size: c.Size, sched: c.Sched, port: p, memlock: memlock(), charged: pinsRings(sysDevices, p.device),
		budget: v.MaxPinned, patience: cmp.Or(v.FailureTimeout, defaultPatience), tick: cmp.Or(v.tick, overdueTick),
		nic: ibv.NIC{Context: handle}, auth: side.NewAuthority(c.Secret, c.Job),
		peers: make([]peer, c.Size), regions: regions{all: map[uint64]region{}}, job: transport.Config{Lives: c.Lives},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if err := d.open(); err != nil {
		d.cancel()
		d.release()
		return nil, fmt.Errorf("verbs: open %s: %w", p.name(), err)
	}
	return d, nil
}

// defaultPatience is the usual FailureTimeout.
const defaultPatience = 5 * time.Second

var errConfig = errors.New("a rank below the size and a scheduler are needed")

// open makes all that Close ends.
func (d *domain) open() error {
	var err error
	if d.sizes, err = plan(&d.port.limits, d.size, limitOf(d.memlock, d.size, d.sched.OneProcess())); err != nil {
		return err
	}
	d.nic.CQE, d.nic.Recvs, d.nic.RecvSGE = uint32(d.sizes.cqe), uint32(d.sizes.recvs), 1
	if err := ibv.Setup(&d.nic); err != nil {
		return fmt.Errorf("make a completion queue of %d entries and %d receives: %w", d.sizes.cqe, d.sizes.recvs,
			registerError(err, account{bytes: int64(64 * d.sizes.cqe), limit: d.memlock, pinned: pinned(), device: d.port.name()}))
	}
	inline, err := d.probeInline()
	if err != nil {
		return err
	}
	d.caps = d.makeCaps(inline)
	for r := range d.peers {
		d.peers[r].rank, d.peers[r].changed = r, make(chan struct{})
	}
	d.table.init(d.sizes.pairs)
	d.recvs.init(d.sizes.recvs)
	d.stale = &pair{d: d, peer: &d.peers[d.rank], ring: newRing(d.sizes.post)}
	d.stale.state.Store(pairEnded)
	d.stale.drained.Store(true)
	if err := d.openFiles(); err != nil {
		return err
	}
	if err := d.listen(); err != nil {
		return err
	}
	spare := openSpare()
	d.start(func() { d.serve(spare) })
	d.start(d.watchDevice)
	d.start(d.watchPairs)
	return nil
}

// start runs f beside and lets Close wait for it. It reports false where the domain is closed already.
func (d *domain) start(f func()) bool {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		return false
	}
	d.wg.Add(1)
	d.sched.Go(func() {
		defer d.wg.Done()
		f()
	})
	return true
}

// probeInline finds how large inline payloads may be, by asking for queue pairs.
func (d *domain) probeInline() (int, error) {
	for want := uint32(wantInline); ; want /= 2 {
		q := ibv.QP{Sends: uint32(d.sizes.post + 1), SGE: uint32(d.sizes.sge), Inline: want}
		err := ibv.CreateQP(&d.nic, &q)
		if err == nil {
			return int(min(q.Inline, wantInline)), ibv.DestroyQP(q.Handle)
		}
		if want == 0 {
			return 0, fmt.Errorf("make a queue pair for %d operations: %w", d.sizes.post+1, err)
		}
	}
}

func (d *domain) makeCaps(inline int) transport.Caps {
	l := &d.port.limits
	c := transport.Caps{
		MaxInline: inline, MaxSGE: d.sizes.sge, MaxMessage: int(min(d.port.state.MaxMessage, 1<<30)),
		MaxRegions: int(l.MaxRegions), MaxPost: d.sizes.post,
		Atomics64: l.Atomics != 0, AtomicsCPU: l.Atomics == atomicsGlobal, OrderedWrites: true,
		Sends: d.nic.Recvs != 0, WriteImm: d.nic.Recvs != 0,
	}
	if d.memlock >= 0 {
		c.MaxPinned = d.sizes.part(d.memlock, d.size, d.sched.OneProcess(), d.charged)
	}
	if d.budget > 0 && (c.MaxPinned == 0 || d.budget < c.MaxPinned) {
		c.MaxPinned = d.budget
	}
	return c
}

// Rings returns about how many bytes of the limit of locked memory the queues take in a world of so many ranks, when each is connected with each.
func (d *domain) Rings(ranks int) int64 {
	s, err := plan(&d.port.limits, ranks, limitOf(d.memlock, ranks, d.sched.OneProcess()))
	if err != nil || !d.charged {
		return 0 // there is no such world on this device, or they cost nothing
	}
	return s.rings(ranks)
}

// atomicsGlobal is the device's word for atomics that are atomic with the CPU's too.
const atomicsGlobal = 2

// Caps says what the device can do.
func (d *domain) Caps() transport.Caps { return d.caps }

// Address returns the listener's address and what tells this domain from others that listen there.
func (d *domain) Address() []byte { return d.self.Append(nil) }

// Close says goodbye to the peers, waits until all that runs beside has ended, and ends the device's objects.
func (d *domain) Close() error {
	if d.closed.Swap(true) {
		return transport.ErrClosed
	}
	d.life.Lock() // who has seen that it was open has started what it starts
	d.cancel()
	d.life.Unlock()
	d.listener.Close()
	d.async.Close()
	d.dials.close()
	for r := range d.peers {
		if p := d.peers[r].cur.Load(); p != nil {
			p.end(faultClosed, nil)
		}
	}
	d.Wake()
	d.wg.Wait()
	d.wait.mu.Lock() // nobody sleeps on the channel any more
	defer d.wait.mu.Unlock()
	d.wait.forget()
	d.life.Lock()
	defer d.life.Unlock()
	d.poll.mu.Lock()
	defer d.poll.mu.Unlock()
	d.post.mu.Lock()
	defer d.post.mu.Unlock()
	return d.release()
}

// release ends the device's objects, as far as they were made.
func (d *domain) release() error {
	var errs []error
	note := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, p := range d.table.take() {
		note("end a queue pair", ibv.DestroyQP(p.qp.Handle))
	}
	for id, g := range d.regions.all {
		note("end a registration", ibv.Deregister(g.handle))
		delete(d.regions.all, id)
	}
	for _, f := range []*os.File{d.channel, d.async} {
		if f != nil {
			f.Close() // the second is closed already where Close came this far
		}
	}
	note("end the queues", ibv.Teardown(&d.nic))
	note("close the device", ibv.Close(d.nic.Context))
	return errors.Join(errs...)
}
