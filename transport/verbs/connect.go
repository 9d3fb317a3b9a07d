package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/side"
)

// peer is what a domain knows of one rank.
type peer struct {
	rank    int
	cur     atomic.Pointer[pair] // the newest incarnation, ended or not; nil: there never was one
	last    atomic.Pointer[pair] // the incarnation before, for Explain
	suspect atomic.Bool          // its NIC did not answer, and nothing has got through since

	mu      sync.Mutex
	addr    side.Address  // whom the last dial was to
	serial  uint64        // of the newest connection
	dialing bool          // a Connect of this rank is at it
	changed chan struct{} // closed and renewed when something above, or the state of cur, has changed
}

func (p *peer) notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notifyLocked()
}

func (p *peer) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// installLocked makes q, a pair with the domain at to, the peer's newest, of the next incarnation, in place of an older one. Where that is one with
// another domain, the domain of the older one is gone.
func (p *peer) installLocked(q *pair, to side.Address, state uint32) {
	inc := uint32(1)
	if old := p.cur.Load(); old != nil {
		f := faultReplaced
		if old.to.Instance != to.Instance {
			f = faultAnew
		}
		old.end(f, nil) // of which nobody changes suspect any more
		if f == faultAnew {
			p.suspect.Store(false)
		}
		inc = old.ep.Incarnation + 1
		p.last.Store(old)
	}
	q.ep = transport.EP{Index: uint32(p.rank), Incarnation: inc}
	q.to, q.serial = to, p.serial
	q.state.Store(state)
	p.cur.Store(q)
	p.notifyLocked()
}

var (
	errYield    = errors.New("the peer is dialing too")
	errWrong    = errors.New("the address is another rank's")
	errTrouble  = errors.New("the peer could not make a queue pair that reaches this rank")
	errFull     = errors.New("the peer has no file descriptor left for a connection")
	errRoute    = errors.New("the device finds no way to the peer")
	errNoPair   = errors.New("there is no queue pair for it")
	errSelfAddr = errors.New("the address of this rank is not this domain's")
)

// step is what a Connect does next.
type step int

const (
	stepDial step = iota
	stepWait      // for what another is doing
	stepUse       // the connection there is
)

// nextLocked decides on a Connect to an instance of a peer whose newest pair is q; one with another instance is none. It looks at the pair's state once:
// a pair that comes up meanwhile would else be neither up nor coming up, and would be dialed over.
func (p *peer) nextLocked(q *pair, instance uint64) step {
	state := uint32(pairEnded)
	if q != nil && q.to.Instance == instance {
		state = q.state.Load()
	}
	switch {
	case state == pairUp:
		return stepUse
	case p.dialing || state == pairOpening:
		return stepWait
	default:
		return stepDial
	}
}

// retryPause is how long a dial that yielded waits for the peer's before it dials again.
const retryPause = 20 * time.Millisecond

// Connect returns the endpoint of a peer, and makes the connection if there is none: it dials the peer's listener,
// proves that it knows the job's secret, and exchanges queue pairs with it. Where nobody answers, or a link is down, it
// tries again while Provider.FailureTimeout lasts, and also where a process that is known to live refuses.
func (d *domain) Connect(ctx context.Context, rank int, addr []byte) (transport.EP, error) {
	switch {
	case d.closed.Load():
		return transport.EP{}, transport.ErrClosed
	case ctx.Err() != nil:
		return transport.EP{}, context.Cause(ctx)
	case rank < 0 || rank >= d.size:
		return transport.EP{}, fmt.Errorf("verbs: connect to rank %d of %d: %w", rank, d.size, errEndpoint)
	}
	a, err := side.ParseAddress(addr)
	if err == nil && int(a.Rank) != rank {
		err = errWrong
	}
	if err != nil {
		return transport.EP{}, fmt.Errorf("verbs: connect to rank %d: %w", rank, err)
	}
	p := &d.peers[rank]
	began := d.sched.Now()
	for {
		p.mu.Lock()
		q, changed := p.cur.Load(), p.changed
		switch p.nextLocked(q, a.Instance) {
		case stepUse:
			p.mu.Unlock()
			return q.ep, nil
		case stepWait:
			p.mu.Unlock()
			if err := d.await(ctx, changed, 0); err != nil {
				return transport.EP{}, err
			}
			continue
		case stepDial:
		}
		p.dialing, p.addr = true, a
		last := p.serial
		p.mu.Unlock()
		q, err := d.dial(ctx, p, a, last)
		p.mu.Lock()
		p.dialing = false
		p.notifyLocked()
		changed = p.changed
		p.mu.Unlock()
		switch {
		case err == nil:
			return q.ep, nil
		case d.closed.Load():
			return transport.EP{}, transport.ErrClosed
		case ctx.Err() != nil:
			return transport.EP{}, fmt.Errorf("verbs: connect to rank %d at %v: %w; the last try: %v", rank, a.At, context.Cause(ctx), err)
		case !errors.Is(err, errYield) && !d.mayPass(rank, err):
			return transport.EP{}, fmt.Errorf("verbs: connect to rank %d at %v: %w", rank, a.At, err)
		case !errors.Is(err, errYield) && d.sched.Now()-began > d.patience:
			return transport.EP{}, fmt.Errorf("verbs: connect to rank %d at %v: %w", rank, a.At, d.lateError(rank, err))
		}
		if err := d.await(ctx, changed, retryPause); err != nil {
			return transport.EP{}, err
		}
	}
}

