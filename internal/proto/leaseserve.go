package proto

import (
	"slices"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// noteCookie marks the cookies of notes; the low bits are the note's number.
const noteCookie = 1 << 61

// note is a message about a lease that must get to a rank for as long as that lives. The zero note is none.
type note struct {
	kind       noteKind
	rank       int
	generation uint64 // of the lease; 0: the one for the tag
	tag        uint64
	place      int32 // of the pipe that had it, to be forgiven; -1: none

	id   uint32
	sent bool
}

type noteKind uint8

const (
	noteReturn noteKind = iota + 1 // the receiver may have its lease back: nothing of this rank's is in flight into it
	noteStop                       // the receiver is to stop putting into a lease, and then to return it
)

// serve is the handler of requests for leases of this rank's workspace (askLease) and for puts into the asker's (askPull). part is
// the memory that they are about. It runs in the poller.
func (l *leases) serve(r am.Request, part mem.Range, out []byte) (int, uint8) {
	out[0] = 0
	if l.target == nil || len(out) < leaseReply || part.Bytes == 0 {
		return 1, statusOK
	}
	if r.Handler == askPull {
		return l.give(r, part, out)
	}
	o, layout, err := superpipe.ParseOffer(r.Payload)
	if err != nil {
		return 0, statusMalformed
	}
	pieces, err := piecesOf(part, layout)
	if err != nil {
		return 0, statusMalformed
	}
	if g, ok := l.target.LeaseSpread(r.From, transport.EP{Index: uint32(r.From)}, o, part, pieces); ok {
		out[0] = uint8(len(g.Append(out[1:1])))
		l.n.d.Wake() // somebody has to look for what arrives
	}
	return 1 + int(out[0]), statusOK
}

// piecesOf are the pieces of part that a layout tells; nil where there is none: all of it.
func piecesOf(part mem.Range, layout []byte) (*spread.Spread, error) {
	if len(layout) == 0 {
		return nil, nil
	}
	return spread.Parse(layout, part)
}

// give begins to put part into workspace of the asker's.
func (l *leases) give(r am.Request, part mem.Range, out []byte) (int, uint8) {
	g, layout, err := superpipe.ParseGrant(r.Payload)
	if err != nil {
		return 0, statusMalformed
	}
	pieces, err := piecesOf(part, layout)
	if err != nil {
		return 0, statusMalformed
	}
	v := &rendezvous{state: leaseGranted, generation: g.Generation, serves: part}
	pipe, err := l.n.flyLeased(superpipe.Transfer{
		Rank: r.From, EP: transport.EP{Index: uint32(r.From)}, Local: part, Spread: pieces, Lease: true,
	}, Handle{}, v)
	if pipe == nil || err != nil {
		return 1, statusOK
	}
	if pipe.Granted(g) != nil {
		l.n.mu.Lock()
		v.state = leaseRefused
		l.n.mu.Unlock()
		pipe.Step()
		return 1, statusOK
	}
	l.flying.Add(1)
	o := pipe.Offer()
	out[0] = uint8(len(o.Append(out[1:1])))
	l.n.d.Wake()
	return 1 + int(out[0]), statusOK
}

// noted is the handler of notes.
func (l *leases) noted(r am.Request, out []byte) (int, uint8) {
	if l.target == nil || r.From < 0 || r.From >= l.n.e.Size {
		return 0, statusMalformed
	}
	generation, tag := r.Args[0], r.Args[1]
	out[0] = 0
	switch r.Handler {
	case askReturn:
		if l.target.Return(r.From, generation, tag) {
			out[0] = 1
		}
	case askStop:
		l.n.mu.Lock()
		for i := range l.n.bulk.flights {
			f := &l.n.bulk.flights[i]
			if f.lease != nil && f.lease.serves.Bytes > 0 && f.rank == r.From && f.lease.generation == generation {
				f.pipe.Fail(errNoLease)
				out[0] = 1 // it will say when it has stopped
			}
		}
		l.n.mu.Unlock()
	}
	return 1, statusOK
}

// tell has a note sent.
func (l *leases) tell(n note) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.tellLocked(n)
}

func (l *leases) tellLocked(n note) {
	if l.n.e.Peers.Check(n.rank) != nil || l.n.closed.Load() {
		return
	}
	for n.id = 0; slices.ContainsFunc(l.notes, func(o note) bool { return o.id == n.id }); n.id++ {
	}
	l.notes = append(l.notes, n)
	l.work.Store(true)
}

// send sends the notes that wait for that, as far as there is room. It is called by the poller.
func (l *leases) send() {
	l.work.Store(false)
	l.n.mu.Lock()
	all := slices.Clone(l.notes)
	l.n.mu.Unlock()
	for _, o := range all {
		if o.sent {
			continue
		}
		l.mark(o.id, true) // the answer may come before post returns
		if !l.post(&o) {
			l.mark(o.id, false)
			l.work.Store(true)
		}
	}
}

// mark notes whether a note is on its way.
func (l *leases) mark(id uint32, sent bool) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for i := range l.notes {
		if l.notes[i].id == id {
			l.notes[i].sent = sent
		}
	}
}

// post sends one note if there are a connection and room now.
func (l *leases) post(o *note) bool {
	n := l.n
	if n.closed.Load() || n.e.Peers.Check(o.rank) != nil {
		return true // nobody waits for it
	}
	if !n.tryEnter(o.rank) {
		n.want(o.rank)
		return false
	}
	e := &n.ends[o.rank]
	defer e.leave()
	if !n.push() {
		return false
	}
	handler := uint8(askReturn)
	if o.kind == noteStop {
		handler = askStop
	}
	sent, err := n.am.Request(e.now(), o.rank, handler, [4]uint64{o.generation, o.tag}, nil, noteCookie|uint64(o.id))
	return sent && err == nil
}

// answered takes in the answer to a note. One that was not delivered is sent again.
func (l *leases) answered(r am.Reply, err error) {
	id := uint32(r.Cookie)
	l.n.mu.Lock()
	i := slices.IndexFunc(l.notes, func(o note) bool { return o.id == id })
	if i < 0 {
		l.n.mu.Unlock()
		return
	}
	o := l.notes[i]
	done := err == nil && len(r.Payload) > 0
	if !done || o.kind == noteReturn && r.Payload[0] == 0 { // not delivered, or not yet done
		l.notes[i].sent = false
		l.work.Store(true)
		l.n.mu.Unlock()
		return
	}
	l.notes = slices.Delete(l.notes, i, i+1)
	l.n.mu.Unlock()
	switch {
	case o.kind == noteReturn && o.place >= 0:
		l.n.bulk.origin.Forgive(o.place)
	case o.kind == noteStop && r.Payload[0] == 0:
		l.target.Return(o.rank, o.generation, 0) // nobody is at it
	}
}

// dropNotes forgets the notes to a rank that is gone.
func dropNotes(all []note, rank int) []note {
	return slices.DeleteFunc(all, func(o note) bool { return o.rank == rank })
}
