package proto

import (
	"context"
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Sizes of the superpipeline's workspace.
const (
	bulkSlot  = 128 << 10
	bulkSlots = 6
	bulkFold  = 3
	bulkShare = 16 // of what the NIC may pin, workspace takes at most so small a part
	bulkLeast = 64 << 10
)

// bulk is the part of a NIC's transfers that moves large memory which is not registered, through slots, in chunks.
type bulk struct {
	how    Bulk
	origin *superpipe.Origin // nil: the NIC may register too little for a workspace
	chosen atomic.Int32      // transfers that were chosen for, up to enough

	live    atomic.Int32 // flights, for who does not hold nic.mu
	flights []flight     // under nic.mu
}

// flight is a transfer that a pipe carries out.
type flight struct {
	pipe    *superpipe.Pipe
	rank    int
	h       Handle      // the zero handle: somebody else's get
	lease   *rendezvous // nil: it needs none
	get     bool
	ended   bool // the handle is done
	told    bool // of the error, if there was one
	helping *tail
}

// tail is the end of a transfer that a helper registers while its head is being copied.
type tail struct {
	hold regmgr.Hold
	done atomic.Bool
}

// prepareBulk registers the workspace of large transfers.
func (n *nic) prepareBulk(how Bulk) (err error) {
	n.bulk.how = how
	slot := n.bulkSlot()
	if slot == 0 {
		return nil
	}
	c := superpipe.Config{
		Kept: true, NIC: lane{n}, SlotBytes: slot, Fold: bulkFold, Slots: bulkSlots, Policy: how.policy, Copied: n.e.Sched.ChargeCopy,
	}
	if n.bulk.origin, err = superpipe.NewOrigin(c); err != nil {
		return fmt.Errorf("%w; there would be none with less than %d bytes to register (PGAS_MAX_PINNED)", err, bulkLeast*bulkSlots*bulkShare)
	}
	return nil
}

// bulkSlot is the size of a slot: less where the NIC may register little, and 0 where that would be too little.
func (n *nic) bulkSlot() int {
	most := n.caps.MaxPinned
	if most <= 0 {
		return bulkSlot
	}
	slot := min(bulkSlot, most/bulkShare/bulkSlots/superpipe.Block*superpipe.Block)
	if slot < bulkLeast {
		return 0
	}
	return int(slot)
}

// footprint is the registered memory of pipes.
func (b *bulk) footprint() int {
	if b.origin == nil {
		return 0
	}
	return b.origin.Footprint()
}

// startPipe begins a transfer of memory that is on no stack. The handle is done when a put's source is free, a get's
// destination full.
func (n *nic) startPipe(t journey, user mem.Range, p selector.Protocol) (Handle, error) {
	if err := n.connected(t.name, t.r, t.off, user.Bytes); err != nil {
		return Handle{}, err
	}
	own := mem.Hidden(user)
	if t.kind == transport.OpRead { // who copies later could not tell
		if err := n.direct.reg.Destination(own); err != nil {
			return Handle{}, transport.NewOpError(t.name, t.r.Rank, err)
		}
	}
	h, err := n.begin(t.name, t.r.Rank)
	if err != nil {
		return Handle{}, err
	}
	tr := superpipe.Transfer{
		Get: t.kind == transport.OpRead, Rank: t.r.Rank, EP: transport.EP{Index: uint32(t.r.Rank)}, Local: own,
		RAddr: t.r.raddr + uint64(t.off), RKey: t.r.rkey,
	}
	var pipe *superpipe.Pipe
	var ok bool
	var refused error
	// The pipe is entered where it is made, so that nobody flushes in between.
	try := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if pipe, ok, refused = n.bulk.origin.Begin(tr); !ok {
			return refused != nil
		}
		n.bulk.flights = append(n.bulk.flights, flight{pipe: pipe, rank: t.r.Rank, h: h, get: tr.Get})
		e := &n.ends[t.r.Rank]
		e.pending.Add(1)
		e.piped.Add(1)
		n.bulk.live.Add(1)
		return true
	}
	if !try() {
		err = n.waitUntil(t.name, t.r.Rank, try)
	}
	if err == nil && refused != nil {
		err = transport.NewOpError(t.name, t.r.Rank, refused)
	}
	if !ok {
		n.partDone(h.id, nil)
		return Handle{}, err
	}
	n.e.counts.add(PathPipe, t.r.Rank, user.Bytes)
	if p == selector.Hybrid {
		n.help(pipe, own, t.rights())
	}
	for range 2 { // the copy of the first chunk, and its posting: its completion wakes who goes on if nobody waits
		pipe.Step()
	}
	return h, nil
}

