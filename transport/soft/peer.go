package soft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// seat is a rank's place in the domain, whoever sits there: the operations posted to it.
type seat struct {
	rank int
	p    atomic.Pointer[peer] // the newest opening of that rank's domain known here

	mu        sync.Mutex // held while a peer is attached
	old       []*peer    // guarded by mu: earlier openings, to be closed with the domain
	receiving atomic.Bool
	newest    atomic.Uint32 // incarnation of the newest connection

	// Posters fill the ring under domain.mu, the engine empties it.
	ring     []slot
	inline   []byte // maxInline bytes for each slot
	mask     uint64
	_        [lineBytes]byte
	tail     atomic.Uint64 // operations posted
	inflight atomic.Int64  // posted and not yet reported, at most MaxPost

	_ [lineBytes]byte

	// Of whoever performs; see help.go.
	head    uint64        // operations finished
	sent    atomic.Uint64 // operations handed to the peer's engine or finished
	offset  int           // bytes moved of the operation at sent
	moved   bool          // the operation at sent has been performed and waits for its time
	inBusy  bool          // in the engine's list
	inboxed bool          // the peer may have asked for something
	served  *peer         // whom sawGone is about
	sawGone bool          // the first operation after the peer's end has been reported as such
}

// slot is one operation in a ring: a transport.Op, with what most operations need on its first two cache lines.
type slot struct {
	Kind  transport.Kind
	Flags uint8
	NSGE  uint8
	bulk  bool // more than a poster moves itself
	heavy bool // more than a poller moves at once
	EP    transport.EP
	Imm   uint32

	RAddr, RKey        uint64
	Cookie, Arg0, Arg1 uint64

	due   int64 // when it may be reported, in nanoseconds of the rank's clock; 0: at any time
	first [1]transport.SGE
	small [smallInline]byte // the payload of a short inline operation
	rest  [3]transport.SGE
	begin int64  // when it may be performed
	seq   uint64 // of its request in the peer's board
}

// set makes sl the operation op.
func (sl *slot) set(op *transport.Op) {
	sl.Kind, sl.Flags, sl.NSGE, sl.EP, sl.Imm = op.Kind, op.Flags, op.NSGE, op.EP, op.Imm
	sl.RAddr, sl.RKey, sl.Cookie, sl.Arg0, sl.Arg1 = op.RAddr, op.RKey, op.Cookie, op.Arg0, op.Arg1
	if op.NSGE > 0 {
		sl.first[0] = op.SGE[0]
	}
	for i := 1; i < int(op.NSGE); i++ {
		sl.rest[i-1] = op.SGE[i]
	}
}

// pieces returns the local memory of an operation; room is used where it is more than one piece.
func (sl *slot) pieces(room *[4]transport.SGE) []transport.SGE {
	if sl.NSGE <= 1 {
		return sl.first[:sl.NSGE]
	}
	room[0] = sl.first[0]
	copy(room[1:], sl.rest[:sl.NSGE-1])
	return room[:sl.NSGE]
}

// clear lets go of the local memory.
func (sl *slot) clear() {
	sl.first[0].Mem.Base = nil
	for i := 1; i < int(sl.NSGE); i++ {
		sl.rest[i-1].Mem.Base = nil
	}
}

// smallInline fills the second cache line of a slot.
const smallInline = 40

// peer is one opening of another rank's domain, or of this one's.
type peer struct {
	rank  int
	nonce nonce
	pid   int
	base  uint64 // of its board, there
	local bool   // of this very process: bytes are copied, not moved by the kernel
	self  bool

	board  board // the peer's
	inbox  board // this rank's, where the peer's requests lie
	bell   sched.Bell
	hazard *atomic.Uint64 // in the peer's board: which of its slots this rank's engine is inside
	link   *atomic.Uint64
	keys   []keyEntry     // of the peer's board
	state  *atomic.Uint64 // likewise
	life   *lifeline      // nil for peers of this process

	introduced atomic.Bool // the peer has answered
	dead       atomic.Bool // its process has ended
	buried     atomic.Bool // its end has been reported; set by the engine

	// The engine's own.
	asked  uint64 // requests written to the peer's board
	expect uint64 // the next request in this rank's board
}

// gone reports whether the peer performs nothing any more.
func (p *peer) gone() bool { return p.dead.Load() || p.state.Load() >= boardClosing }

// silent reports whether requests that the peer has not answered will never be.
func (p *peer) silent() bool { return p.dead.Load() || p.board.state().Load() == boardDrained }

// peers lists all openings this domain has attached.
func (d *domain) peers() []*peer {
	var all []*peer
	for r := range d.seats {
		s := &d.seats[r]
		s.mu.Lock()
		all = append(all, s.old...)
		if p := s.p.Load(); p != nil {
			all = append(all, p)
		}
		s.mu.Unlock()
	}
	return all
}

// attach returns the peer behind an address that has been proved, mapping its board if it is new. It fails with
// ErrPeerGone if that opening of the rank's domain is no more.
func (d *domain) attach(ctx context.Context, a address) (*peer, error) {
	s := &d.seats[a.rank]
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.stop.Load() {
		return nil, transport.ErrClosed // Close has been here, and nobody would end a new peer
	}
	old := s.p.Load()
	if old != nil && old.nonce == a.nonce {
		if old.gone() {
			return nil, fmt.Errorf("its NIC is closed: %w", transport.ErrPeerGone)
		}
		return old, nil
	}
	p, err := d.newPeer(a)
	if err != nil {
		return nil, err
	}
	if old == nil {
		s.p.Store(p)
	} else if err := d.replace(ctx, s, old, p); err != nil {
		p.drop(d)
		return nil, err
	}
	if p.life != nil {
		d.helpers.Add(1)
		d.sched.Go(func() { d.watch(p) })
	}
	d.alert()
	return p, nil
}

