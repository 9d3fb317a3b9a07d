package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// hosedPipe begins a transfer between the user's memory, which is on no stack, and buckets: a flight for each stretch whose buckets are
// asked for together. While they are, its first chunks are copied, and the flight before goes on. The handle is the last one's; the
// others are done. Where buckets are refused the rest goes by message or in slots, and is done on return.
func (n *device) hosedPipe(t *journey, user mem.Range, p selector.Protocol) (last nic.Handle, err error) {
	if err := n.connected(t.name, t.r, t.off, user.Bytes); err != nil {
		return nic.Handle{}, err
	}
	own := mem.Hidden(user)
	for at := 0; at < own.Bytes; {
		rest := own.Slice(at, own.Bytes-at)
		h, bytes, err := n.hosedFlight(t, at, rest, p)
		// Whatever has become of it, what is under way is the user's memory too. With two flights at once there is always one to be moved.
		if werr := last.Wait(context.Background()); err == nil && werr != nil {
			_ = h.Wait(context.Background())
			err = werr
		}
		switch last = h; {
		case err != nil:
			return nic.Handle{}, err
		case bytes == 0:
			return nic.Handle{}, n.unhosed(t, at, rest)
		}
		at += bytes
	}
	return last, nil
}

// hosedFlight begins the flight of the first of rest's bytes, which are those of the user from byte at on, and returns how many it
// carries; 0: the buckets were refused.
func (n *device) hosedFlight(t *journey, at int, rest mem.Range, p selector.Protocol) (h nic.Handle, bytes int, err error) {
	trip := t.trip(t.off + at)
	claim, err := n.hoses.Claim(t.name, t.r.hosed, trip.Addr, rest.Bytes)
	if err != nil {
		return h, 0, err
	}
	part := rest.Slice(0, claim.Bytes())
	head := part.Bytes
	if p == selector.Hybrid {
		head = n.prices().Selector.Head(part.Bytes)
	}
	h, granted, err := n.flights.BeginOn(trip, part, head, claim.Takes(), claim)
	if err != nil || !granted {
		return nic.Handle{}, 0, err
	}
	n.e.counts.add(PathPipe, t.r.Rank, part.Bytes)
	return h, part.Bytes, nil
}

// unhosed carries out what is left of a transfer after buckets were refused, without asking for them all again.
func (n *device) unhosed(t *journey, at int, rest mem.Range) error {
	t.trial = selector.Trial{}
	n.bulk.wary[t.r.Rank].Store(refusals)
	if n.bulk.how.kind == bulkPiped {
		n.bulk.otherwise[InBuckets].Add(1)
	}
	if t.kind == transport.OpRead {
		return n.get(t.r, t.off+at, rest)
	}
	return n.put(t.name, t.r, t.off+at, rest)
}