// help has the end of a transfer registered while the head travels. Only memory whose registration stays is helped: the
// transfer may be over, and the memory its owner's again, before the helper is.
func (n *nic) help(p *superpipe.Pipe, user mem.Range, a transport.Access) {
	at := n.prices().Selector.Head(user.Bytes)
	if at <= 0 || at >= user.Bytes {
		return
	}
	t := new(tail)
	if !n.helped(p, t) {
		return
	}
	n.menders.Add(1)
	n.e.Sched.Go(func() {
		defer n.menders.Add(-1)
		if n.direct.reg.Acquire(&t.hold, regmgr.Request{Mem: user.Slice(at, user.Bytes-at), Access: a}) == nil {
			p.Pinned(at, t.hold.LKey())
		}
		t.done.Store(true)
		n.d.Wake()
	})
}

// helped notes that a pipe has a helper, unless it is over already.
func (n *nic) helped(p *superpipe.Pipe, t *tail) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.bulk.flights {
		if f := &n.bulk.flights[i]; f.pipe == p {
			f.helping = t
			return true
		}
	}
	return false
}

// advance moves the transfers in pipes along, and ends those that are over. It is called by the poller.
func (n *nic) advance() (moved bool) {
	moved = n.leases.advance()
	if n.bulk.live.Load() > 0 {
		moved = n.advanceFlights() || moved
	}
	if n.leases.work.Load() {
		n.leases.send()
	}
	return moved
}

// advanceFlights is advance for what this rank sends, and gets of what is registered.
func (n *nic) advanceFlights() (moved bool) {
	// Until nothing moves: then each pipe waits for something that the NIC will report, and whoever polls may sleep.
	for n.bulk.origin.Progress() {
		moved = true
	}
	n.unhelp()
	n.mu.Lock()
	defer n.mu.Unlock()
	rest := n.bulk.flights[:0]
	for _, f := range n.bulk.flights {
		done := f.pipe.Done() && f.helping == nil && (f.lease == nil || f.lease.state != leaseAsked)
		n.landLocked(&f, done)
		if !done {
			rest = append(rest, f)
			continue
		}
		n.bulk.origin.Reuse(f.pipe)
		moved = true
	}
	clear(n.bulk.flights[len(rest):])
	n.bulk.flights = rest
	n.bulk.live.Store(int32(len(rest)))
	return moved
}

// unhelp gives back what helpers have registered for transfers that are over.
func (n *nic) unhelp() {
	var free [superpipe.Most]*tail
	k := 0
	n.mu.Lock()
	for i := range n.bulk.flights {
		if f := &n.bulk.flights[i]; f.helping != nil && f.pipe.Done() && f.helping.done.Load() {
			free[k], k, f.helping = f.helping, k+1, nil
		}
	}
	n.mu.Unlock()
	for _, t := range free[:k] {
		if t.hold.Region() != nil {
			n.direct.reg.Release(&t.hold)
		}
	}
}

// landLocked ends a flight's handle when the user's memory is his again, and what a flush waits for when it is over.
func (n *nic) landLocked(f *flight, done bool) {
	if f.lease != nil && !n.leases.landLocked(f, done) {
		return
	}
	e := &n.ends[f.rank]
	sourced := !f.get && f.pipe.Sourced()
	over := f.pipe.Done() // asked last: a pipe that has failed counts as sourced, and its error must be told
	if !f.ended && (over || sourced) {
		f.ended, f.told = true, over
		var err error
		if over {
			err = f.pipe.Err()
		}
		n.partDoneLocked(f.h.id, err)
	}
	if !done {
		return
	}
	if err := f.pipe.Err(); err != nil && !f.told && e.err == nil {
		e.err = err
		e.bad.Store(true)
	}
	e.pending.Add(-1)
	e.piped.Add(-1)
}

