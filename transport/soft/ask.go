package soft

import (
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// request hands an operation that the peer's engine must perform (an atomic, a message) to it, and reports
// whether it was handed over or finished. Requests of one rank are performed in their order, so several may
// be under way; a write or read behind them waits for their answers.
func (e *engine) request(s *seat, p *peer, sl *slot) bool {
	if s.sent.Load()-s.head >= mailSlots {
		return false
	}
	op := sl
	if !e.covered(op) {
		if s.head != s.sent.Load() {
			return false // its error is reported when its turn has come
		}
		e.breakLink(p, op.EP.Incarnation)
		e.finish(s, transport.StatusLocalAccess, 0)
		return true
	}
	sl.seq = p.asked
	p.asked++
	m := p.board.mail(e.d.job.Rank, int(sl.seq%mailSlots))
	list := op.pieces(&e.whole)
	n := softnic.Total(list)
	pieces := uint64(0)
	switch {
	case op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap:
	case n <= maxInline:
		softnic.Keep(m.payload(n), list)
	default:
		for i := range list {
			if piece := list[i].Mem; piece.Bytes > 0 {
				m.word(mailPayload + 16*int(pieces)).Store(piece.Addr())
				m.word(mailPayload + 16*int(pieces) + 8).Store(uint64(piece.Bytes))
				pieces++
			}
		}
	}
	m.word(mailKind).Store(uint64(op.EP.Incarnation) | uint64(op.Kind)<<32 | pieces<<40)
	m.word(mailImm).Store(uint64(op.Imm))
	m.word(mailRAddr).Store(op.RAddr)
	m.word(mailRKey).Store(op.RKey)
	m.word(mailArg0).Store(op.Arg0)
	m.word(mailArg1).Store(op.Arg1)
	m.word(mailLen).Store(uint64(n))
	m.word(mailState).Store(mailWord(sl.seq, mailPending))
	s.sent.Add(1)
	setBit(p.board.askedBy(e.d.job.Rank), e.d.job.Rank)
	p.bell.Ring()
	return true
}

// harvest finishes the requests that the peer's engine has answered, in their order. When the connection is no
// more it takes back what was not begun; what was begun is waited for, as long as somebody is there to end it.
func (e *engine) harvest(s *seat, p *peer) (worked bool) {
	for s.head != s.sent.Load() {
		sl := &s.ring[s.head&s.mask]
		m := p.board.mail(e.d.job.Rank, int(sl.seq%mailSlots))
		switch w := m.word(mailState).Load(); {
		case w == mailWord(sl.seq, mailDone):
			e.answered(s, p, sl, m)
		case !e.broken(p, sl):
			return worked
		case w == mailWord(sl.seq, mailPending):
			if !m.word(mailState).CompareAndSwap(w, mailWord(sl.seq, mailCancelled)) {
				continue // it was claimed at this moment
			}
			e.finish(s, s.flushed(p), 0)
		case w == mailWord(sl.seq, mailClaimed) && !p.silent():
			return worked
		default:
			// Begun by an engine that is dead, or not what this engine has written: the effect is unknown.
			e.finish(s, s.doubtful(p, sl), 0)
		}
		worked = true
	}
	return worked
}

// doubtful is how an operation ends that the peer died with.
func (s *seat) doubtful(p *peer, op *slot) transport.Status {
	if op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap {
		s.sawGone = true
		return transport.StatusInDoubt
	}
	return s.flushed(p)
}

// answered finishes a request with what the peer's engine says of it.
func (e *engine) answered(s *seat, p *peer, sl *slot, m mail) {
	op := sl
	status := transport.Status(m.word(mailStatus).Load())
	n := softnic.Total(op.pieces(&e.whole))
	switch {
	case status == transport.StatusOK && (op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap):
		softnic.StoreWord(op.first[0].Mem, m.word(mailResult).Load())
	case status == transport.StatusOK:
	case status == transport.StatusFlushed && p.gone():
		status, n = s.flushed(p), 0
	case status > transport.StatusTooLong:
		status, n = transport.StatusRemoteAccess, 0 // no engine says that
		fallthrough
	default:
		n = 0
		e.breakLink(p, op.EP.Incarnation)
	}
	e.finish(s, status, n)
}

// bury ends what this rank has with a peer that is gone, and reports it. It is false as long as the peer's
// engine may still answer.
func (e *engine) bury(s *seat, p *peer) bool {
	e.harvest(s, p)
	if s.head != s.sent.Load() {
		return false
	}
	for {
		w := p.link.Load()
		if state := linkState(w); state != linkUp && state != linkBroken {
			break // never connected, or ended by one of the two
		}
		if p.link.CompareAndSwap(w, linkWord(linkInc(w), linkGone)) {
			s.raise(linkInc(w))
			e.d.report(transport.Completion{
				EP:   transport.EP{Index: uint32(p.rank), Incarnation: linkInc(w)},
				Kind: transport.OpPeerDown, Status: transport.StatusPeerGone,
			}, nil)
			break
		}
	}
	p.buried.Store(true)
	return true
}
