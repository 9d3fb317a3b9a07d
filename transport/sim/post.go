package sim

import (
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Post implements transport.Domain. Only what can be seen from the operation alone is refused here: keys are checked
// where the memory is, when the operation gets there.
func (d *domain) Post(ops []transport.Op) (int, error) {
	for i := range ops {
		if d.closed {
			return i, errClosed
		}
		op := &ops[i]
		if err := d.check(op); err != nil {
			return i, err
		}
		if d.end(op.EP).inflight >= d.f.cfg.MaxPost {
			return i, nil
		}
		if d.faulty(op) {
			return i, errClosed
		}
		d.sched.Charge(d.f.model.cost(op.Kind).Post)
		if d.closed { // while time passed
			return i, errClosed
		}
		d.send(d.end(op.EP), op)
	}
	if d.closed {
		return 0, errClosed
	}
	return len(ops), nil
}

// end returns the newest end of an endpoint, or the one that stands for all older ones.
func (d *domain) end(ep transport.EP) *end {
	if e := d.eps[ep.Index]; e != nil && e.ep == ep {
		return e
	}
	return d.old
}

// faulty lets happen what Faults has for the operation about to be posted; it returns true if that was this rank's
// death, seen from a world without coroutines.
func (d *domain) faulty(op *transport.Op) bool {
	if !d.begun {
		return false
	}
	d.posted++
	for _, k := range d.f.cfg.Faults.Break {
		if k.Rank == d.rank && k.Op == d.posted {
			d.end(op.EP).breakUp(linkBroken, d.f.sim.Now())
			d.f.counts.Broken++
		}
	}
	for _, k := range d.f.cfg.Faults.Kill {
		if k.Rank == d.rank && k.Op == d.posted {
			d.f.Kill(d.rank)
			return true
		}
	}
	return false
}

// send hands an operation to the node's NIC at the poster's time.
func (d *domain) send(e *end, op *transport.Op) {
	fl := d.f.flight()
	fl.op, fl.e = *op, e
	fl.bytes = total(op.SGE[:op.NSGE])
	if op.Flags&transport.FlagInline != 0 {
		if 8*len(fl.inline) < fl.bytes {
			fl.inline = make([]uint64, (max(fl.bytes, d.caps.MaxInline)+7)/8)
		}
		kept := mem.Of(fl.inline).Slice(0, fl.bytes)
		gather(kept, op.SGE[:op.NSGE], 0)
		fl.op.SGE = [4]transport.SGE{{Mem: kept}}
		fl.op.NSGE = 1
	}
	e.inflight++
	e.posted.push(fl)
	at := max(d.sched.Now(), e.lastPost)
	e.lastPost = at
	if at == d.f.sim.Time() && e.underway == 0 {
		e.transmit(fl)
		return
	}
	e.underway++
	d.f.sim.At(at, fl, stageSend)
}

// Reasons to refuse an operation, in the words of who made it.
var (
	errKind       = errors.New("post: no such kind of operation")
	errInlineKind = errors.New("post: only writes and sends may be inline")
	errMisaligned = errors.New("post: an atomic needs a target address that is a multiple of 8")
	errAtomicSGE  = errors.New("post: an atomic needs one local piece of 8 bytes for the old value")
)

// check says why an operation cannot be one of this NIC's.
func (d *domain) check(op *transport.Op) error {
	inline := op.Flags&transport.FlagInline != 0
	switch op.Kind {
	case transport.OpWrite, transport.OpWriteImm, transport.OpSend:
	case transport.OpRead:
		if inline {
			return errInlineKind
		}
	case transport.OpFetchAdd, transport.OpCompareSwap:
		switch {
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
	n := total(op.SGE[:op.NSGE])
	if n > d.caps.MaxMessage {
		return fmt.Errorf("post: %d bytes in one operation, at most %d", n, d.caps.MaxMessage)
	}
	if inline && n > d.caps.MaxInline {
		return fmt.Errorf("post: %d bytes inline, at most %d", n, d.caps.MaxInline)
	}
	return nil
}
