package proto

import (
	"errors"
	"math"

	"gopgas/internal/am"
	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/flight"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/regmgr"
)

// askHose is the first handler of package hose; those of package errand come before.
const askHose = uint8(errand.Kinds)

// askFlight is the first handler of package flight; those of package hose come before.
const askFlight = askHose + uint8(hose.Kinds)

// Statuses of replies.
const (
	statusOK        = errand.OK
	statusRefused   = errand.Refused
	statusMalformed = errand.Malformed
)

// handle performs a request of a peer. It runs in the poller and waits for nothing.
func (n *device) handle(r am.Request, out []byte) (int, uint8) {
	if k := r.Handler - askHose; k < uint8(hose.Kinds) && n.hoses != nil {
		return answered(n.hoses.Handle(hose.Kind(k), r.From, r.Payload, out)) // which may register: not under a lock
	}
	switch r.Handler {
	case askLoan:
		return n.lendTo(r, out) // which registers: not under a lock that others need
	case askReturn:
		n.endLoan(r.From)
		return 0, statusOK
	case askPrices:
		return n.tell(r, out)
	}
	kind := flight.Kind(r.Handler - askFlight)
	switch kind {
	case flight.ToReturn, flight.ToStop:
		return answered(n.flights.Noted(kind, r, out))
	case flight.ToPut:
		n.flights.Ready() // which may register: not under a lock
	}
	whole, ok := n.exposed.Hold(r.Args[0])
	defer n.exposed.Release()
	switch {
	case !ok:
		return 0, statusRefused
	case kind < flight.Kinds:
		part, ok := errand.Within(whole, r.Args[1], int(min(r.Args[2], math.MaxInt)))
		if !ok {
			return 0, statusRefused
		}
		return answered(n.flights.Serve(kind, r, part, out))
	}
	return errand.Perform(errand.Kind(r.Handler), r.Args, r.Payload, whole, out)
}

// answered is what am is told of an answer; ok is false where no rank of this program would ask so.
func answered(bytes int, ok bool) (int, uint8) {
	if !ok {
		return 0, statusMalformed
	}
	return bytes, statusOK
}

// askedAtomic has the target's CPU perform an atomic and returns the old value.
func (n *device) askedAtomic(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	name := op.Fetch()
	if err := n.reachElements(name, r, off, t.Bytes, t.Bytes); err != nil {
		return 0, err
	}
	k, err := n.Keep(name, r.Rank, false, true)
	if err != nil {
		return 0, err
	}
	args, what := errand.ForAtomic(op, t, r.rkey, r.raddr+uint64(off), x, y)
	if err := n.Ask(name, k.ID, uint8(errand.ToAtomic), args, mem.Of(what[:])); err != nil {
		n.PartDone(k.Handle, nil)
		return 0, err
	}
	n.e.counts.add(PathMessage, r.Rank, t.Bytes)
	return n.Take(k)
}

// askedAccumulate has the target's CPU combine src into its memory; it returns when src may be reused.
func (n *device) askedAccumulate(name string, op atom.Op, t atom.Elem, r *Remote, off int, src mem.Range) error {
	m := messages{name: name, kind: errand.ToAccumulate, op: op, t: t, r: r, off: off}
	if err := n.reachElements(m.name, r, off, src.Bytes, t.Bytes); err != nil {
		return err
	}
	if n.gathers(false, src) {
		if err := n.gatherAll(&m, src); !errors.Is(err, regmgr.ErrCopy) {
			return err
		}
	}
	return n.copyAll(&m, src)
}
