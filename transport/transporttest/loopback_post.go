package transporttest

import (
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// Post checks and queues operations. Only what can be seen from the operation alone is refused here: keys are
// checked by the agent, where the memory is.
func (d *domain) Post(ops []transport.Op) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	for i := range ops {
		op := &ops[i]
		if err := d.check(op); err != nil {
			d.agent.Ring()
			return i, err
		}
		e := d.eps[op.EP.Index].Load()
		if e == nil || e.ep != op.EP {
			e = d.old
		}
		if !d.push(e, op) {
			d.agent.Ring()
			return i, nil
		}
	}
	d.agent.Ring()
	return len(ops), nil
}

// push puts op into e's queue; d.mu is held.
func (d *domain) push(e *end, op *transport.Op) bool {
	if e.inflight.Load() >= int64(len(e.ring)) {
		return false
	}
	e.inflight.Add(1)
	tail := e.tail.Load()
	i := int(tail % uint64(len(e.ring)))
	s := &e.ring[i]
	s.op = *op
	if op.Flags&transport.FlagInline != 0 {
		n := softnic.Total(op.SGE[:op.NSGE])
		size := d.caps.MaxInline
		kept := mem.Of(e.inline[i*size:(i+1)*size]).Slice(0, n)
		softnic.Gather(kept, op.SGE[:op.NSGE])
		s.op.SGE = [4]transport.SGE{{Mem: kept}}
		s.op.NSGE = 1
	}
	if d.f.cfg.Jitter > 0 {
		e.lastDue = max(e.lastDue, int64(d.sched.Now())+d.f.jitter(d.rng))
		s.ready = e.lastDue
	}
	e.tail.Store(tail + 1)
	return true
}

// Reasons to refuse an operation, in the words of who made it.
var (
	errKind       = errors.New("post: no such kind of operation")
	errNoAtomics  = fmt.Errorf("post: this NIC has no atomics: %w", transport.ErrUnsupported)
	errNoSends    = fmt.Errorf("post: this NIC has no sends: %w", transport.ErrUnsupported)
	errNoWriteImm = fmt.Errorf("post: this NIC has no write with immediate: %w", transport.ErrUnsupported)
	errInlineKind = errors.New("post: only writes and sends may be inline")
	errMisaligned = errors.New("post: an atomic needs a target address that is a multiple of 8")
	errAtomicSGE  = errors.New("post: an atomic needs one local piece of 8 bytes for the old value")
)

// check says why an operation cannot be one of this NIC's.
func (d *domain) check(op *transport.Op) error {
	inline := op.Flags&transport.FlagInline != 0
	switch op.Kind {
	case transport.OpWrite:
	case transport.OpWriteImm:
		if !d.caps.WriteImm {
			return errNoWriteImm
		}
	case transport.OpSend:
		if !d.caps.Sends {
			return errNoSends
		}
	case transport.OpRead:
		if inline {
			return errInlineKind
		}
	case transport.OpFetchAdd, transport.OpCompareSwap:
		switch {
		case !d.caps.Atomics64:
			return errNoAtomics
		case inline:
			return errInlineKind
		case op.RAddr&7 != 0:
			return errMisaligned
		case op.NSGE != 1 || op.SGE[0].Mem.Bytes != 8:
			return errAtomicSGE
		}
	default:
		return errKind
	}
	if int(op.EP.Index) >= len(d.eps) || op.EP.Incarnation == 0 {
		return fmt.Errorf("post: no endpoint %d of incarnation %d", op.EP.Index, op.EP.Incarnation)
	}
	if int(op.NSGE) > d.caps.MaxSGE {
		return fmt.Errorf("post: %d pieces, at most %d", op.NSGE, d.caps.MaxSGE)
	}
	n := softnic.Total(op.SGE[:op.NSGE])
	if n > d.caps.MaxMessage {
		return fmt.Errorf("post: %d bytes in one operation, at most %d", n, d.caps.MaxMessage)
	}
	if inline && n > d.caps.MaxInline {
		return fmt.Errorf("post: %d bytes inline, at most %d", n, d.caps.MaxInline)
	}
	return nil
}
