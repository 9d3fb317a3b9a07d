package proto

import (
	"context"
	"slices"
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/trace"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Offer is memory of this rank that others read from where it lies, for as long as a collective call of theirs lasts. It is registered as a transfer's memory
// is, through the one cache, where that pays: registering costs about what the copies cost that it spares, so what has not been used before is not
// offered, nor what would not stay registered. The zero Offer is empty.
type Offer struct {
	Addr, Key uint64 // what the others need to know; both 0: there is nothing

	n    *device
	hold regmgr.Hold
	kept mem.Range // what keeps memory alive that is not registered
}

// used is the memory of this rank that was to be offered last, so that what comes again is known. It is two ranges a call, at most. It keeps no memory alive: what the
// collector gives to somebody else at the same place counts as the same.
type used struct {
	mu   sync.Mutex
	last [16]place
	next int
}

// place is where memory lies.
type place struct {
	addr  uint64
	bytes int
}

// again notes a range, and reports whether it was noted before.
func (u *used) again(names *mem.Names, r mem.Range) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := place{names.Of(r), r.Bytes}
	if slices.Contains(u.last[:], p) {
		return true
	}
	u.last[u.next%len(u.last)] = p
	u.next++
	return false
}

// Foresee notes memory that will be offered if it comes again.
func (e *Engine) Foresee(r mem.Range) {
	if n := e.nic(); n != nil && r.Bytes > 0 {
		n.used.again(n.direct.reg.Names(), r)
	}
}

// Offer has o offer r until Withdraw, and reports whether it does.
func (e *Engine) Offer(o *Offer, r mem.Range) bool {
	n := e.nic()
	// An error: there is no room for it, or it cannot be registered.
	if !n.pays(r) || n.direct.reg.Acquire(&o.hold, regmgr.Request{Mem: r, Access: transport.RemoteRead}) != nil {
		return false
	}
	o.n, o.Addr, o.Key = n, r.Addr(), o.hold.RKey()
	return true
}

// pays reports whether memory is worth offering. Under a policy that somebody has asked for it is what that registers as a whole.
func (n *device) pays(r mem.Range) bool {
	reg := n.direct.reg
	again := n.used.again(reg.Names(), r)
	if reg.Policy() != regmgr.LeavePinned {
		plan := reg.Plan(r.Bytes)
		return plan.Register && plan.Fragment >= r.Bytes
	}
	covered, stays := reg.Known(r, transport.RemoteRead)
	return stays && (covered || again)
}

// Withdraw ends the offer. Nobody reads it any more.
func (o *Offer) Withdraw() {
	if o.n != nil {
		o.n.direct.reg.Release(&o.hold)
	}
	*o = Offer{}
}

// KeepTo keeps what is offered registered until this rank leaves the world, and empties o: others may still read it, who have not heard that the call has
// failed, and what a NIC refuses ends a connection.
func (e *Engine) KeepTo(o *Offer) {
	if o.n != nil {
		kept := *o
		e.AtEnd(kept.Withdraw)
	}
	*o = Offer{}
}

// Offered is how this rank reaches what another one offers. Who fetches from it knows its length.
func (e *Engine) Offered(rank int, addr, key uint64) Remote {
	const all = 1 << 46
	return Remote{Rank: rank, Bytes: all, raddr: addr, rkey: key, keyed: true, room: all, offered: true}
}

// Fetch is Get on behalf of a collective call, which is shown and marked itself.
func (e *Engine) Fetch(r *Remote, off int, dst mem.Range) error {
	if e.record == nil || e.record.To == nil {
		return e.fetchFrom(r, off, dst)
	}
	t := Recording{Clock: e.record.Clock, To: e.record.To}
	event, mark := t.begin(trace.Get, r, off, dst)
	err := e.fetchFrom(r, off, dst)
	t.end(&event, mark)
	return err
}

func (e *Engine) fetchFrom(r *Remote, off int, dst mem.Range) error {
	if r.peeked {
		return e.peek(r, off, dst)
	}
	return e.get(r, off, dst)
}

// fetchMost is how many bytes of each run are asked for at once by ranks that read of each other, where what the NIC does takes processors: through a socket that takes
// no more than some megabytes they would get into each other's way.
const fetchMost = 1 << 20

// FetchRuns is GetRuns of runs that are long, or none: each travels like a get of its own, all at once. mutual says that those who are read do the same. dst is
// the caller's again on return, also behind an error.
func (e *Engine) FetchRuns(op string, mutual bool, count int, run func(int) Run, dst mem.Range) error {
	if e.record == nil {
		return e.fetchRuns(op, mutual, count, run, dst)
	}
	event, v := e.record.runs(trace.Get, op)
	err := e.fetchRuns(op, mutual, count, run, dst)
	e.record.overRuns(&event, &v, count, run, dst, false)
	return err
}

func (e *Engine) fetchRuns(op string, mutual bool, count int, run func(int) Run, dst mem.Range) error {
	if n := e.nic(); !mutual || n == nil || !n.Caps.Busy {
		return e.fetchAtOnce(op, count, run, dst)
	}
	longest := 0
	for i := range count {
		longest = max(longest, run(i).Bytes)
	}
	for lo := 0; lo < longest; lo += fetchMost {
		err := e.fetchAtOnce(op, count, func(i int) Run {
			r := run(i)
			at := min(lo, r.Bytes)
			return Run{To: r.To, Far: r.Far + at, Near: r.Near + at, Bytes: min(r.Bytes-at, fetchMost)}
		}, dst)
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchAtOnce asks for all runs, and waits.
func (e *Engine) fetchAtOnce(op string, count int, run func(int) Run, dst mem.Range) error {
	if count == 1 {
		r := run(0)
		if r.Bytes == 0 {
			return nil
		}
		return e.get(r.To, r.Far, dst.Slice(r.Near, r.Bytes))
	}
	var few [8]Handle
	hs, err := e.getRunsNB(op, count, run, dst, few[:0])
	for i := range hs {
		if werr := hs[i].Wait(context.Background()); err == nil {
			err = werr
		}
	}
	return err
}
