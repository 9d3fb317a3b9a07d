package proto

import (
	"slices"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Leases of one rank, unless Config.Leases says otherwise: how many transfers it takes in at once into memory that is not
// registered, each through bulkFold slots; one origin gets half of them.
const defaultLeases = 4

// shoreCookies are those of a target's acknowledgements, among those of pieces that belong to pipes.
const shoreCookies = 1 << 41

// leases is the part of a NIC that puts into and gets from memory which is not registered and will not be: in chunks, through
// registered workspace that whoever receives leases to whoever sends.
//
// A put asks the target's CPU for a lease (askLease), copies its first chunk meanwhile, and is a flight from then on. A get leases
// this rank's own workspace to the owner (askPull), who puts into it. Either way the receiver's poller copies behind the NIC and
// acknowledges. Where there is no lease now a part of the transfer goes by message, and then it is tried again.
type leases struct {
	n      *nic
	target *superpipe.Target // nil: this rank has no slots to lease, and asks for none
	room   room

	flying  atomic.Int32 // flights with a lease: acknowledgements are writes, of which a NIC reports nothing
	pulling atomic.Int32 // len(pulls)
	pulls   []pull       // under nic.mu, with what follows
	notes   []note
	work    atomic.Bool // there are notes to be sent
}

// pull is a get through a lease of this rank's own workspace.
type pull struct {
	rank  int
	grant superpipe.Grant
	h     Handle
}

// prepareLeases makes the side of a rank that receives. It registers nothing yet.
func (n *nic) prepareLeases(count int) error {
	l := &n.leases
	l.n, l.room.n = n, n
	if count == 0 {
		count = defaultLeases
	}
	if n.bulk.origin == nil || n.bulk.origin.Way() == superpipe.WayNone || !n.caps.Sends || count < 0 {
		return nil
	}
	var err error
	l.target, err = superpipe.NewTarget(superpipe.Config{
		NIC: shore{lane{n}}, Cookies: shoreCookies, SlotBytes: n.bulkSlot(), Fold: bulkFold, Slots: bulkSlots, Leases: count,
		Later: true, Kept: true, Copied: n.e.Sched.ChargeCopy,
	})
	return err
}

// immediates is how many receive buffers the NIC needs beside those of messages.
func (l *leases) immediates() int {
	if l.target == nil {
		return 0
	}
	return l.target.Immediates()
}

// busy reports whether this rank must look for what the NIC does not report: data in sub-blocks, and acknowledgements.
func (l *leases) busy() bool { return l.flying.Load() > 0 || l.target != nil && l.target.Active() > 0 }

// shore is the NIC as a target's workspace sees it: that is registered under regmgr's budget, for others.
type shore struct{ lane }

// Register implements superpipe.NIC.
func (s shore) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	key, err := s.n.direct.reg.Lend(r, a)
	if err == nil {
		s.n.leases.room.keep(key, r)
	}
	return key, err
}

// Deregister implements superpipe.NIC.
func (s shore) Deregister(key transport.Region) error {
	return s.n.direct.reg.Return(key, s.n.leases.room.drop(key))
}

// room is the registered memory of this rank that others use, as regmgr sees it: buckets that firehose has registered for them and
// that they have let go of, and workspace that is leased to nobody. When room is needed what was not used for longest goes.
type room struct {
	n       *nic
	buckets regmgr.Victims // nil: there are none

	used atomic.Uint64 // by regmgr's clock: when the workspace was last leased

	mu   sync.Mutex
	lent map[uint64]mem.Range // by ID of the registration
}

// shareRoom has regmgr give up what others do not use.
func (n *nic) shareRoom() {
	if n.hoses != nil {
		n.leases.room.buckets = n.hoses.Victims()
	}
	n.direct.reg.Share(&n.leases.room)
}

func (r *room) keep(key transport.Region, m mem.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lent == nil {
		r.lent = make(map[uint64]mem.Range)
	}
	r.lent[key.ID] = m
}

