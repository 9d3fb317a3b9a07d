package proto

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/timeline"
)

// AccumulateAt combines element i of src into the one at byte off of r's memory, which at(i) names, for all i below count, each
// atomically and in any order. With old, which has the bytes of src and may be src itself, it stores what they were and
// returns when that is there; with an empty one it is flushed and ordered like a put. The path is that of Accumulate;
// through a NIC many elements travel together: in messages to each owner, or as a chain of atomics that cross into it at once.
// at is asked in ascending order, once for each i.
func (e *Engine) AccumulateAt(name string, op atom.Op, t atom.Elem, count int, at func(i int) (r *Remote, off int), src, old mem.Range) error {
	if e.record == nil {
		return e.accumulateAt(name, op, t, count, at, src, old)
	}
	v := e.record.visit(timeline.Transfer, name, nobody)
	err := e.accumulateAt(name, op, t, count, at, src, old)
	e.record.over(&v, src.Bytes)
	return err
}

func (e *Engine) accumulateAt(name string, op atom.Op, t atom.Elem, count int, at func(i int) (r *Remote, off int), src, old mem.Range) (err error) {
	if n := e.nic(); n != nil {
		if err := n.destination(name, nobody, old); err != nil {
			return err
		}
	}
	var c *chain
	var l *list
	for i := 0; i < count && err == nil; i++ {
		r, off := at(i)
		x := src.Slice(i*t.Bytes, t.Bytes).Bits()
		var was uint64
		if r.cpuAtomics() {
			e.note(PathAtomic, r.Rank, t.Bytes)
			was = atom.Do(op, t, r.Mapped, off, x, 0)
		} else {
			n := e.nic()
			switch w := n.wayTo(r, op, t); {
			case w == byMessage || n.cpuToo():
				if l == nil {
					l = e.lists.take(n, name, op, t)
				}
				if c != nil && l.len == mostListed { // who waits for a piece, to send the list, holds none
					err = c.Flush(old)
				}
				if err == nil {
					err = l.add(r, off, x, i, old)
				}
				continue
			case w == native:
				if c == nil {
					c = e.chains.take(n, name)
				}
				near := i * t.Bytes
				if old.Bytes == 0 {
					near = nic.Nowhere
				}
				err = c.fetchAdd(r, off, x, old, near)
				continue
			}
			if was, err = e.nicAtomic(op, t, r, off, x, 0); err != nil {
				break
			}
		}
		if old.Bytes != 0 {
			old.Slice(i*t.Bytes, t.Bytes).SetBits(was)
		}
	}
	err = e.chains.finish(c, old, err) // before the list waits for pieces, likewise
	return e.lists.finish(l, old, err)
}

// mostListed is how many elements a list holds: enough to fill messages to several owners.
const mostListed = 2048

// list collects elements of several members, sorts them by owner, and has each owner's CPU combine its own, many in a
// message. It is one goroutine's.
type list struct {
	n    *device
	name string
	op   atom.Op
	t    atom.Elem

	len   int
	to    [mostListed]*Remote
	off   [mostListed]int
	x     [mostListed]uint64
	index [mostListed]int // the element's number with the caller
	order [mostListed]uint16

	payload [4096]byte // as large as am's largest buffer
	flying  [window]nic.Kept
	part    [window][2]int // of order: the elements that flying's reply is about
}

// lists keeps lists that are not in use, so that a call allocates none.
type lists struct {
	mu   sync.Mutex
	free []*list
}

func (s *lists) take(n *device, name string, op atom.Op, t atom.Elem) *list {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *list
	if k := len(s.free); k > 0 {
		l, s.free = s.free[k-1], s.free[:k-1]
	} else {
		l = new(list)
	}
	l.n, l.name, l.op, l.t = n, name, op, t
	return l
}

// finish sends what the list still holds, unless err says that something went wrong, and puts it away.
func (s *lists) finish(l *list, old mem.Range, err error) error {
	if l == nil {
		return err
	}
	if err == nil {
		err = l.send(old)
	}
	l.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
	return err
}

