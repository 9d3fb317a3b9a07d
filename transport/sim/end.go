package sim

import (
	"slices"
	"time"

	"gopgas/transport"
)

// end is one rank's end of a connection, of one incarnation.
type end struct {
	d, peer  *domain
	link     *link
	ep       transport.EP
	latency  time.Duration
	inflight int // posted and not yet polled

	posted   list // not yet reported, in the order posted
	held     list // waiting for earlier reads and atomics, behind a fence
	arrived  list // at the target and not yet performed, in order
	underway int  // on their way from the processor to the NIC
	fetching int  // reads and atomics sent and not done

	lastPost  time.Duration // when the newest operation was posted
	lastThere time.Duration // when the newest one arrives at the target
	landing   bool          // a payload is on its way into the target's memory: the next of arrived waits
	dry       bool          // the next of arrived waits for a receive buffer
	sawGone   bool          // the first operation behind the peer's end has been reported as such
}

// link is what the two ends of a connection have in common.
type link struct {
	state int
	known time.Duration // when it is down: from when on the ends know
	ends  [2]*end
	n     int
}

// States of a link. A link only ever leaves linkUp.
const (
	linkUp     = iota
	linkBroken // an error, or a Disconnect at one of the ends
	linkGone   // one of the ranks is gone
)

// breakUp ends the connection. Its ends know at time known; what was not performed before is flushed then.
func (e *end) breakUp(state int, known time.Duration) {
	l := e.link
	if l.state != linkUp {
		return
	}
	l.state, l.known = state, known
	for _, o := range l.ends[:l.n] {
		o.dry = false
		o.release()
		o.serve()
	}
}

// leave takes the rank off the machine. Its peers know at time known.
func (d *domain) leave(known time.Duration) {
	if d.closed {
		return
	}
	d.closed = true
	d.f.ranks[d.rank] = nil
	d.f.counts.Pinned -= d.table.pinned
	d.f.note(noteGone, d.rank, d.rank, 0)
	d.table = table{rng: d.table.rng}
	for _, e := range d.eps {
		if e == nil {
			continue
		}
		if p := e.peer.eps[d.rank]; p != nil && p.link == e.link && p.d != d && e.link.state == linkUp {
			d.f.sim.At(known, news{p}, 0)
		}
		e.breakUp(linkGone, known)
	}
	d.sched.Ring()
}

// news tells the owner of an end that its peer is gone.
type news struct{ e *end }

// Fire implements sched.Action.
func (n news) Fire(uint64) {
	n.e.d.report(entry{c: transport.Completion{EP: n.e.ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}})
}

// report puts an entry into the completion queue and wakes who may wait for it.
func (d *domain) report(e entry) {
	if !d.closed {
		d.cq.push(e)
		d.sched.Ring()
	}
}

// list is a queue of flights; the zero list is empty. A flight is in two lists at most: in that of its end's posted
// operations (own) until it is reported, and in one of those along its way.
type list struct {
	first, last *flight
	own         bool
}

func (l *list) push(fl *flight) {
	*l.link(fl) = nil
	if l.first == nil {
		l.first = fl
	} else {
		*l.link(l.last) = fl
	}
	l.last = fl
}

func (l *list) pop() *flight {
	fl := l.first
	l.first = *l.link(fl)
	*l.link(fl) = nil
	return fl
}

func (l *list) link(fl *flight) **flight {
	if l.own {
		return &fl.nextPosted
	}
	return &fl.next
}

// thirsty notes that e's next message waits for a receive buffer of its peer.
func (e *end) thirsty() {
	e.dry = true
	if !slices.Contains(e.peer.thirst, e) {
		e.peer.thirst = append(e.peer.thirst, e)
	}
}
