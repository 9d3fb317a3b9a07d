package proto

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/card"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// CardBytes is the most that a card of attached memory takes.
const CardBytes = 192

// Meet makes a group ready for memory that its members attach one by one, later: the NIC is open, if there is one, and
// all know each other's address. It is collective like Allocate. cpu says that the members can be expected to map each
// other's library memory, so that atomics on that are the CPU's; it is the same for all.
func (e *Engine) Meet(ctx context.Context, x Exchanger, ranks []int) (cpu bool, err error) {
	mine := card.Card{CPU: e.oneNode(ranks), Err: e.openNIC(ctx)}
	if n := e.nic(); n != nil {
		mine.Addr = n.Domain.Address()
	}
	cards, xerr := card.Exchange(ctx, x.Exchange, mine)
	if xerr != nil {
		return false, errors.Join(mine.Err, xerr)
	}
	if err := card.FirstFailure(cards, ranks, mine.Err); err != nil {
		return false, err
	}
	cpu = true
	for m, c := range cards {
		cpu = cpu && c.CPU
		if n := e.nic(); n != nil && c.Addr != nil {
			n.Learn(ranks[m], c.Addr)
		}
	}
	return cpu, nil
}

// Attach exposes memory of this rank alone: local, which the caller owns, or, if that is empty, bytes of zeroed library
// memory. What the NIC has no room for is not registered, and others reach it through this rank's CPU. It returns the exposure, without its table of members, and the card by which the others Reach it. cpu is what
// Meet returned; alone says that there are no others.
func (e *Engine) Attach(local mem.Range, bytes int, cpu, alone bool) (*Exposure, []byte, error) {
	xp := &Exposure{e: e, Local: local, CPU: cpu}
	own := local.Bytes != 0
	n := e.nic()
	if own {
		xp.CPU = alone && e.mapper != nil
		if n == nil && !alone {
			return nil, nil, fmt.Errorf("%w: memory that was not made to be shared is reached through a NIC, and none is in use: "+
				"use Alloc, or set PGAS_TRANSPORT (in a test Config.NIC or Config.Over of pgastest)", transport.ErrUnsupported)
		}
	}
	c := card.Card{CPU: xp.CPU}
	var err error
	switch {
	case own:
	case e.mapper != nil:
		if xp.Local, c.Token, err = e.mapper.Alloc(bytes); err != nil {
			return nil, nil, err
		}
		xp.owned = true
	default:
		if err := e.make(xp, bytes); err != nil {
			return nil, nil, err
		}
	}
	if n != nil && !xp.CPU {
		if xp.region, err = n.registrar().Register(xp.Local, transport.AllAccess); err != nil {
			err = fmt.Errorf("register %d bytes with the %s NIC: %w", xp.Local.Bytes, n.Name, err)
			if !errors.Is(err, transport.ErrLimit) || n.Payload == 0 {
				return nil, nil, errors.Join(err, xp.Free())
			}
			xp.strip()
		} else {
			xp.hasKey = true
			n.know(xp.region, xp.Local)
		}
	}
	c.Bytes, c.RAddr, c.RKey, c.Keyed, c.Hosed = xp.Local.Bytes, xp.Local.Addr(), xp.region.RKey, xp.hasKey, xp.hosed
	b := c.Encode()
	if len(b) > CardBytes {
		return nil, nil, errors.Join(fmt.Errorf("%w: a card of %d bytes, at most %d", card.ErrMalformed, len(b), CardBytes), xp.Free())
	}
	return xp, b, nil
}

// Reach returns how this rank reaches what rank has attached, by its card; own is this rank's exposure if it is its own.
// The exposure that is returned holds the way there until it is freed.
func (e *Engine) Reach(rank int, b []byte, own *Exposure) (*Exposure, error) {
	c, err := card.Decode(b)
	if err != nil {
		return nil, err
	}
	xp := &Exposure{e: e, CPU: c.CPU}
	r := Remote{Rank: rank, Bytes: c.Bytes, raddr: c.RAddr, rkey: c.RKey, keyed: c.Keyed, room: c.Bytes, nicAtomics: !c.CPU}
	r.traced = tracedPart(e.record.exposed(), c.RAddr, c.Bytes)
	if c.Hosed != 0 {
		r.hosed = hose.Bare(rank)
	}
	switch {
	case e.mapper == nil:
	case own != nil:
		r.Mapped = own.Local
	case c.Token != nil:
		r.Mapped, err = e.mapper.Map(c.Token)
		if err == nil {
			xp.mappings = append(xp.mappings, r.Mapped)
		}
	}
	if r.Mapped.Bytes == 0 && (c.CPU || e.nic() == nil) {
		if err == nil {
			err = fmt.Errorf("%w: it is not mapped and no NIC is in use", transport.ErrUnsupported)
		}
		return nil, fmt.Errorf("reach memory of rank %d: %w", rank, err)
	}
	xp.Of = []Remote{r}
	return xp, nil
}
