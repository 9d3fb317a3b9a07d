package soft

import (
	"errors"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// Post checks and queues operations; the engine performs them, or the caller what is short. Only what can be seen from the operation alone
// is refused here.
func (d *domain) Post(ops []transport.Op) (int, error) {
	now, held := 0, d.brief(ops) && d.engine.hold()
	if held {
		if now = d.engine.straight(ops); now == len(ops) {
			d.engine.letSoon()
			return now, nil
		}
	}
	if !d.enter() {
		if held {
			d.engine.let()
		}
		return now, transport.ErrClosed
	}
	defer d.leave()
	n, err := d.queue(ops[now:])
	left := n > 0
	if held {
		left = left && !d.engine.atOnce(&d.seats[ops[0].EP.Index])
		d.engine.let()
	}
	if left {
		d.rouse()
	}
	return now + n, err
}

// queue puts operations into the rings of their seats.
func (d *domain) queue(ops []transport.Op) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	for n < len(ops) {
		op := &ops[n]
		var bytes int
		if bytes, err = d.check(op); err != nil {
			break
		}
		if !d.pushLocked(&d.seats[op.EP.Index], op, bytes) {
			break
		}
		n++
	}
	return n, err
}

// pushLocked puts op into the seat's ring.
func (d *domain) pushLocked(s *seat, op *transport.Op, bytes int) bool {
	tail := s.tail.Load()
	if !s.reserve(d.cfg.MaxPost) {
		return false
	}
	i := tail & s.mask
	sl := &s.ring[i]
	sl.set(op)
	if op.Flags&transport.FlagInline != 0 {
		kept := mem.Of(sl.small[:min(bytes, smallInline)])
		if bytes > smallInline {
			kept = mem.Of(s.inline[int(i)*maxInline:][:bytes])
		}
		softnic.Keep(kept, op.SGE[:op.NSGE])
		sl.clear() // of more pieces
		sl.first[0], sl.NSGE = transport.SGE{Mem: kept}, 1
	}
	if d.cfg.slowed() {
		sl.begin, sl.due = d.pace.plan(d.sched.Now(), bytes, &d.cfg)
	}
	sl.heavy = bytes > pollBytes
	if sl.heavy {
		d.heavy.Add(1)
	}
	if sl.bulk = bytes > atOnceBytes; sl.bulk {
		if d.cfg.slowed() {
			d.from.Store(int32(thisCPU()))
		}
		d.bulk.Add(1)
		d.longs.Store(d.longs.Load() + 1) // guarded by mu
	}
	s.tail.Store(tail + 1)
	if d.hot.Load() != int64(s.rank) {
		setBit(&d.posted[s.rank/64], s.rank)
	}
	return true
}

// reserve takes the place of one more operation, of at most so many.
func (s *seat) reserve(most int) bool {
	if s.inflight.Add(1) <= int64(most) {
		return true
	}
	s.inflight.Add(-1)
	return false
}

// pace is the NIC's time where it is slower than the machine.
type pace struct {
	free time.Duration // when the wire has sent what was posted
}

// plan returns when an operation of some bytes begins to take effect and when it is done. Operations share one
// wire, which sends them one after another; their latency they spend together.
func (p *pace) plan(now time.Duration, bytes int, c *Config) (begin, due int64) {
	var wire time.Duration
	if c.Bandwidth > 0 {
		wire = time.Duration(float64(bytes) / float64(c.Bandwidth) * 1e9)
	}
	start := max(now, p.free)
	p.free = start + wire
	return int64(start + c.Latency), int64(p.free + c.Latency)
}

// Reasons to refuse an operation, in the words of who made it.
var (
	errKind       = errors.New("post: no such kind of operation")
	errInlineKind = errors.New("post: only writes and sends may be inline")
	errMisaligned = errors.New("post: an atomic needs a target address that is a multiple of 8")
	errAtomicSGE  = errors.New("post: an atomic needs one local piece of 8 bytes on an 8-byte boundary for the old value")
)

// check says why an operation cannot be one of this NIC's, and how many bytes it moves.
func (d *domain) check(op *transport.Op) (bytes int, err error) {
	if int(op.EP.Index) >= len(d.seats) || op.EP.Incarnation == 0 || d.seats[op.EP.Index].ring == nil {
		return 0, fmt.Errorf("post: no endpoint %d of incarnation %d", op.EP.Index, op.EP.Incarnation)
	}
	if int(op.NSGE) > len(op.SGE) {
		return 0, fmt.Errorf("post: %d pieces, at most %d", op.NSGE, len(op.SGE))
	}
	for i := range op.SGE[:op.NSGE] {
		bytes += op.SGE[i].Mem.Bytes
	}
	inline := op.Flags&transport.FlagInline != 0
	switch op.Kind {
	case transport.OpWrite, transport.OpWriteImm, transport.OpSend:
		if inline && bytes > maxInline {
			return 0, fmt.Errorf("post: %d bytes inline, at most %d", bytes, maxInline)
		}
	case transport.OpRead:
		if inline {
			return 0, errInlineKind
		}
	case transport.OpFetchAdd, transport.OpCompareSwap:
		switch {
		case inline:
			return 0, errInlineKind
		case op.RAddr&7 != 0:
			return 0, errMisaligned
		case op.NSGE != 1 || bytes != 8 || op.SGE[0].Mem.Addr()&7 != 0:
			return 0, errAtomicSGE
		}
	default:
		return 0, errKind
	}
	if bytes > d.cfg.MaxMessage {
		return 0, fmt.Errorf("post: %d bytes in one operation, at most %d", bytes, d.cfg.MaxMessage)
	}
	return bytes, nil
}
