package proto

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/trace"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Registration says how the memory of large transfers is registered. The zero value is the default.
type Registration struct {
	Policy    regmgr.Policy
	Bytes     int64       // the budget, which firehose's promises are part of; 0: what the NIC may pin, less its buffers
	Threshold int         // bytes from which transfers are registered rather than copied; 0: what Costs say, else more than one slot
	Idle      IdleCores   // who has a helper, under the policy Predictive
	Costs     *cost.Model // of this machine and NIC; nil: measured where the policy needs them
}

// direct is the part of a NIC's transfers that go from and to the user's memory without a copy.
type direct struct {
	reg   *regmgr.Manager
	costs cost.Model          // what the policy was told; zero: nothing
	least int                 // bytes from which transfers are large
	holds [pieces]regmgr.Hold // by piece: what its operation uses; the poller's while it is in flight
}

// prepareDirect makes the cache of registrations.
func (n *nic) prepareDirect(r Registration) (err error) {
	c := regmgr.Config{
		Policy: r.Policy, Registrar: n.registrar(), Sched: n.e.Sched, Bytes: r.Bytes, Threshold: r.Threshold, Regions: n.caps.MaxRegions / 4 * 3,
	}
	if r.Policy == regmgr.Predictive {
		c.Ahead = &regmgr.Ahead{Skip: framesBelow, Idle: r.Idle.Policy, Node: r.Idle.node()}
		if !r.Idle.Always {
			c.Ahead.Board = n.e.board
		}
	}
	if c.Threshold == 0 {
		c.Threshold = slotBytes + 1
		if r.Costs != nil {
			c.Threshold = r.Costs.LeastRegistered(regmgr.LeastRegistered)
		}
	}
	n.direct.least = c.Threshold
	if c.Costs, err = n.costs(r); err != nil {
		return err
	}
	n.direct.costs = c.Costs
	n.direct.reg, err = regmgr.New(c)
	return err
}

// framesBelow are the frames from start upwards that all direct transfers have in common or that differ only by how they
// wait: start itself, what calls it, and what the engine was called by.
const framesBelow = 3

// costs returns what the policy must know of the machine: it is measured where nobody has told, but not in virtual time, where
// things cost what a model says.
func (n *nic) costs(r Registration) (cost.Model, error) {
	switch {
	case r.Costs != nil:
		return *r.Costs, nil
	case r.Policy != regmgr.Predictive:
		return cost.Model{}, nil
	case n.e.Sched.Virtual():
		return cost.Named("helper-threads")
	}
	m, err := regmgr.Calibrate(n.d, n.e.Sched)
	if err != nil {
		return m, fmt.Errorf("measure what registrations cost on the %s NIC: %w", n.name, err)
	}
	return m, nil
}

// landed ends what the operation of a piece held. It comes before the piece is settled: whoever then learns of the end
// may unmap its memory.
func (n *nic) landed(id int32) {
	if h := &n.direct.holds[id]; h.Region() != nil {
		n.direct.reg.Release(h)
	}
}

// putUser is a put of a user's memory.
func (n *nic) putUser(r *Remote, off int, src mem.Range) error {
	t := journey{name: opPut, kind: transport.OpWrite, r: r, off: off, path: PathDirect, blocking: true}
	var err error
	switch p := n.choose(&t, false, src); p {
	case selector.Direct:
		err = n.whole(t, src, n.planFor(t, src.Bytes))
	case selector.Pipe, selector.Hybrid:
		err = n.piped(t, src, p)
	case selector.Lease:
		err = n.leasedAll(t, src)
	default:
		err = n.put(opPut, r, off, src)
	}
	n.took(&t, err)
	return err
}

// getUser is putUser's inverse.
func (n *nic) getUser(r *Remote, off int, dst mem.Range) error {
	t := journey{name: "get", kind: transport.OpRead, r: r, off: off, path: PathDirect, blocking: true}
	var err error
	switch p := n.choose(&t, true, dst); p {
	case selector.Direct:
		err = n.whole(t, dst, n.planFor(t, dst.Bytes))
	case selector.Pipe, selector.Hybrid:
		err = n.piped(t, dst, p)
	case selector.Lease:
		err = n.leasedAll(t, dst)
	default:
		err = n.get(r, off, dst)
	}
	n.took(&t, err)
	return err
}

// planFor is how the memory of a direct transfer is registered.
func (n *nic) planFor(t journey, bytes int) regmgr.Plan {
	if p := n.direct.reg.Plan(bytes); p.Register && t.path != PathBypass {
		return p
	}
	return regmgr.Plan{Register: true, Fragment: bytes, Depth: 1}
}