func (l *list) clear() {
	clear(l.to[:l.len]) // it must not keep a window's table alive
	l.len = 0
}

func (l *list) add(r *Remote, off int, x uint64, index int, old mem.Range) error {
	if err := l.n.reachElements(l.name, r, off, l.t.Bytes, l.t.Bytes); err != nil {
		return err
	}
	if l.len == mostListed {
		if err := l.send(old); err != nil {
			return err
		}
	}
	k := l.len
	l.to[k], l.off[k], l.x[k], l.index[k], l.order[k] = r, off, x, index, uint16(k)
	l.len++
	return nil
}

// send sends all elements, and waits for the replies if old wants them.
func (l *list) send(old mem.Range) error {
	n, order := l.n, l.order[:l.len]
	slices.SortFunc(order, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(l.to[a].Rank, l.to[b].Rank), cmp.Compare(a, b))
	})
	most := min(n.Payload, len(l.payload)) / (8 + l.t.Bytes)
	posted, done := 0, 0
	var err error
	for from := 0; from < len(order) && err == nil; {
		r, to := l.to[order[from]], from+1
		for to < len(order) && to-from < most && l.to[order[to]] == r {
			to++
		}
		if old.Bytes == 0 {
			err = l.tell(r, order[from:to])
			from = to
			continue
		}
		if posted-done < window {
			var k nic.Kept
			// Only who holds nothing may wait, as in get.
			k, err = l.ask(r, order[from:to], posted == done)
			if err == nil {
				l.flying[posted%window], l.part[posted%window] = k, [2]int{from, to}
				posted++
				from = to
				continue
			}
			if err != nic.ErrNoRoom {
				break
			}
			err = nil
		}
		err = l.land(done, old)
		done++
	}
	for ; done < posted; done++ {
		if lerr := l.land(done, old); err == nil {
			err = lerr
		}
	}
	l.clear()
	return err
}

// land waits for reply number i and stores what it brings.
func (l *list) land(i int, old mem.Range) error {
	k, part := l.flying[i%window], l.part[i%window]
	err := k.Wait(context.Background())
	if err == nil {
		size := l.t.Bytes
		buf, _ := l.n.Buffer(k.ID, (part[1]-part[0])*size)
		for j, e := range l.order[part[0]:part[1]] {
			old.Slice(l.index[e]*size, size).SetBits(buf.Slice(j*size, size).Bits())
		}
	}
	l.n.Give(k.ID)
	return err
}

// tell sends elements of one owner without waiting for an answer.
func (l *list) tell(r *Remote, some []uint16) error {
	id, err := l.n.Acquire(l.name, r.Rank, false)
	if err != nil {
		return err
	}
	args, payload := l.pack(r, some, false)
	if err := l.n.Ask(l.name, id, uint8(errand.ToList), args, payload); err != nil {
		return err
	}
	l.n.e.counts.add(PathMessage, r.Rank, len(some)*l.t.Bytes)
	return nil
}

// ask sends elements of one owner and leaves the reply in the piece that it returns.
func (l *list) ask(r *Remote, some []uint16, wait bool) (nic.Kept, error) {
	bytes := len(some) * l.t.Bytes
	k, err := l.n.Keep(l.name, r.Rank, bytes > nic.ScratchBytes, wait)
	if err != nil {
		return nic.Kept{}, err
	}
	args, payload := l.pack(r, some, true)
	if err := l.n.Ask(l.name, k.ID, uint8(errand.ToList), args, payload); err != nil {
		l.n.PartDone(k.Handle, nil)
		return nic.Kept{}, err
	}
	l.n.e.counts.add(PathMessage, r.Rank, bytes)
	return k, nil
}

// pack makes a message.
func (l *list) pack(r *Remote, some []uint16, fetch bool) (args errand.Args, payload mem.Range) {
	buf := mem.Of(l.payload[:]).Slice(0, errand.ListBytes(l.t, len(some)))
	for j, e := range some {
		errand.SetEntry(buf, l.t, len(some), j, r.raddr+uint64(l.off[e]), l.x[e])
	}
	return errand.ForList(l.op, l.t, r.rkey, fetch), buf
}