// replace has p, by which a rank has been opened anew, take the seat of an earlier opening. What was posted to that one is reported first. What it has asked
// for is forgotten, since p counts its requests from the first again: who performs may be at the last of them. Where the link lies on its board, which is new, it
// goes on from the incarnation of before: no endpoint of that one's is p's.
func (d *domain) replace(ctx context.Context, s *seat, old, p *peer) error {
	if err := d.retire(ctx, old); err != nil {
		return err
	}
	sp := d.sched.Begin(ctx, sched.What{Op: "connect", Peer: p.rank}, nil)
	defer sp.End()
	for !d.engine.hold() {
		if d.stop.Load() {
			return transport.ErrClosed
		}
		if err := sp.Step(); err != nil {
			return err
		}
	}
	defer d.engine.let()
	for i := range mailSlots {
		d.board.mail(p.rank, i).word(mailState).Store(mailWord(0, mailFree))
	}
	s.raise(linkInc(old.link.Load()))
	p.link.CompareAndSwap(linkWord(0, linkNone), linkWord(s.newest.Load(), linkNone))
	s.old = append(s.old, old)
	s.p.Store(p)
	return nil
}

// retire waits until the engine has reported the end of an earlier opening.
func (d *domain) retire(ctx context.Context, old *peer) error {
	if !old.gone() {
		if err := d.probe(old.pid, old.base, old.nonce); old.local || err == nil {
			return errors.New("another opening of this rank's NIC is still in use")
		}
		old.dead.Store(true)
	}
	d.alert()
	sp := d.sched.Begin(ctx, sched.What{Op: "connect", Peer: old.rank}, nil)
	defer sp.End()
	for !old.buried.Load() {
		if d.stop.Load() {
			return transport.ErrClosed
		}
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

// newPeer reaches for a peer's memory.
func (d *domain) newPeer(a address) (_ *peer, err error) {
	p := &peer{rank: int(a.rank), nonce: a.nonce, pid: int(a.pid), base: a.base, inbox: d.board}
	p.local = p.pid == os.Getpid()
	if p.self = p.rank == d.job.Rank; p.self {
		if a.nonce != d.me.nonce {
			return nil, fmt.Errorf("the address is of an earlier opening of this rank's NIC: %w", transport.ErrPeerGone)
		}
		p.board = d.board
		p.introduced.Store(true)
		p.wire(d)
		return p, nil
	}
	// The lifeline first: if the process at its end has the nonce, it is the one.
	if !p.local {
		if p.life, err = openLifeline(p.pid); err != nil {
			return nil, err
		}
	}
	m, err := d.mapBoard(a)
	if err == nil {
		p.board, err = openBoard(m, d.job.Size, a.nonce)
	}
	if err == nil && p.life != nil && p.life.ended() {
		err = fmt.Errorf("process %d has ended: %w", p.pid, transport.ErrPeerGone)
	}
	if err != nil {
		p.drop(d)
		return nil, err
	}
	p.wire(d)
	return p, nil
}

// mapBoard maps the memory behind an address, if it is still there.
func (d *domain) mapBoard(a address) (mem.Range, error) {
	if err := d.probe(int(a.pid), a.base, a.nonce); err != nil {
		return mem.Range{}, err
	}
	m, err := d.mapper.Map(a.token)
	if err != nil {
		if perr := d.probe(int(a.pid), a.base, a.nonce); errors.Is(perr, transport.ErrPeerGone) {
			return m, perr // it closed between the two
		}
		return m, err
	}
	return m, nil
}

// probe looks at the head of a board through the kernel, as every later copy will.
func (d *domain) probe(pid int, base uint64, n nonce) error {
	head := mem.Of(make([]uint64, headBytes/8))
	if err := readHead(pid, base, head); err != nil {
		return err
	}
	if head.Word64(offMagic).Load() != boardMagic || head.Word64(offNonce).Load() != n[0] || head.Word64(offNonce2).Load() != n[1] ||
		head.Word64(offState).Load() != boardOpen {
		return fmt.Errorf("process %d has closed this NIC, or is another process now: %w", pid, transport.ErrPeerGone)
	}
	return nil
}

// wire finds the words that the two ranks share.
func (p *peer) wire(d *domain) {
	me := d.job.Rank
	p.bell = p.board.bell()
	p.hazard = p.board.hazard(me)
	p.keys, p.state = p.board.keys(), p.board.state()
	p.link = p.board.link(me)
	if me < p.rank {
		p.link = d.board.link(p.rank)
	}
	p.hazard.Store(0) // an earlier opening of this rank may have died inside
}

// drop gives back what a peer that was not attached holds.
func (p *peer) drop(d *domain) {
	if p.life != nil {
		p.life.close()
	}
	if p.board.mem.Bytes > 0 && !p.self {
		_ = d.mapper.Unmap(p.board.mem) // it was mapped a moment ago
	}
}

// watch waits for the end of a peer's process.
func (d *domain) watch(p *peer) {
	defer d.helpers.Add(-1)
	if p.life.wait() {
		p.dead.Store(true)
		d.alert()
	}
}