// journey is what all parts of a direct transfer have in common.
type journey struct {
	name string
	kind transport.Kind
	r    *Remote
	off  int // of the target's memory where the user's begins
	path Path

	blocking bool           // it is over when the call returns, but for a flush
	trial    selector.Trial // what its cost is noted under, if anything
	begun    time.Duration  // of a trial
}

func (t journey) rights() transport.Access {
	if t.kind == transport.OpRead {
		return transport.LocalWrite
	}
	return 0
}

// opPut is the name of the puts whose failure a flush reports if nobody has waited for their handle.
const opPut = "put"

// mostDepth bounds regmgr.Plan.Depth, so that a transfer needs no allocation.
const mostDepth = 4

// whole carries out a transfer, a fragment at a time, with as many of them in flight as plan says; user may be reused, or
// is filled, when it returns. Fragments that cannot be registered are copied.
func (n *nic) whole(t journey, user mem.Range, plan regmgr.Plan) (err error) {
	if plan.Fragment >= user.Bytes && n.isSingle(&t, user.Bytes) {
		switch h, err := n.single(&t, 0, user); {
		case err == nil:
			return h.Wait(context.Background())
		case errors.Is(err, regmgr.ErrCopy):
			return n.copied(t, 0, user)
		default:
			return err
		}
	}
	return n.inParts(t, user, plan)
}

// inParts is whole for what is more than one operation.
func (n *nic) inParts(t journey, user mem.Range, plan regmgr.Plan) (err error) {
	var flying [mostDepth]Handle
	depth := min(plan.Depth, mostDepth)
	begun, ended := 0, 0
	for at := 0; err == nil && at < user.Bytes; at += plan.Fragment {
		if begun-ended == depth {
			err = flying[ended%depth].Wait(context.Background())
			ended++
		}
		part := user.Slice(at, min(plan.Fragment, user.Bytes-at))
		var h Handle
		if err == nil {
			h, err = n.start(t, at, part)
		}
		switch {
		case errors.Is(err, regmgr.ErrCopy):
			err = n.copied(t, at, part)
		case err == nil:
			flying[begun%depth] = h
			begun++
		}
	}
	for ; ended < begun; ended++ {
		if werr := flying[ended%depth].Wait(context.Background()); err == nil {
			err = werr
		}
	}
	return err
}

// postHeld posts a piece of transfer h, between part, which hold keeps registered, and the target's bytes at off under key. The hold and
// the piece are given back by whoever sees the end of it, also on an error.
func (n *nic) postHeld(t journey, h Handle, id int32, hold regmgr.Hold, part mem.Range, off int, key uint64) error {
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(off), RKey: key}
	op.SGE[0] = transport.SGE{Mem: part, LKey: hold.LKey()}
	n.mu.Lock()
	n.table.Join(h.id, id)
	n.direct.holds[id] = hold // P2: the poller's from here on, or abandon's
	n.mu.Unlock()
	err := n.post(t.name, id, op)
	if err != nil {
		n.partDone(h.id, nil)
	}
	return err
}

// copied carries out the part of a transfer, at byte at of the user's memory, that could not be registered.
func (n *nic) copied(t journey, at int, part mem.Range) error {
	t.off += at
	switch {
	case t.r.hosed == nil && n.pipes(part):
		return n.piped(t, part, selector.Pipe)
	case t.kind == transport.OpRead:
		return n.get(t.r, t.off, part)
	default:
		return n.put(t.name, t.r, t.off, part)
	}
}

// start begins the transfer of part, at byte at of the user's memory. The error wraps regmgr.ErrCopy where part cannot be
// registered; nothing has begun then.
func (n *nic) start(t journey, at int, part mem.Range) (Handle, error) {
	if t.r.hosed != nil {
		return n.hosedStart(t, t.off+at, part)
	}
	if err := n.reach(t.name, t.r, t.off+at, part.Bytes); err != nil {
		return Handle{}, err
	}
	var all regmgr.Hold // keeps the registration until the last piece has its own reference
	if err := n.direct.reg.Acquire(&all, regmgr.Request{Mem: part, Access: t.rights()}); err != nil {
		if !errors.Is(err, regmgr.ErrCopy) {
			err = transport.NewOpError(t.name, t.r.Rank, err)
		}
		return Handle{}, err
	}
	h, err := n.begin(t.name, t.r.Rank)
	if err != nil {
		n.direct.reg.Release(&all)
		return Handle{}, err
	}
	n.e.counts.add(t.path, t.r.Rank, part.Bytes)
	for done := 0; done < part.Bytes && err == nil; {
		bytes := min(part.Bytes-done, n.caps.MaxMessage)
		err = n.startPiece(t, h, &all, t.off+at+done, part.Slice(done, bytes), done+bytes == part.Bytes)
		done += bytes
	}
	if all.Region() != nil {
		n.direct.reg.Release(&all)
	}
	n.partDone(h.id, nil)
	if err != nil { // what has been posted is on its way: the user's memory is not his before it has arrived
		_ = h.Wait(context.Background())
	}
	return h, err
}

