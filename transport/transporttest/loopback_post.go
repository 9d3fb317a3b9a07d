package transporttest

import (
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
		if err := softnic.Check(op, len(d.eps), &d.caps); err != nil {
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
