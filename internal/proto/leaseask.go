package proto

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/spread"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Lengths of the parts of a transfer.
const (
	leaseSpan  = 16 << 20  // one lease carries no more, so that others get theirs
	leasesPart = 256 << 10 // what goes another way before a lease is asked for again
)

// rendezvous is what becomes of a flight that needs a lease. Under nic.mu.
type rendezvous struct {
	state      leaseState
	tag        uint64    // of the offer
	generation uint64    // of the lease
	serves     mem.Range // somebody else's get reads it; empty: it is this rank's put
}

type leaseState uint8

const (
	leaseAsked   leaseState = iota // whoever has asked says what becomes of the flight
	leaseGranted                   // it goes on as others do
	leaseRefused                   // it has never been
)

// unregistered reports whether memory of another rank will not be registered for this one, as far as is known now: the budget has
// no share for it, the two have given up the firehoses between them, or the owner had no room a while ago.
func (n *nic) unregistered(r *Remote) bool {
	if r.hosed == nil || r.Rank == n.e.Rank {
		return false
	}
	if r.hosed.Bare() {
		return true
	}
	if e := &n.ends[r.Rank]; e.wary.Load() > 0 {
		e.wary.Add(-1)
		return true
	}
	return n.hoses.Barred(r.Rank)
}

// refusals is how many large transfers do without firehoses after one was refused for want of room.
const refusals = 8

// chooseUnregistered is choose for memory that the target will not register: messages or a lease.
func (n *nic) chooseUnregistered(t *journey, waited bool, user mem.Range) selector.Protocol {
	q := selector.Query{Bytes: user.Bytes, Get: t.kind == transport.OpRead, Waited: waited, Never: true}
	if user.Bytes > bulkFold*n.bulkSlot() {
		q.Waited = true
	}
	if !n.mayLease(t.r, user) || n.bulk.how.kind == bulkRegister || selector.Select(q, n.prices().Selector) != selector.Lease {
		return selector.Bounce
	}
	return selector.Lease
}

// mayLease reports whether a lease can carry memory: like a pipe it outlives the call.
func (n *nic) mayLease(r *Remote, user mem.Range) bool {
	return n.leases.target != nil && n.mayPipe(user) && !n.ends[r.Rank].unequal.Load()
}

// leased carries a transfer out through leases, one after the other, and what there is no lease for as other transfers. The handle
// is that of the last one.
func (n *nic) leased(t journey, user mem.Range) (h Handle, err error) {
	own := mem.Hidden(user)
	for at := 0; at < user.Bytes; {
		if err := h.Wait(context.Background()); err != nil {
			return Handle{}, err
		}
		part := own.Slice(at, min(leaseSpan, user.Bytes-at))
		var granted bool
		h, granted, err = n.lease(t, cargo{near: part, off: t.off + at, span: part.Bytes})
		if err == nil && !granted {
			part, h = part.Slice(0, min(leasesPart, part.Bytes)), Handle{}
			if t.kind == transport.OpRead {
				err = n.get(t.r, t.off+at, part)
			} else {
				err = n.put(t.name, t.r, t.off+at, part)
			}
		} else if granted {
			n.e.counts.add(PathLease, t.r.Rank, part.Bytes)
		}
		if err != nil {
			return Handle{}, err
		}
		at += part.Bytes
	}
	return h, nil
}

// cargo is what one lease carries.
type cargo struct {
	near   mem.Range      // this rank's memory
	spread *spread.Spread // the pieces of it; nil: all of it
	off    int            // of the target's memory
	span   int            // of that, bytes; as many as near has, or those that all pieces lie in
	layout []byte         // of the pieces there, from off on; empty where there is no spread
}

// lease carries a cargo through a lease. granted is false where there is none now: then nothing has happened. The handle is done when
// this rank's memory is its owner's again.
func (n *nic) lease(t journey, c cargo) (h Handle, granted bool, err error) {
	if t.kind == transport.OpRead {
		return n.pull(t, c)
	}
	return n.pushLeased(t, c)
}

// leasedAll is leased for who waits.
func (n *nic) leasedAll(t journey, user mem.Range) error {
	h, err := n.leased(t, user)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}

// asking is a request about a lease on its way.
type asking struct {
	kept        // the piece of the answer
	of   Handle // the transfer's
}

// prepareAsking takes what a request and its transfer need; ok is false where not all of that is free now. Only who holds nothing
// may wait, and nobody may wait for a second transfer.
func (n *nic) prepareAsking(t journey) (a asking, ok bool, err error) {
	if err = n.connected(t.name, t.r, t.off, 0); err != nil {
		return a, false, err
	}
	if a.kept, err = n.keep(t.name, t.r.Rank, false, true); err != nil {
		return a, false, err
	}
	if a.of, ok = n.tryBegin(t.name, t.r.Rank); !ok {
		n.abandon(a.id)
		n.partDone(a.h.id, nil)
	}
	return a, ok, nil
}

// leaseReply is more than an answer takes: its length, and an offer or a grant.
const leaseReply = 64

// answer sends a request and waits for its answer, whose first byte says how long it is; 0: not now. sent is false where the target never
// learns of the request.
func (n *nic) answer(t journey, a asking, handler uint8, c cargo, payload []byte) (reply []byte, sent bool, err error) {
	args := [4]uint64{t.r.rkey, t.r.raddr + uint64(c.off), uint64(c.span)}
	if err = n.ask(t.name, a.id, handler, args, mem.Of(append(payload, c.layout...))); err != nil {
		n.partDone(a.h.id, nil)
		return nil, false, err
	}
	err = a.h.Wait(context.Background())
	buf, _ := n.buffer(a.id, leaseReply)
	if words := buf.Data(); err == nil && words[0] > 0 {
		reply = append(reply, words[1:min(leaseReply, 1+int(words[0]))]...)
	}
	n.give(a.kept)
	return reply, true, err
}