// landLocked does what a lease demands when a flight goes on or ends. It reports false where there is nothing else to do.
func (l *leases) landLocked(f *flight, done bool) bool {
	v, n := f.lease, l.n
	switch {
	case v.state == leaseAsked:
		return false
	case v.state == leaseGranted && done:
		l.flying.Add(-1)
		l.tellLocked(note{kind: noteReturn, rank: f.rank, generation: v.generation, tag: v.tag, place: f.pipe.Place()})
	case v.state == leaseRefused && done && v.serves.Bytes == 0: // who has asked goes another way
		n.partDoneLocked(f.h.id, nil)
		n.ends[f.rank].pending.Add(-1)
		n.ends[f.rank].piped.Add(-1)
	}
	return v.state == leaseGranted && v.serves.Bytes == 0
}

// lane is the NIC as pipes see it: their operations are pieces, which are posted again when a connection was mended.
type lane struct{ n *nic }

func (l lane) Caps() transport.Caps { return l.n.caps }

func (l lane) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	return l.n.d.Register(r, a)
}

func (l lane) Deregister(r transport.Region) error { return l.n.d.Deregister(r) }

// Post implements superpipe.NIC: it waits for nothing. An operation's endpoint is looked up by its rank.
func (l lane) Post(ops []transport.Op) (posted int, err error) {
	for posted < len(ops) && err == nil {
		var ok bool
		if ok, err = l.n.postPiped(&ops[posted]); !ok {
			break
		}
		posted++
	}
	return posted, err
}

// postPiped hands one operation of a pipe to the NIC, if that can be done now.
func (n *nic) postPiped(op *transport.Op) (bool, error) {
	rank := int(op.EP.Index)
	if n.closed.Load() {
		return false, errOwnEnd
	}
	if err := n.e.Peers.Check(rank); err != nil {
		return false, err
	}
	if !n.tryEnter(rank) {
		n.want(rank)
		return false, nil
	}
	e := &n.ends[rank]
	id, ok := n.tryAcquire(rank, false)
	if !ok || !n.push() {
		e.leave()
		if ok {
			n.abandon(id)
		}
		return false, nil
	}
	wr := *op
	wr.Cookie, wr.EP = uint64(id), e.now()
	p, ops := n.table.Piece(id), n.table.Op(id)
	n.mu.Lock()
	p.Piped, p.Inner = true, op.Cookie
	n.mu.Unlock()
	p.Seq = e.seq.Add(1)
	ops[0] = wr
	k, err := n.d.Post(ops)
	if k == 1 {
		return true, nil
	}
	n.mu.Lock()
	p.Piped = false
	n.mu.Unlock()
	e.leave()
	n.abandon(id)
	return false, err
}

// reported tells whose operation a piece was how it ended.
func (n *nic) reported(cookie uint64, err error) {
	if cookie&gaugeCookie != 0 {
		n.gauge.reported(err)
		return
	}
	if err != nil {
		err = fmt.Errorf("a chunk of a large transfer: %w", err)
	}
	if cookie&shoreCookies != 0 {
		n.leases.target.Reported(cookie, err)
	} else {
		n.bulk.origin.Reported(cookie, err)
	}
}

// piped carries out a transfer by a pipe; user may be reused, or is filled, when it returns.
func (n *nic) piped(t journey, user mem.Range, p selector.Protocol) error {
	h, err := n.startPipe(t, user, p)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}

// closeBulk ends the transfers in pipes; the NIC is closed.
func (n *nic) closeBulk() {
	if n.bulk.origin != nil {
		n.bulk.origin.Close(errOwnEnd)
	}
	if n.leases.target != nil {
		n.leases.target.Close()
	}
}