// await waits for news of a peer, at most for limit, if that is not 0.
func (d *domain) await(ctx context.Context, changed chan struct{}, limit time.Duration) error {
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-changed:
		return nil
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.ctx.Done():
		return transport.ErrClosed
	}
}

// dial makes a connection from this side and installs its pair.
func (d *domain) dial(ctx context.Context, p *peer, a side.Address, last uint64) (*pair, error) {
	if p.rank == d.rank {
		if a.Instance != d.self.Instance {
			return nil, errSelfAddr
		}
		return d.connectSelf(p)
	}
	conn, err := d.dials.dial(ctx, d.zone(a.At))
	if err != nil {
		return nil, err
	}
	keep, stop := false, context.AfterFunc(ctx, func() { conn.Close() })
	defer func() {
		stop()
		d.dials.forget(conn)
		if !keep {
			conn.Close()
		}
	}()
	l, err := d.auth.Greet(conn, &side.Hello{From: d.self, ToRank: a.Rank, ToInstance: a.Instance, Last: last})
	if err != nil {
		return nil, goneIfCut(err)
	}
	q, err := d.newPair(p)
	if err != nil {
		return nil, err
	}
	installed, err := d.offer(p, q, l, a)
	if installed {
		keep = d.start(q.attend) // it sees the pair through to its end, which may have come already
	}
	if !keep {
		d.discard(q)
	}
	return q, err
}

// offer is the dialer's part after the proof: offer, accept, ready. The pair is the peer's newest before that hears
// ready: it may send a message at once, and who receives it may answer before this returns.
func (d *domain) offer(p *peer, q *pair, l *side.Link, a side.Address) (installed bool, err error) {
	if err := l.Send(side.Frame{Word: side.WordOffer, Card: *q.card()}); err != nil {
		return false, goneIfCut(err)
	}
	f, err := l.Receive()
	if err != nil {
		return false, goneIfCut(err)
	}
	if err := refusal(f.Word); err != nil {
		return false, err
	}
	if err := q.connect(&f.Card); err != nil {
		return false, err
	}
	if !p.take(q, l, a, f.Serial) {
		return false, errYield
	}
	if err = l.Send(side.Frame{Word: side.WordReady}); err == nil {
		err = l.Settled()
	}
	if err != nil {
		q.end(faultDisconnect, nil)
		return true, goneIfCut(err)
	}
	if !q.state.CompareAndSwap(pairOpening, pairUp) {
		l.Interrupt() // it has ended meanwhile, and settled took the interruption back
		return true, errYield
	}
	p.notify()
	return true, nil
}

// take installs a pair that this side has dialed for. The peer's word may have been long on its way: where its own dial has brought a newer connection
// meanwhile this one is at its end already.
func (p *peer) take(q *pair, l *side.Link, a side.Address, serial uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if serial <= p.serial {
		return false
	}
	p.serial = serial
	q.link = l
	p.installLocked(q, a, pairOpening)
	return true
}

// connectSelf connects a queue pair with itself.
func (d *domain) connectSelf(p *peer) (*pair, error) {
	q, err := d.newPair(p)
	if err != nil {
		return nil, err
	}
	if err := q.connect(q.card()); err != nil {
		d.discard(q)
		return nil, err
	}
	p.mu.Lock()
	p.installLocked(q, d.self, pairUp)
	p.mu.Unlock()
	if !d.start(q.attend) {
		return nil, transport.ErrClosed
	}
	return q, nil
}

// discard destroys a pair that was never used.
func (d *domain) discard(q *pair) {
	q.end(faultDisconnect, nil)
	d.start(q.settle)
}

// Disconnect ends an endpoint; it does not wait.
func (d *domain) Disconnect(ep transport.EP) error {
	if d.closed.Load() {
		return transport.ErrClosed
	}
	p := d.pairOf(ep)
	if p == nil {
		return fmt.Errorf("verbs: disconnect: %w", errEndpoint)
	}
	p.end(faultDisconnect, nil) // nothing where it has ended before
	return nil
}

// peerDown reports that the peer of a pair is gone.
func (d *domain) peerDown(p *pair) {
	d.tell(transport.Completion{EP: p.ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone})
}

// judge finds out whether the peer of a pair that broke without a word is there, by connecting once more, or by a knock
// where its NIC has answered. A peer that cannot be reached may be behind a link that is down: there it goes on trying
// while patience lasts.
func (p *pair) judge() {
	d := p.d
	gone := p.twice
	switch {
	case p.fault == faultRefused:
		gone = p.deserted()
	case !gone:
		patience := d.patience
		if p.fault != faultPort {
			patience = max(patience-max(silence, nicSilence(patience)), dialLimit/10)
		}
		ctx, cancel := context.WithTimeout(d.ctx, patience)
		defer cancel()
		for d.cut() && d.sched.Sleep(ctx, retryPause) == nil {
			// Not before this rank's own link is up again.
		}
		_, p.again = d.Connect(ctx, p.peer.rank, p.to.Append(nil))
		gone = d.ended(p.peer.rank, p.again)
	}
	if d.closed.Load() {
		return
	}
	if gone {
		p.verdict.Store(verdictGone)
		d.peerDown(p)
	} else {
		p.verdict.Store(verdictAlive)
	}
	p.ripen()
}

// silence is how long it takes at most to notice that a peer says nothing any more: keepAlive, or the NIC's retries.
const silence = 3 * time.Second

// dialLimit is how long one attempt to reach a peer's listener takes at most, in wall-clock time.
const dialLimit = 2 * time.Second

// hurry gives the next Accept no longer than retryPause.
func hurry(l *net.TCPListener) error { return l.SetDeadline(time.Now().Add(retryPause)) }
