package soft

import (
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// perform works through the seat's ring.
func (e *engine) perform(s *seat, p *peer) (worked bool, next int64) {
	worked = e.harvest(s, p)
	for n := 0; n < burst; n++ {
		if s.sent.Load() == s.tail.Load() {
			break
		}
		sl := &s.ring[s.sent.Load()&s.mask]
		if sl.due != 0 && !e.stopping() {
			now := int64(e.d.sched.Now())
			at := sl.begin
			if s.moved {
				at = sl.due
			}
			if now < at {
				return worked, at
			}
		}
		if s.offset == 0 && !s.moved && e.broken(p, sl) {
			if s.head != s.sent.Load() {
				break // what the peer's engine has is reported first
			}
			e.finish(s, s.flushed(p), 0)
			worked = true
			continue
		}
		var done bool
		switch {
		case sl.Kind != transport.OpWrite && sl.Kind != transport.OpRead:
			done = e.request(s, p, sl)
		case s.head == s.sent.Load():
			if k := e.bunch(s, p); k > 0 {
				worked = true
				n += k - 1
				continue
			}
			done = e.copied(s, p, sl)
		}
		if !done {
			worked = worked || s.offset != 0
			break
		}
		worked = true
	}
	return worked, never
}

// broken reports whether an operation's connection is no more.
func (e *engine) broken(p *peer, op *slot) bool {
	return p.link.Load() != linkWord(op.EP.Incarnation, linkUp) || p.gone() || e.stopping()
}

func (e *engine) stopping() bool { return e.d.stop.Load() }

// flushed is how an operation that was not begun ends. The first one after the peer's end says why.
func (s *seat) flushed(p *peer) transport.Status {
	if p.gone() && !s.sawGone {
		s.sawGone = true
		return transport.StatusPeerGone
	}
	return transport.StatusFlushed
}

// copied moves the next chunk of a write or read and reports whether the operation is finished.
func (e *engine) copied(s *seat, p *peer, sl *slot) bool {
	n := softnic.Total(sl.pieces(&e.whole))
	status := transport.StatusOK
	if !s.moved {
		if status = e.status(s, p, sl, n); status == transport.StatusOK && s.offset < n {
			return false
		}
		s.moved = status == transport.StatusOK
		if s.moved && sl.due != 0 && sl.due > int64(e.d.sched.Now()) {
			return false
		}
	}
	e.finish(s, status, e.judge(s, p, sl, status, n))
	return true
}

// status moves the next chunk of an operation of so many bytes, if this rank's own keys allow it, and says how that went.
func (e *engine) status(s *seat, p *peer, sl *slot, bytes int) transport.Status {
	if s.offset == 0 && !e.covered(sl) {
		return transport.StatusLocalAccess
	}
	return e.move(s, p, sl, bytes)
}

// judge draws the consequences of how an operation of so many bytes went, and returns how many of them are reported.
func (e *engine) judge(s *seat, p *peer, sl *slot, status transport.Status, bytes int) int {
	if status == transport.StatusOK {
		return bytes
	}
	if status == transport.StatusPeerGone {
		s.sawGone = true
	}
	e.breakLink(p, sl.EP.Incarnation)
	return 0
}

// breakLink ends a connection after an error, for both ends.
func (e *engine) breakLink(p *peer, inc uint32) {
	if p.link.CompareAndSwap(linkWord(inc, linkUp), linkWord(inc, linkBroken)) && !p.self {
		p.board.tell(e.d.job.Rank)
	}
}

// finish reports the oldest operation of a seat, if there is something to report, and frees its slot.
func (e *engine) finish(s *seat, status transport.Status, bytes int) {
	sl := s.at(0)
	if sl.bulk {
		e.d.bulk.Add(-1)
	}
	if sl.heavy {
		e.d.heavy.Add(-1)
	}
	s.head++
	s.sent.Store(max(s.sent.Load(), s.head))
	s.offset, s.moved = 0, false
	if sl.NSGE > 1 {
		clear(e.whole[:])
	}
	e.conclude(s, sl, status, bytes)
}

// conclude reports an operation, if there is something to report, or gives its place back.
func (e *engine) conclude(s *seat, sl *slot, status transport.Status, bytes int) {
	c := transport.Completion{Cookie: sl.Cookie, EP: sl.EP, Kind: sl.Kind, Status: status, Bytes: uint32(bytes)}
	silent := status == transport.StatusOK && sl.Flags&transport.FlagSignaled == 0
	sl.clear()
	if silent {
		s.inflight.Add(-1)
		return
	}
	e.d.report(c, s)
}
