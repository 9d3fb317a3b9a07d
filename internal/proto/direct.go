package proto

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/selector"
	"gopgas/internal/trace"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Registration says how the memory of large transfers is registered. The zero value is the default.
type Registration struct {
	Policy    regmgr.Policy
	Bytes     int64       // the budget, which firehose's promises are part of; 0: what the NIC may pin, less its buffers
	Threshold int         // bytes from which transfers are registered rather than copied; 0: what the costs say where they are known, else more than one slot
	Idle      IdleCores   // who has a helper, under the policy Predictive
	Predict   Prediction  // what it predicts by
	Costs     *cost.Model // of this machine and NIC; nil: measured where the policy needs them
	Preferred bool        // nobody has asked for a policy: whichever pays, as regmgr.Facts.Prefer says
	Memory    int64       // of the machine, bytes, which Preferred goes by; 0: nobody knows
}

// Prediction is what the policy Predictive predicts by, as in regmgr.Ahead.
type Prediction struct{ Window, Age, Periods int }

// direct is the part of a NIC's transfers that go from and to the user's memory without a copy.
type direct struct {
	reg   *regmgr.Manager
	costs cost.Model    // what the policy was told; zero: nothing
	least int           // bytes from which transfers are large
	sure  atomic.Uint32 // transfers that went direct for sure
}

// prepareDirect makes the cache of registrations.
func (n *device) prepareDirect(r Registration) error {
	why := n.prefer(&r)
	c := regmgr.Config{
		Why:    why,
		Policy: r.Policy, Registrar: n.registrar(), Sched: n.e.Sched, Bytes: r.Bytes, Threshold: r.Threshold, Regions: n.Caps.MaxRegions / 4 * 3,
	}
	var err error
	if c.Costs, err = n.costs(r); err != nil { // as where another process has registered all that there is: the policy has published ones
		c.Why += "; " + err.Error()
	}
	if r.Policy == regmgr.Predictive {
		c.Ahead = &regmgr.Ahead{Skip: framesBelow, Idle: r.Idle.Policy, Node: r.Idle.node(&c.Costs), Window: r.Predict.Window, Age: r.Predict.Age, Periods: r.Predict.Periods}
		if !r.Idle.Always {
			c.Ahead.Board = n.e.board
		}
	}
	switch {
	case c.Threshold != 0:
	case c.Costs.PageBytes != 0:
		c.Threshold = c.Costs.LeastRegistered(regmgr.LeastRegistered)
	default:
		c.Threshold = nic.SlotBytes + 1
	}
	n.direct.least, n.direct.costs = c.Threshold, c.Costs
	n.direct.reg, err = regmgr.New(c)
	return err
}

// framesBelow are the frames from start upwards that all direct transfers have in common or that differ only by how they
// wait: start itself, what calls it, and what the engine was called by.
const framesBelow = 3

// costs returns what the policy must know of the machine: it is measured where nobody has told, but not in virtual time, where
// things cost what a model says.
func (n *device) costs(r Registration) (cost.Model, error) {
	switch {
	case r.Costs != nil:
		return *r.Costs, nil
	case r.Policy != regmgr.Predictive:
		return cost.Model{}, nil
	case n.e.Sched.Virtual():
		return cost.Named("helper-threads")
	}
	m, err := regmgr.Calibrate(context.Background(), n.Domain, n.e.Sched, nil)
	if err != nil {
		return cost.Model{}, fmt.Errorf("what registrations cost on the %s NIC cannot be measured: %w", n.Name, err)
	}
	return m, nil
}

// putUser is a put of a user's memory.
func (n *device) putUser(r *Remote, off int, src mem.Range) error {
	if n.isPlain(leastPut, r, src.Bytes) {
		n.small.habits.Other()
		return n.putInline(nic.OpPut, r, off, src)
	}
	return n.putChosen(r, off, src)
}

// putChosen is putUser where there is something to choose.
func (n *device) putChosen(r *Remote, off int, src mem.Range) error {
	t := journey{name: nic.OpPut, kind: transport.OpWrite, r: r, off: off, path: PathDirect, blocking: true}
	var err error
	switch p := n.choose(&t, false, src); p {
	case selector.Direct:
		err = n.whole(&t, src, n.planFor(t, src.Bytes))
	case selector.Pipe, selector.Hybrid:
		err = n.piped(&t, src, p)
	case selector.Lease:
		err = n.leasedAll(t, src)
	default:
		err = n.put(nic.OpPut, r, off, src)
	}
	n.took(&t, err)
	return err
}

// getUser is putUser's inverse.
func (n *device) getUser(r *Remote, off int, dst mem.Range) error {
	if n.isPlain(leastGet, r, dst.Bytes) {
		n.small.habits.Other()
		return n.get(r, off, dst)
	}
	return n.getChosen(r, off, dst)
}

// getChosen is getUser where there is something to choose.
func (n *device) getChosen(r *Remote, off int, dst mem.Range) error {
	t := journey{name: "get", kind: transport.OpRead, r: r, off: off, path: PathDirect, blocking: true}
	var err error
	switch p := n.choose(&t, true, dst); p {
	case selector.Direct:
		err = n.whole(&t, dst, n.planFor(t, dst.Bytes))
	case selector.Pipe, selector.Hybrid:
		err = n.piped(&t, dst, p)
	case selector.Lease:
		err = n.leasedAll(t, dst)
	default:
		err = n.get(r, off, dst)
	}
	n.took(&t, err)
	return err
}