// pushLeased is lease for a put, into a lease of the target's workspace.
func (n *nic) pushLeased(t journey, c cargo) (h Handle, granted bool, err error) {
	if err := n.reach(t.name, t.r, c.off, c.span); err != nil {
		return h, false, err
	}
	a, ok, err := n.prepareAsking(t)
	if !ok {
		return h, false, err
	}
	v := &rendezvous{}
	pipe, err := n.flyLeased(superpipe.Transfer{
		Rank: t.r.Rank, EP: transport.EP{Index: uint32(t.r.Rank)}, Local: c.near, Spread: c.spread, Lease: true,
	}, a.of, v)
	if pipe == nil {
		n.abandon(a.id)
		n.partDone(a.h.id, nil)
		n.partDone(a.of.id, nil)
		return h, false, transport.NewOpError(t.name, t.r.Rank, err)
	}
	pipe.Step() // the first chunk is copied while the request is on its way
	offer := pipe.Offer()
	reply, sent, err := n.answer(t, a, askLease, c, offer.Append(make([]byte, 0, leaseReply)))
	var g superpipe.Grant
	if err == nil && reply != nil {
		g, _, err = superpipe.ParseGrant(reply)
	}
	var unfit error
	if err == nil && reply != nil {
		unfit = pipe.Granted(g)
		granted = unfit == nil
	}
	if granted {
		n.mu.Lock()
		v.state, v.generation = leaseGranted, g.Generation
		n.mu.Unlock()
		n.leases.flying.Add(1)
		pipe.Step()
		n.d.Wake()
		return a.of, true, nil
	}
	if errors.Is(unfit, superpipe.ErrGrant) {
		n.ends[t.r.Rank].unequal.Store(true)
	} else if unfit != nil {
		err = transport.NewOpError(t.name, t.r.Rank, unfit)
	}
	if unfit != nil || sent && err != nil {
		n.leases.tell(note{kind: noteReturn, rank: t.r.Rank, generation: g.Generation, tag: offer.Tag, place: -1})
	}
	pipe.Fail(errNoLease)
	n.mu.Lock()
	v.state = leaseRefused
	n.mu.Unlock()
	pipe.Step()
	if werr := a.of.Wait(context.Background()); err == nil {
		err = werr
	}
	return h, false, err
}

var errNoLease = errors.New("the target has no lease now")

// flyLeased enters a pipe that needs a lease; it is nil while there is none to be had.
func (n *nic) flyLeased(tr superpipe.Transfer, h Handle, v *rendezvous) (*superpipe.Pipe, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pipe, ok, err := n.bulk.origin.Begin(tr)
	if !ok {
		return nil, err
	}
	v.tag = pipe.Offer().Tag
	n.bulk.flights = append(n.bulk.flights, flight{pipe: pipe, h: h, rank: tr.Rank, lease: v})
	n.bulk.live.Add(1)
	if v.serves.Bytes == 0 {
		e := &n.ends[tr.Rank]
		e.pending.Add(1)
		e.piped.Add(1)
	}
	return pipe, nil
}

// pull is lease for a get, into a lease of this rank's own workspace, into which the owner puts.
func (n *nic) pull(t journey, c cargo) (h Handle, granted bool, err error) {
	if err := n.reach(t.name, t.r, c.off, c.span); err != nil {
		return h, false, err
	}
	if err := n.direct.reg.Destination(c.near); err != nil { // who copies later could not tell
		return h, false, transport.NewOpError(t.name, t.r.Rank, err)
	}
	a, ok, err := n.prepareAsking(t)
	if !ok {
		return h, false, err
	}
	l := &n.leases
	g, ok := l.expect(t.r.Rank, c)
	if !ok {
		n.abandon(a.id)
		n.partDone(a.h.id, nil)
		n.partDone(a.of.id, nil)
		return h, false, nil
	}
	p := pull{t.r.Rank, g, a.of}
	n.mu.Lock()
	l.pulls = append(l.pulls, p)
	l.pulling.Add(1)
	n.ends[t.r.Rank].pending.Add(1)
	n.ends[t.r.Rank].piped.Add(1)
	n.mu.Unlock()
	reply, sent, err := n.answer(t, a, askPull, c, g.Append(make([]byte, 0, leaseReply)))
	if err == nil && reply != nil {
		var o superpipe.Offer
		if o, _, err = superpipe.ParseOffer(reply); err == nil && l.target.Offered(g, o) {
			n.d.Wake()
			return a.of, true, nil
		}
		err = errors.Join(err, superpipe.ErrMalformed)
	}
	if sent && err != nil && !errors.Is(err, errRefused) {
		// The owner may be at it all the same: the memory is not the user's before he has stopped.
		l.tell(note{kind: noteStop, rank: t.r.Rank, generation: g.Generation, place: -1})
		_ = a.of.Wait(context.Background())
		return h, false, err
	}
	l.target.Return(t.r.Rank, g.Generation, 0)
	l.pulled(p, nil)
	_ = a.of.Wait(context.Background())
	return h, false, err
}

// expect leases this rank's own workspace to a rank that is to put a cargo there.
func (l *leases) expect(rank int, c cargo) (superpipe.Grant, bool) {
	if !l.ready() {
		return superpipe.Grant{}, false
	}
	return l.target.ExpectSpread(rank, transport.EP{Index: uint32(rank)}, c.near, c.spread)
}

// ready registers the workspace if it is not, and notes that it is used.
func (l *leases) ready() bool {
	l.room.used.Store(l.n.direct.reg.Uses())
	return l.target.Prepare() == nil
}