// startPiece posts one operation of transfer h, between piece and the target's bytes at off. all, which keeps the transfer's
// memory registered, becomes the piece's if that is the last one.
func (n *nic) startPiece(t journey, h Handle, all *regmgr.Hold, off int, piece mem.Range, last bool) error {
	id, err := n.acquire(t.name, t.r.Rank, false)
	if err != nil {
		return err
	}
	var hold regmgr.Hold
	if last {
		hold, *all = *all, regmgr.Hold{}
	} else if err = n.direct.reg.Acquire(&hold, regmgr.Request{Mem: piece, Access: t.rights(), Of: all}); err != nil {
		n.abandon(id)
		return transport.NewOpError(t.name, t.r.Rank, err)
	}
	// It is registered, so it is on no stack, and nothing is lost by hiding it from the compiler.
	return n.postHeld(t, h, id, hold, mem.Hidden(piece), off, t.r.rkey)
}

// startUser begins a transfer whose handle is done when the user's memory is his again. begun is false where nothing has
// begun, since the memory cannot be registered or is too little for that.
func (n *nic) startUser(t journey, user mem.Range) (h Handle, begun bool, err error) {
	p := n.choose(&t, true, user)
	if p == selector.Direct {
		// A pipelined transfer would need somebody to go on with it, so all of it is registered at once.
		if n.isSingle(&t, user.Bytes) {
			h, err = n.single(&t, 0, user)
		} else {
			h, err = n.start(t, 0, user)
		}
		if !errors.Is(err, regmgr.ErrCopy) {
			return h, true, err
		}
		p, err = selector.Bounce, nil
		if t.r.hosed == nil && n.pipes(user) {
			p = selector.Pipe
		}
	}
	switch p {
	case selector.Bounce:
		return h, false, nil
	case selector.Lease:
		h, err = n.leased(t, user)
		return h, true, err
	}
	h, err = n.startPipe(t, user, p)
	return h, true, err
}

// PutNB begins a Put. src belongs to the engine until the handle is done. A small one may stay in the engine until there
// are more, or until this rank does anything else with the NIC; it is done with src at once.
func (e *Engine) PutNB(r *Remote, off int, src mem.Range) (Handle, error) {
	if e.record == nil {
		return e.putNB(r, off, src)
	}
	event, mark := e.record.begin(trace.Put, r, src)
	h, err := e.putNB(r, off, src)
	e.record.started(&event, mark, h)
	return h, err
}

func (e *Engine) putNB(r *Remote, off int, src mem.Range) (Handle, error) {
	if r.Mapped.Bytes != 0 {
		return Handle{}, e.put(r, off, src)
	}
	n := e.nic()
	h, begun, err := n.startUser(journey{name: opPut, kind: transport.OpWrite, r: r, off: off, path: PathDirect}, src)
	if begun || err != nil {
		return h, err
	}
	return Handle{}, n.putLater(opPut, r, off, src)
}

// registerExposed registers memory that others may use. Where the NIC refuses, what is registered for this rank's own
// transfers and not in use makes room.
func (n *nic) registerExposed(r mem.Range, a transport.Access) (transport.Region, error) {
	for {
		reg, err := n.registrar().Register(r, a)
		if err == nil || !errors.Is(err, transport.ErrLimit) || n.direct.reg.Trim(1) == 0 {
			return reg, err
		}
	}
}

// closeDirect gives up all registrations that the NIC, which closes next, is not at work on.
func (n *nic) closeDirect() error {
	if err := n.direct.reg.Close(); err != nil {
		return fmt.Errorf("the %s NIC: %w", n.name, err)
	}
	return nil
}

// Registered returns the counters of registered memory, and the first registration that was refused; ok is false where
// there is no NIC.
func (e *Engine) Registered() (s regmgr.Stats, refused error, ok bool) {
	n := e.nic()
	if n == nil {
		return s, nil, false
	}
	return n.direct.reg.Stats(), n.direct.reg.Refusal(), true
}

// KeepRegistered is regmgr's Keep, for memory outside the Go heap: registrations of it stay until the lifetime ends. Without
// a NIC there is nothing to keep, and the lifetime is nil.
func (e *Engine) KeepRegistered(b []byte) (*regmgr.Lifetime, error) {
	if e.nic() == nil {
		return nil, nil
	}
	return e.nic().direct.reg.Keep(b)
}