// planFor is how the memory of a direct transfer is registered.
func (n *device) planFor(t journey, bytes int) regmgr.Plan {
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

// messages are those by which the target's CPU stores what a put brings.
func (t *journey) messages() messages {
	return messages{name: t.name, kind: errand.ToStore, r: t.r, off: t.off}
}

// mostDepth bounds regmgr.Plan.Depth, so that a transfer needs no allocation.
const mostDepth = 4

// whole carries out a transfer, a fragment at a time, with as many of them in flight as plan says; user may be reused, or
// is filled, when it returns. Fragments that cannot be registered are copied, and it is a trial no more.
func (n *device) whole(t *journey, user mem.Range, plan regmgr.Plan) (err error) {
	if t.path == PathGather {
		m := t.messages()
		if err := n.gatherAll(&m, user); !errors.Is(err, regmgr.ErrCopy) {
			return err
		}
		return n.copied(t, 0, user)
	}
	if plan.Fragment >= user.Bytes && n.isSingle(t, user.Bytes) {
		switch h, err := n.single(t, 0, user); {
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
func (n *device) inParts(t *journey, user mem.Range, plan regmgr.Plan) (err error) {
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

// copied carries out the part of a transfer, at byte at of the user's memory, that could not be registered: what it costs is not what
// the choice made was tried for.
func (n *device) copied(t *journey, at int, part mem.Range) error {
	t.trial = selector.Trial{}
	off := t.off + at
	switch {
	case n.pipes(t, at, part):
		rest := *t
		rest.off = off
		return n.piped(&rest, part, selector.Pipe)
	case t.kind == transport.OpRead:
		return n.get(t.r, off, part)
	default:
		return n.put(t.name, t.r, off, part)
	}
}

// startUser begins a transfer whose handle is done when the user's memory is his again. begun is false where nothing has
// begun, since the memory cannot be registered or is too little for that.
func (n *device) startUser(t journey, user mem.Range) (h Handle, begun bool, err error) {
	p := n.choose(&t, true, user)
	if p == selector.Direct {
		// A pipelined transfer would need somebody to go on with it, so all of it is registered at once.
		switch {
		case t.path == PathGather:
			m := t.messages()
			h, err = n.gather(&m, user)
		case n.isSingle(&t, user.Bytes):
			h, err = n.single(&t, 0, user)
		default:
			h, err = n.start(&t, 0, user)
		}
		if !errors.Is(err, regmgr.ErrCopy) {
			return h, true, err
		}
		p, err = selector.Bounce, nil
		if n.pipes(&t, 0, user) {
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
	h, err = n.startPipe(&t, user, p)
	return h, true, err
}

// PutNB begins a Put. src belongs to the engine until the handle is done. A small one may stay in the engine until there
// are more, or until this rank does anything else with the NIC; it is done with src at once.
func (e *Engine) PutNB(r *Remote, off int, src mem.Range) (Handle, error) {
	if e.record == nil {
		return e.putNB(r, off, src)
	}
	event, mark := e.record.begin(trace.Put, r, off, src)
	h, err := e.putNB(r, off, src)
	e.record.started(&event, mark, h)
	return h, err
}

func (e *Engine) putNB(r *Remote, off int, src mem.Range) (Handle, error) {
	if r.Mapped.Bytes != 0 {
		return Handle{}, e.put(r, off, src)
	}
	n := e.nic()
	if n.isPlain(leastPut, r, src.Bytes) {
		n.small.habits.Other()
		return Handle{}, n.putInlineLater(nic.OpPut, r, off, src)
	}
	h, begun, err := n.startUser(journey{name: nic.OpPut, kind: transport.OpWrite, r: r, off: off, path: PathDirect}, src)
	if begun || err != nil {
		return h, err
	}
	return Handle{}, n.putLater(nic.OpPut, r, off, src)
}

// registerExposed registers memory that others may use.
func (n *device) registerExposed(r mem.Range, a transport.Access) (transport.Region, error) {
	return n.registerBeside(n.registrar(), r, a)
}

// registerBeside registers what is not of regmgr's cache. Where the NIC refuses, what is registered for this rank's own
// transfers and not in use makes room.
func (n *device) registerBeside(with regmgr.Registrar, r mem.Range, a transport.Access) (transport.Region, error) {
	for {
		reg, err := with.Register(r, a)
		if err == nil || !errors.Is(err, transport.ErrLimit) || n.direct.reg.Trim(1) == 0 {
			return reg, err
		}
	}
}

// closeDirect gives up all registrations that the NIC, which closes next, is not at work on.
func (n *device) closeDirect() error {
	if err := n.direct.reg.Close(); err != nil {
		return fmt.Errorf("the %s NIC: %w", n.Name, err)
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
	if refused = n.direct.reg.Refusal(); refused == nil {
		_, refused = n.flights.Unready()
	}
	return n.direct.reg.Stats(), refused, true
}

// KeepRegistered is regmgr's Keep, for memory outside the Go heap: registrations of it stay until the lifetime ends. Without
// a NIC there is nothing to keep, and the lifetime is nil.
func (e *Engine) KeepRegistered(b []byte) (*regmgr.Lifetime, error) {
	if e.nic() == nil {
		return nil, nil
	}
	return e.nic().direct.reg.Keep(b)
}