func (r *room) drop(key transport.Region) mem.Range {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.lent[key.ID]
	delete(r.lent, key.ID)
	return m
}

// idle returns when the workspace was last leased, if it is registered and nobody has a lease.
func (r *room) idle() (uses uint64, ok bool) {
	t := r.n.leases.target
	return r.used.Load(), t != nil && t.Idle()
}

// Oldest implements regmgr.Victims.
func (r *room) Oldest() (uses uint64, ok bool) {
	uses, ok = r.idle()
	if r.buckets != nil {
		if u, some := r.buckets.Oldest(); some && (!ok || u < uses) {
			return u, true
		}
	}
	return uses, ok
}

// Shed implements regmgr.Victims.
func (r *room) Shed(bytes int64) (freed int64) {
	for freed < bytes {
		uses, ok := r.idle()
		if r.buckets != nil {
			if u, some := r.buckets.Oldest(); some && (!ok || u < uses) {
				more := r.buckets.Shed(bytes - freed)
				if freed += more; more > 0 {
					continue
				}
			}
		}
		more, err := 0, error(nil)
		if ok {
			more, err = r.n.leases.target.Reclaim()
		}
		if more == 0 || err != nil {
			break
		}
		freed += int64(more)
	}
	return freed
}

// drain returns when no transfer through a lease reads or writes memory that is about to be freed. Ranks that have parted have
// none, and what is left then is ended.
func (n *nic) drain(r mem.Range) error {
	l := &n.leases
	if l.target == nil || r.Bytes == 0 || !l.uses(r) {
		return nil
	}
	if n.ctx.Err() != nil {
		for rank := range n.e.Size {
			l.target.Lost(rank)
		}
		return nil
	}
	return n.waitAlone("free", func() bool { return !l.uses(r) })
}

// uses reports whether a transfer through a lease reads or writes memory of r.
func (l *leases) uses(r mem.Range) bool {
	if l.target.Into(r) {
		return true
	}
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for i := range l.n.bulk.flights {
		if v := l.n.bulk.flights[i].lease; v != nil && v.serves.Bytes > 0 && v.serves.Addr()-r.Addr() < uint64(r.Bytes) {
			return true
		}
	}
	return false
}

// lost takes back what is leased to a rank of which the NIC has said that it is gone: nothing of it lands any more.
func (l *leases) lost(rank int) {
	if l.target == nil {
		return
	}
	l.target.Lost(rank)
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.notes = dropNotes(l.notes, rank)
}

// advance copies what has arrived, and ends gets that are over. It is called by the poller.
func (l *leases) advance() (moved bool) {
	if l.target == nil {
		return false
	}
	for l.target.Progress() {
		moved = true
	}
	if l.pulling.Load() == 0 {
		return moved
	}
	for i := 0; ; {
		l.n.mu.Lock()
		if i >= len(l.pulls) {
			l.n.mu.Unlock()
			break
		}
		p := l.pulls[i]
		l.n.mu.Unlock()
		if l.land(p) { // a lease's lock comes before the NIC's
			moved = true // and another one is in its place
		} else {
			i++
		}
	}
	return moved
}

// land ends a get whose lease has come to its end.
func (l *leases) land(p pull) bool {
	copied, ended := l.target.Outcome(p.grant)
	var err error
	switch {
	case copied:
	case !ended:
		return false
	default:
		if err = l.n.e.Peers.Check(p.rank); err == nil {
			err = errConnectionLost
		}
	}
	return l.pulled(p, err)
}

// pulled ends a get; it reports false if somebody else has.
func (l *leases) pulled(p pull, err error) bool {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range l.pulls {
		if l.pulls[i] == p {
			l.pulls = slices.Delete(l.pulls, i, i+1)
			l.pulling.Add(-1)
			n.partDoneLocked(p.h.id, err)
			n.ends[p.rank].pending.Add(-1)
			n.ends[p.rank].piped.Add(-1)
			return true
		}
	}
	return false
}
