package proto

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/card"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/touch"
	"gopgas/transport"
)

// Exchanger is a collective all-gather among the members of a group: each gives its card and gets all cards by
// member. It returns the same outcome on every member, or an error.
type Exchanger interface {
	Exchange(ctx context.Context, card []byte) ([][]byte, error)
}

// Exposure is memory that every member of a group exposes to the others.
type Exposure struct {
	Of    []Remote  // by member
	Local mem.Range // this rank's part
	// CPU: all members map each other, so that atomics are the CPU's. Else they are the NIC's, for all.
	CPU bool

	e        *Engine
	owned    bool         // Local was allocated by the mapper
	free     func() error // of Local, by Engine.make; may be nil
	region   transport.Region
	hasKey   bool
	hosed    uint32 // the number of the range, where Local is registered in buckets, or marked where it is bare; 0: neither
	bare     bool   // some member's part is: the same for all
	mappings []mem.Range
	common   bool // what the others told is among the engine's commons
}

// Exporter is implemented by mappers that can export memory which they did not make.
type Exporter interface {
	Export(mem.Range) (transport.Token, error)
}

// Allocate exposes bytes of zeroed library memory on every member. It is collective over ranks, the members'
// ranks in the world; either all members get the exposure or all get an error that names who failed and why.
func (e *Engine) Allocate(ctx context.Context, x Exchanger, ranks []int, bytes int) (*Exposure, error) {
	xp := &Exposure{e: e}
	var token transport.Token
	var err error
	if e.mapper != nil {
		xp.Local, token, err = e.mapper.Alloc(bytes)
		xp.owned = err == nil
	} else {
		err = e.make(xp, bytes)
	}
	if err == nil && !e.oneNode(ranks) {
		err = e.openNIC(ctx) // members on other nodes cannot map it, and without a mapper nobody can
	}
	return xp.share(ctx, x, ranks, token, err)
}

// askRoom is from how many bytes on it is asked whether there is room for them: of less the allocator has some left over.
const askRoom = 64 << 20

// make makes memory that is not mapped, and what gives it back, as Close does else: nil if the collector does.
func (e *Engine) make(xp *Exposure, bytes int) error {
	if bytes >= askRoom && e.config.Room != nil {
		if err := e.config.Room(bytes); err != nil {
			return err
		}
	}
	if e.config.Twice {
		if r, free, err := touch.Alloc(bytes); err == nil {
			forget := e.made.add(func() { _ = free() })
			xp.Local, xp.free = r, func() error { forget(); return free() }
			return nil
		}
	}
	xp.Local = mem.Make(bytes)
	return nil
}

// unmake gives back what make has made and nobody has given back, and returns err: where the NIC was not closed it may have that memory still, which
// stays.
func (e *Engine) unmake(err error) error {
	if err != nil {
		return err
	}
	for _, free := range e.made.takeAll() {
		free()
	}
	return nil
}

// Expose makes local memory that the caller owns reachable for the other members. It is collective like
// Allocate; the members' sizes may differ.
func (e *Engine) Expose(ctx context.Context, x Exchanger, ranks []int, local mem.Range) (*Exposure, error) {
	xp := &Exposure{e: e, Local: local}
	var token transport.Token
	var err error
	if ex, ok := e.mapper.(Exporter); ok {
		token, err = ex.Export(local)
	} else {
		err = e.openNIC(ctx) // between processes such memory cannot be mapped
	}
	return xp.share(ctx, x, ranks, token, err)
}

// Keeper is an Exchanger of members who use what was exposed as soon as they have come through the last exchange. Where that fails on one the others may have come through it: this one's
// part stays until the engine is closed.
type Keeper interface {
	Exchanger
	Keeps()
}

