package soft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Connect maps the peer's board, shows it this rank's address, waits until the peer's engine has mapped this
// rank's in turn, and then sets the link up in one atomic step, so that two ranks that connect at once meet.
func (d *domain) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	if !d.enter() {
		return transport.EP{}, transport.ErrClosed
	}
	defer d.leave()
	if ctx.Err() != nil {
		return transport.EP{}, context.Cause(ctx)
	}
	ep, err := d.connect(ctx, peer, addr)
	if err != nil {
		return transport.EP{}, transport.NewOpError("connect", peer, err)
	}
	return ep, nil
}

func (d *domain) connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	a, err := parseAddress(addr, d.job.Job, d.job.Secret)
	if err != nil {
		return transport.EP{}, err
	}
	if int(a.rank) != peer || int(a.size) != d.job.Size {
		return transport.EP{}, fmt.Errorf("the address is of rank %d of %d, not of rank %d of %d", a.rank, a.size, peer, d.job.Size)
	}
	p, err := d.attach(ctx, a)
	if err != nil {
		return transport.EP{}, err
	}
	if err := d.introduce(ctx, p); err != nil {
		return transport.EP{}, err
	}
	s := &d.seats[peer]
	d.furnish(s)
	for {
		w := p.link.Load()
		if p.gone() {
			return transport.EP{}, fmt.Errorf("it has ended: %w", transport.ErrPeerGone)
		}
		if linkState(w) == linkUp {
			s.raise(linkInc(w))
			return transport.EP{Index: uint32(peer), Incarnation: linkInc(w)}, nil
		}
		if ep, ok := d.lift(s, p, w); ok {
			return ep, nil
		}
	}
}

// lift sets the link of a peer up if it still is as w says, and the peer is there then: the engine may have seen its end meanwhile, when there was no connection to
// report, and reports none that comes later.
func (d *domain) lift(s *seat, p *peer, w uint64) (ep transport.EP, ok bool) {
	inc := max(linkInc(w), s.newest.Load()) + 1
	up := linkWord(inc, linkUp)
	if !p.link.CompareAndSwap(w, up) {
		return ep, false
	}
	s.raise(inc)
	if p.gone() {
		p.link.CompareAndSwap(up, linkWord(inc, linkGone)) // else the engine has just reported it
		return ep, false
	}
	p.board.tell(d.job.Rank)
	return transport.EP{Index: uint32(p.rank), Incarnation: inc}, true
}

// raise remembers the newest incarnation.
func (s *seat) raise(inc uint32) {
	for {
		old := s.newest.Load()
		if old >= inc || s.newest.CompareAndSwap(old, inc) {
			return
		}
	}
}

// furnish makes the seat's ring, once.
func (d *domain) furnish(s *seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.ring != nil {
		return
	}
	n := ceilPow2(d.cfg.MaxPost)
	s.ring, s.inline, s.mask = make([]slot, n), make([]byte, n*maxInline), uint64(n-1)
}

// Disconnect breaks the link, at both ends. An older incarnation is gone already.
func (d *domain) Disconnect(ep transport.EP) error {
	if !d.enter() {
		return transport.ErrClosed
	}
	defer d.leave()
	if int(ep.Index) >= len(d.seats) {
		return fmt.Errorf("disconnect: no endpoint %d", ep.Index)
	}
	p := d.seats[ep.Index].p.Load()
	if p == nil {
		return fmt.Errorf("disconnect: rank %d was never connected", ep.Index)
	}
	for _, state := range [...]uint64{linkUp, linkBroken} {
		if p.link.CompareAndSwap(linkWord(ep.Incarnation, state), linkWord(ep.Incarnation, linkEnded)) {
			d.alert()
			p.board.tell(d.job.Rank)
			break
		}
	}
	return nil
}

