package sim

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
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
		if err := softnic.Check(op, len(d.eps), &d.caps); err != nil {
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
	if !d.f.begun[d.rank] {
		return false
	}
	d.f.posted[d.rank]++
	posted := d.f.posted[d.rank]
	for _, k := range d.f.cfg.Faults.Break {
		if k.Rank == d.rank && k.Op == posted {
			d.end(op.EP).breakUp(linkBroken, d.f.sim.Now())
			d.f.counts.Broken++
		}
	}
	for _, k := range d.f.cfg.Faults.Kill {
		if k.Rank == d.rank && k.Op == posted {
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
	fl.bytes = softnic.Total(op.SGE[:op.NSGE])
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
