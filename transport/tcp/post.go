package tcp

import (
	"slices"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// Caps of this NIC that are not settings.
const maxInline = 128

func isAtomic(k transport.Kind) bool {
	return k == transport.OpFetchAdd || k == transport.OpCompareSwap
}

func isFetch(k transport.Kind) bool { return k == transport.OpRead || isAtomic(k) }

// Post queues operations and sends what the connections take at once; a batch for one peer is one system call.
func (d *domain) Post(ops []transport.Op) (int, error) {
	if d.stop.Load() {
		return 0, transport.ErrClosed
	}
	var touched [8]*link
	links := touched[:0]
	n, err := 0, error(nil)
	for n < len(ops) {
		op := &ops[n]
		if err = softnic.Check(op, len(d.links), &d.caps); err != nil {
			break
		}
		l := d.linkOf(op.EP)
		var run int
		if run, err = l.push(d, ops[n:]); run == 0 {
			break
		}
		if d.busy.Load() != l {
			d.busy.Store(l)
		}
		if n += run; !slices.Contains(links, l) {
			if len(links) == len(touched) {
				links[0].flush()
				copy(links, links[1:])
				links = links[:len(links)-1]
			}
			links = append(links, l)
		}
		if err != nil {
			break
		}
	}
	unpaused := d.hushers.Load() > 0
	for _, l := range links {
		if unpaused {
			l.flushUnpaused()
		} else {
			l.flush()
		}
	}
	return n, err
}

// linkOf returns the link of an endpoint, or the one that only flushes where the endpoint is an older one.
func (d *domain) linkOf(ep transport.EP) *link {
	if l := d.links[ep.Index].Load(); l != nil && l.ep == ep {
		return l
	}
	return d.stale
}

// push takes the first of ops, which has been checked, and those behind it that go to the same endpoint. The
// error is why the one after them is refused.
func (l *link) push(d *domain, ops []transport.Op) (n int, err error) {
	ep := ops[0].EP
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(ops) && ops[n].EP == ep {
		op := &ops[n]
		if n > 0 {
			if err := softnic.Check(op, len(d.links), &d.caps); err != nil {
				return n, err
			}
		}
		if int(l.inflight.Load()) >= len(l.ring) {
			return n, nil
		}
		l.inflight.Add(1)
		if l.state == stateDown {
			d.report(entry{c: completion(op, transport.StatusFlushed), l: l, places: 1})
			l.news.Store(true)
		} else {
			l.keepLocked(op)
		}
		n++
	}
	return n, nil
}

// keepLocked puts an operation into the ring, with its payload if that is inline.
func (l *link) keepLocked(op *transport.Op) {
	i := int(l.tail % uint64(len(l.ring)))
	s := &l.ring[i]
	*s = slot{op: *op, fetches: l.fetches}
	if op.Flags&transport.FlagInline != 0 {
		bytes := softnic.Total(op.SGE[:op.NSGE])
		kept := mem.Of(l.inline[i*maxInline:(i+1)*maxInline]).Slice(0, bytes)
		softnic.Gather(kept, op.SGE[:op.NSGE])
		s.op.SGE = [4]transport.SGE{{Mem: kept}}
		s.op.NSGE = 1
	}
	l.tail++
	if op.Flags&transport.FlagLazy != 0 {
		l.lazy.Add(1)
	}
	if isFetch(op.Kind) {
		l.fetches = l.tail
	}
}

func completion(op *transport.Op, s transport.Status) transport.Completion {
	return transport.Completion{Cookie: op.Cookie, EP: op.EP, Kind: op.Kind, Status: s}
}