// share registers, exchanges cards, maps the others, and agrees on the outcome.
func (xp *Exposure) share(ctx context.Context, x Exchanger, ranks []int, token transport.Token, err error) (*Exposure, error) {
	e := xp.e
	if err == nil && e.nic() != nil && xp.Local.Bytes > 0 && (token == nil || !e.oneNode(ranks)) {
		xp.region, err = e.nic().registerExposed(xp.Local, transport.AllAccess)
		if err != nil {
			err = fmt.Errorf("register %d bytes with the %s NIC: %w", xp.Local.Bytes, e.nic().Name, err)
		}
		xp.hasKey = err == nil
		if errors.Is(err, transport.ErrLimit) {
			err = xp.fallBack(err)
		}
		if xp.hasKey {
			e.nic().know(xp.region, xp.Local)
		}
	}
	mine := card.Card{
		Bytes: xp.Local.Bytes, RAddr: xp.Local.Addr(), RKey: xp.region.RKey, Keyed: xp.hasKey, Hosed: xp.hosed,
		Token: token, Err: err,
	}
	if n := e.nic(); n != nil {
		mine.Addr = n.Domain.Address()
		if n.hoses != nil {
			mine.Budget = n.hoses.Hash()
		}
	}
	cards, xerr := card.Exchange(ctx, x.Exchange, mine)
	if xerr != nil {
		return nil, errors.Join(err, xerr, xp.Free())
	}
	verdict := card.FirstFailure(cards, ranks, err)
	buckets := false
	if verdict == nil {
		buckets, verdict = xp.agree(cards, ranks)
	}
	allMapped := false
	if verdict == nil {
		allMapped = xp.mapAll(cards, ranks, buckets)
		if !allMapped && e.nic() == nil {
			verdict = xp.unreachable(cards, ranks)
		}
	}
	if allMapped && xp.owned {
		e.commons.meet(xp)
		e.peeked.meet(xp, cards)
	}
	// Second round: one member that cannot reach another decides the path, or the failure, for all. It takes
	// place whatever the first one brought, so that every share is exactly two exchanges.
	votes, xerr := card.Exchange(ctx, x.Exchange, card.Card{CPU: allMapped, Err: verdict})
	if xerr != nil {
		if _, keeps := x.(Keeper); keeps {
			return nil, xerr
		}
		return nil, errors.Join(xerr, xp.Free())
	}
	if err := card.FirstFailure(votes, ranks, verdict); err != nil {
		_ = xp.Free()
		return nil, err
	}
	xp.CPU = true
	for _, v := range votes {
		xp.CPU = xp.CPU && v.CPU
	}
	for m := range xp.Of {
		xp.Of[m].nicAtomics = !xp.CPU
	}
	if xp.CPU && xp.owned {
		e.commons.join(xp)
	}
	return xp, nil
}

// oneNode reports whether all of ranks can be expected to map each other.
func (e *Engine) oneNode(ranks []int) bool {
	for _, r := range ranks {
		if e.mapper == nil || e.Nodes[r] != e.Nodes[e.Rank] {
			return false
		}
	}
	return true
}

// mapAll maps the other members' parts and reports whether all are mapped. buckets: what is not registered as a whole is in buckets.
func (xp *Exposure) mapAll(cards []card.Card, ranks []int, buckets bool) bool {
	all := true
	xp.Of = make([]Remote, len(ranks))
	id := xp.e.record.exposed()
	for m, c := range cards {
		r := Remote{Rank: ranks[m], Bytes: c.Bytes, raddr: c.RAddr, rkey: c.RKey, keyed: c.Keyed, room: c.Bytes}
		r.traced = tracedPart(id, c.RAddr, c.Bytes)
		if xp.e.nic() != nil && c.Addr != nil {
			xp.e.nic().Learn(r.Rank, c.Addr)
		}
		switch {
		case c.Hosed == 0:
		case buckets && c.Hosed&bareMark == 0:
			r.hosed = hose.NewFar(r.Rank, c.Hosed, c.RAddr, uint64(c.Bytes))
		default:
			r.hosed = hose.Bare(r.Rank)
			xp.bare = true
		}
		switch {
		case xp.e.mapper != nil && ranks[m] == xp.e.Rank:
			r.Mapped = xp.Local
		case c.Token == nil || xp.e.mapper == nil || xp.e.Nodes[ranks[m]] != xp.e.Nodes[xp.e.Rank]:
			// What another node's token would map, if anything, could not be watched over as a node's ranks are.
			all = all && c.Bytes == 0
		default:
			m, err := xp.e.mapper.Map(c.Token)
			if err != nil {
				all = false
				break
			}
			r.Mapped = m
			xp.mappings = append(xp.mappings, m)
		}
		xp.Of[m] = r
	}
	return all
}

