package tcp

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// answer handles a frame that is no request.
func (l *link) answer(payload []byte) error {
	in := &l.in
	h := &in.h
	switch h.Kind {
	case wire.Data:
		s := l.asked()
		if s == nil {
			return errProtocol
		}
		spread(s.op.SGE[:s.op.NSGE], payload)
		s.answered = true
	case wire.Value:
		s := l.askedFor(h.Seq)
		if s == nil || !isAtomic(s.op.Kind) || s.answered {
			return errProtocol
		}
		softnic.ScatterWord(s.op.SGE[:1], h.Arg0, 8)
		s.answered = true
	case wire.Ack, wire.Alive:
		in.wanted = in.wanted || h.Flags&wire.AckWanted != 0
	}
	if err := l.heardAck(h.Ack); err != nil || h.Kind < wire.Refuse || h.Kind == wire.Alive {
		return err
	}
	in.say = true
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h.Kind {
	case wire.Refuse:
		if h.Seq != l.done || l.done >= l.next || !refusal(transport.Status(h.Status)) {
			return errProtocol
		}
		l.exact = true
		l.failLocked(transport.Status(h.Status), endTold)
	case wire.NotReady:
		if h.Seq != l.done || l.done >= l.next {
			return errProtocol
		}
		l.next, l.notReady, l.bad = h.Seq, true, false
	case wire.Ready:
		if !l.notReady || h.Seq != l.next {
			return errProtocol
		}
		l.notReady = false
	case wire.Bye:
		l.byeLocked(h.Status)
	}
	return nil
}

func (l *link) byeLocked(status uint8) {
	how := endTold
	if status == wire.ByeClosed {
		how = endGone
	}
	l.exact = true
	l.endLocked(how)
}

func refusal(s transport.Status) bool {
	return s == transport.StatusRemoteAccess || s == transport.StatusTooLong
}

// askedFor returns the slot of request seq of this rank, and nil where it is not outstanding.
func (l *link) askedFor(seq uint64) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq < l.done || seq >= l.next {
		return nil
	}
	return &l.ring[seq%uint64(len(l.ring))]
}

// asked returns the slot of the read that the frame under way answers, and nil if there is no such.
func (l *link) asked() *slot {
	s := l.askedFor(l.in.h.Seq)
	if s == nil || s.op.Kind != transport.OpRead || s.answered || softnic.Total(s.op.SGE[:s.op.NSGE]) != int(l.in.h.Len) {
		return nil
	}
	return s
}

// spread copies payload to the pieces of list, which are as long together; a piece that is a word in one store.
func spread(list []transport.SGE, payload []byte) {
	for i := range list {
		m := list[i].Mem
		from := [1]transport.SGE{{Mem: mem.Of(payload[:m.Bytes])}}
		softnic.Gather(m, from[:])
		payload = payload[m.Bytes:]
	}
}

// heardAck takes the peer's word for what it has done.
func (l *link) heardAck(upTo uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateUp {
		return nil
	}
	if !l.completeLocked(upTo) {
		return errProtocol
	}
	l.badLocked()
	l.in.say = l.in.say || l.next < l.tail || l.byeDue
	return nil
}
