package verbs

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
	"gopgas/transport/verbs/internal/side"
)

// pair is this rank's end of one connection.
type pair struct {
	d    *domain
	peer *peer
	ep   transport.EP
	slot uint32
	qp   ibv.QP
	link *side.Link // nil: to this rank itself
	ring

	to     side.Address // whom the connection is with; written before the pair is the peer's newest
	serial uint64       // of the connection, the same at both ends
	psn    uint32

	state atomic.Uint32 // pairOpening, pairUp, pairEnded

	// Under domain.post.
	quiet uint32 // operations since the last that the NIC was asked to report

	// Written once by endLocked, before state says pairEnded.
	posted uint32 // records from here on never reached the NIC
	fault  fault
	why    *StatusError
	twice  bool          // the peer's NIC has not answered, like before, and nothing had got through since
	ending chan struct{} // closed by then

	// Under domain.poll.
	failed bool   // the record at the head failed, with device's status
	device uint32 // status
	vendor uint32

	drained atomic.Bool
	again   error // why the connection could not be made again; written before verdict
	verdict atomic.Uint32
	ripe    bool // in news.ripe
}

// States of a pair.
const (
	pairOpening = iota // its queue pair works; the peer has not said that its own does
	pairUp
	pairEnded
)

// Verdicts on the peer of a pair that has ended.
const (
	verdictNone = iota // nobody has looked yet
	verdictAlive
	verdictGone
)

// drainBit marks the ID of a pair's last operation; beside it, as in that of a record, stands the pair's slot.
const drainBit = 1 << 62

// Settings of a queue pair. Some devices take 7 retries for ever, so it is 6. A message waits for ever for a receive
// buffer; the link tells if the peer has died meanwhile.
const (
	retries    = 6
	rnrForEver = 7
	rnrTimer   = 12 // 0.64 ms
)

// newPair makes a queue pair for a connection with peer. It waits while too many old pairs are being drained.
func (d *domain) newPair(peer *peer) (*pair, error) {
	p := &pair{
		d: d, peer: peer, ring: newRing(d.sizes.post), ending: make(chan struct{}), psn: uint32(side.Number()) & (1<<24 - 1),
		qp: ibv.QP{Sends: uint32(d.sizes.post + 1), SGE: uint32(d.sizes.sge), Inline: uint32(d.caps.MaxInline)},
	}
	if err := d.table.reserve(p, d); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPair, err)
	}
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		d.table.drop(p)
		return nil, transport.ErrClosed
	}
	if err := ibv.CreateQP(&d.nic, &p.qp); err != nil {
		d.table.drop(p)
		return nil, fmt.Errorf("%w: make a queue pair: %w", errNoPair, err)
	}
	d.table.add(p)
	return p, nil
}

// path is how packets get to the other end, as the port, the sizes and the other end's card say: what only one of the two can do neither does.
func (d *domain) path(remote *side.Card, psn uint32) ibv.Path {
	path := ibv.Path{
		GID: remote.GID, RemoteNumber: remote.Number, RemotePSN: remote.PSN, LocalPSN: psn,
		MTU: min(d.port.state.MTU, uint32(remote.MTU)), RemoteLID: uint32(remote.LID), Port: uint8(d.port.number),
		GIDIndex: uint8(d.port.gid.Index), Reads: uint8(min(d.sizes.reads, int(remote.Reads))), DestReads: uint8(d.sizes.reads),
		Timeout: ackTimeout(d.patience), Retries: retries, RNRRetries: rnrForEver, RNRTimer: rnrTimer, PKeyIndex: uint16(d.port.pkey),
	}
	if d.port.state.LinkLayer == ibv.LinkEthernet {
		path.Global = 1
	}
	return path
}

// connect makes the queue pair ready to send to its other end.
func (p *pair) connect(remote *side.Card) error {
	d := p.d
	path := d.path(remote, p.psn)
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		return transport.ErrClosed
	}
	if err := ibv.ConnectQP(p.qp.Handle, &path); err != nil {
		return fmt.Errorf("connect queue pair %d with %d of rank %d: %w: %w", p.qp.Number, remote.Number, p.peer.rank, errRoute, err)
	}
	return nil
}

// card is what the other end needs to know of this one.
func (p *pair) card() *side.Card {
	d := p.d
	return &side.Card{
		Number: p.qp.Number, PSN: p.psn, GID: d.port.gid.Raw, LID: uint16(d.port.state.LID),
		MTU: uint8(d.port.state.MTU), Reads: uint8(d.sizes.reads),
	}
}

// end ends the pair for a reason, once: the first one counts. It does not wait.
func (p *pair) end(f fault, why *StatusError) {
	p.d.post.mu.Lock()
	defer p.d.post.mu.Unlock()
	p.endLocked(p.tail.Load(), f, why)
}

// endLocked ends the pair; records from posted on never reached the NIC. The caller holds domain.post.
func (p *pair) endLocked(posted uint32, f fault, why *StatusError) {
	if p.state.Load() == pairEnded {
		return
	}
	p.posted, p.fault, p.why = posted, f, why
	p.twice = f == faultSilent && p.peer.suspect.Swap(true) // while there is no later pair, of which that says nothing
	if p.why == nil {
		p.why = &StatusError{Op: "connection", Peer: p.peer.rank, Status: "ended", Cause: f.words(p.peer.rank)}
	}
	switch {
	case f == faultSilent, f == faultLost, f == faultPort, f == faultRefused && p.link != nil:
	case f == faultPeerClosed, f == faultAnew:
		p.verdict.Store(verdictGone)
	default:
		p.verdict.Store(verdictAlive)
	}
	p.state.Store(pairEnded)
	close(p.ending)
	if p.link != nil {
		p.link.Interrupt()
	}
	if p.d.closed.Load() {
		return // Close ends the queue pair itself
	}
	// All that is outstanding comes back as flushed, and behind it the drain.
	err := ibv.FailQP(p.qp.Handle)
	drain := [1]ibv.Send{{QP: p.qp.Handle, ID: drainBit | uint64(p.slot)<<32, Op: ibv.OpWrite, Flags: ibv.FlagSignaled}}
	if err != nil || ibv.Post(drain[:]) > 0 {
		p.drained.Store(true) // the device is beyond repair: nothing comes from it any more
		p.ripen()
	}
}