// unreachable says which member has no path.
func (xp *Exposure) unreachable(cards []card.Card, ranks []int) error {
	for m, r := range xp.Of {
		if r.Mapped.Bytes != 0 || r.Bytes == 0 {
			continue
		}
		why := fmt.Errorf("%w: its memory was not made to be shared and no NIC is in use; "+
			"Allocate the window instead of creating it over a slice, or set PGAS_TRANSPORT (in a test Config.NIC or Config.Over of pgastest)", transport.ErrUnsupported)
		if cards[m].Token != nil {
			if _, err := xp.e.mapper.Map(cards[m].Token); err != nil {
				why = err
			}
		}
		return fmt.Errorf("reach rank %d: %w", ranks[m], why)
	}
	return nil
}

// Free gives everything back. The caller has made sure, collectively, that nobody uses the exposure any more.
func (xp *Exposure) Free() error { return xp.FreeWithin(context.Background()) }

// FreeWithin is Free that ends with ctx, too: if another rank has not let go of what it holds of the memory by then, the memory stays
// what it is until the NIC is closed, and the error says who it was.
func (xp *Exposure) FreeWithin(ctx context.Context) error {
	var errs []error
	xp.e.commons.leave(xp)
	for _, m := range xp.mappings {
		errs = append(errs, xp.e.mapper.Unmap(m))
	}
	xp.mappings = nil
	if n := xp.e.nic(); n != nil {
		errs = append(errs, n.leaveHosed(ctx, xp.Of))
	}
	if xp.hosed != 0 && xp.hosed&bareMark == 0 {
		err := xp.e.nic().withdrawHosed(ctx, xp.hosed, xp.region.RKey)
		errs = append(errs, err)
		if endedWith(ctx, err) {
			return errors.Join(errs...)
		}
		xp.hosed = bareMark // what is left of it others reach as they do what never was in buckets
	}
	if xp.hosed != 0 {
		xp.e.nic().exposed.Forget(xp.region.RKey)
		err := xp.e.nic().flights.Drain(ctx, xp.Local)
		errs = append(errs, err)
		if endedWith(ctx, err) {
			return errors.Join(errs...)
		}
		xp.hosed = 0
	}
	if xp.hasKey {
		xp.e.nic().forget(xp.region.RKey)
		err := xp.e.nic().flights.Drain(ctx, xp.Local)
		errs = append(errs, err)
		if endedWith(ctx, err) {
			return errors.Join(errs...)
		}
		errs = append(errs, xp.e.nic().Domain.Deregister(xp.region))
		xp.hasKey = false
	}
	if xp.owned {
		errs = append(errs, xp.e.mapper.Free(xp.Local))
		xp.owned = false
	}
	if xp.free != nil {
		errs = append(errs, xp.free())
		xp.free = nil
	}
	return errors.Join(errs...)
}

// endedWith reports whether err is that of a wait which has ended because ctx has.
func endedWith(ctx context.Context, err error) bool {
	cause := sched.Ended(ctx)
	return cause != nil && errors.Is(err, cause)
}

// At returns the bytes of r from off on.
func (r Remote) At(off, bytes int) Remote {
	if r.Mapped.Bytes != 0 {
		r.Mapped = r.Mapped.Slice(off, bytes)
	}
	r.Bytes = bytes
	r.raddr += uint64(off)
	r.room -= off
	return r
}