// introduce shows this rank's address to the peer and waits for its answer.
func (d *domain) introduce(ctx context.Context, p *peer) error {
	if p.introduced.Load() {
		return nil
	}
	me := d.job.Rank
	answer := p.board.accept(me)
	answer.CompareAndSwap(d.me.nonce[0]^saidShort, 0) // to an earlier try: there may be room now
	writeRecord(p.board.record(me), d.me.nonce[0], d.address)
	p.board.tell(me)

	began := d.sched.Now()
	sp := d.sched.Begin(ctx, sched.What{Op: "connect", Peer: p.rank}, nil)
	defer sp.End()
	for {
		switch answer.Load() {
		case d.me.nonce[0] | saidYes:
			p.introduced.Store(true)
			return nil
		case d.me.nonce[0] ^ saidShort:
			return &transport.LimitError{
				What:    fmt.Sprintf("a connection with rank %d", p.rank),
				Found:   fmt.Sprintf("no room in its process, %d, to map this rank's queues: no file descriptor, address space or mapping left", p.pid),
				Needed:  "2 file descriptors and 1 mapping more there",
				Setting: "ulimit -n, ulimit -v or vm.max_map_count of that rank",
			}
		case d.me.nonce[0]:
			return fmt.Errorf("the peer could not map this rank's memory, or took it for another job's: %w", transport.ErrUnsupported)
		}
		switch {
		case p.gone():
			return fmt.Errorf("it has ended: %w", transport.ErrPeerGone)
		case d.stop.Load():
			return transport.ErrClosed
		case d.sched.Now()-began > d.cfg.FailureTimeout:
			return fmt.Errorf("process %d lives, but its engine has not answered for %v: %w", p.pid, d.cfg.FailureTimeout, transport.ErrPeerGone)
		}
		if err := sp.Step(); err != nil {
			return err
		}
	}
}

// An answer to an introduction is the nonce of who has introduced itself, with what is said: nothing is a no.
const (
	saidYes   = 1
	saidShort = 2 // a limit of the process that answers stands in the way
)

// receive answers a rank that has introduced itself. It runs beside the engine, because mapping takes time.
func (d *domain) receive(r int) {
	defer d.helpers.Add(-1)
	first, addr := readRecord(d.board.record(r))
	answer := first &^ 1
	a, err := parseAddress(addr, d.job.Job, d.job.Secret)
	if err == nil && int(a.rank) == r && int(a.size) == d.job.Size && a.nonce[0] == first {
		switch _, err := d.attach(context.Background(), a); {
		case err == nil:
			d.furnish(&d.seats[r]) // what this rank receives it may answer without a Connect of its own
			answer |= saidYes
		case errors.Is(err, transport.ErrLimit):
			answer ^= saidShort
		case errors.Is(err, transport.ErrClosed):
			answer = 0 // the board is about to say that this rank leaves
		}
	}
	d.board.accept(r).Store(answer)
	d.seats[r].receiving.Store(false)
	d.alert() // the rank may have introduced itself anew meanwhile
}

// A record is a rank's address in a peer's board: the nonce, the length, the bytes. It is written and read in
// words, so that one that is written anew meanwhile is at worst one whose proof fails.
const recordHead = 16

func writeRecord(rec mem.Range, first uint64, addr []byte) {
	var b [recordBytes]byte
	binary.LittleEndian.PutUint64(b[8:], uint64(copy(b[recordHead:], addr)))
	for off := 8; off < recordBytes; off += 8 {
		rec.Word64(off).Store(binary.LittleEndian.Uint64(b[off:]))
	}
	rec.Word64(0).Store(first) // last: it says that the rest is there
}

func readRecord(rec mem.Range) (first uint64, addr []byte) {
	b := make([]byte, 0, recordBytes)
	for off := 0; off < recordBytes; off += 8 {
		b = binary.LittleEndian.AppendUint64(b, rec.Word64(off).Load())
	}
	n := min(binary.LittleEndian.Uint64(b[8:]), recordBytes-recordHead)
	return binary.LittleEndian.Uint64(b), b[recordHead : recordHead+n]
}