// attend sees a pair that is up, or about to be, through to its end: it listens to the link, tells the peer, has
// the queue pair drained and destroyed, and finds out whether the peer is there.
func (p *pair) attend() {
	d := p.d
	f := faultClosed
	if p.link != nil {
		f = listenTo(p.link)
	} else {
		<-p.ending
	}
	p.end(f, nil) // nothing, if it has ended already
	switch {
	case p.link == nil:
	case d.silent.Load():
		p.link.HangUp(0)
	default:
		p.link.HangUp(lastWord(p.fault))
	}
	p.peer.notify()
	if d.closed.Load() {
		return
	}
	if p.verdict.Load() == verdictGone {
		d.peerDown(p)
	}
	p.settle()
	if p.verdict.Load() == verdictNone {
		p.judge()
	}
}

// listenTo waits for the end of the connection and returns why it has ended; faultNone after interrupt.
func listenTo(l *side.Link) fault {
	f, err := l.Receive()
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return faultNone
	case err != nil:
		return faultLost
	case f.Word == side.WordClosing:
		return faultPeerClosed
	default:
		return faultPeerEnded
	}
}

// lastWord is what the peer is told of the end of a pair. What the peer has said first needs no answer.
func lastWord(f fault) side.Word {
	switch f {
	case faultLost, faultPeerClosed, faultPeerEnded:
		return 0
	case faultClosed:
		return side.WordClosing
	default:
		return side.WordEnded
	}
}

// A drain is reported within milliseconds. One that is not at so many looks, with such a pause between, is taken for forgotten.
const (
	drainLooks = 12
	drainPause = 50 * time.Millisecond
)

// settle has the device finish with the pair and ends its queue pair (W3). Where the drain is not reported the end of the queue pair says
// the same: then the device has finished with it, and nothing more comes of it.
func (p *pair) settle() {
	d := p.d
	for pause, looks := time.Millisecond/8, 0; !p.drained.Load() && looks < drainLooks; pause = min(2*pause, drainPause) {
		d.harvest()
		if !p.drained.Load() && d.sched.Sleep(d.ctx, pause) != nil {
			return // Close does it
		}
		if pause == drainPause {
			looks++
		}
	}
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		return
	}
	if !p.drained.Load() {
		p.destroy()
		d.harvest() // while the slot is this pair's
		p.drained.Store(true)
		d.table.remove(p)
		d.table.drop(p)
	} else {
		d.table.remove(p)
		d.table.drop(p) // before the queue pair's end, which takes some devices milliseconds
		p.destroy()
	}
	p.ripen()
}

// destroy ends the queue pair.
func (p *pair) destroy() {
	if err := ibv.DestroyQP(p.qp.Handle); err != nil {
		p.d.fail(fmt.Errorf("verbs: end queue pair %d: %w", p.qp.Number, err))
	}
}

// table is a domain's queue pairs.
type table struct {
	mu     sync.RWMutex
	slots  []atomic.Pointer[pair] // by slot, which is part of an operation's ID; written under mu
	number map[uint32]*pair       // by queue pair number
	free   []uint32
}

func (t *table) init(n int) {
	t.slots, t.number = make([]atomic.Pointer[pair], n), make(map[uint32]*pair)
	for i := n - 1; i >= 0; i-- {
		t.free = append(t.free, uint32(i))
	}
}

var errPairs = errors.New("too many connections are being ended at once")

// reserve finds a slot, and with it room in the completion queue (W1).
func (t *table) reserve(p *pair, d *domain) error {
	for try := 0; ; try++ {
		t.mu.Lock()
		if n := len(t.free); n > 0 {
			p.slot, t.free = t.free[n-1], t.free[:n-1]
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if try == 1000 {
			return errPairs
		}
		d.harvest()
		if d.sched.Sleep(d.ctx, time.Millisecond) != nil {
			return transport.ErrClosed
		}
	}
}

func (t *table) add(p *pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number[p.qp.Number] = p
	t.slots[p.slot].Store(p)
}

// remove forgets a pair whose completions have all been polled. Where its queue pair has ended before, its number may be another's by now.
func (t *table) remove(p *pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots[p.slot].Store(nil)
	if t.number[p.qp.Number] == p {
		delete(t.number, p.qp.Number)
	}
}

// drop gives a pair's slot back.
func (t *table) drop(p *pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, p.slot)
}

// take empties the table.
func (t *table) take() (all []*pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		if p := t.slots[i].Swap(nil); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// byHandle finds the pair of a queue pair.
func (t *table) byHandle(handle uint64) *pair {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range t.slots {
		if p := t.slots[i].Load(); p != nil && p.qp.Handle == handle {
			return p
		}
	}
	return nil
}

// byNumber finds the pair of a queue pair by the number that the device knows it by.
func (t *table) byNumber(number uint32) *pair {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.number[number]
}
