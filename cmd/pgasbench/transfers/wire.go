package transfers

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/superpipe"
	"gopgas/transport"
	"gopgas/transport/sim"
)

// way is how a simulated transfer between two ranks travels, neither of whose buffers is registered beforehand unless it says so.
type way struct {
	name   string
	how    carrier
	policy superpipe.Policy
	hard   bool // first chunk and ratio as the paper fixed them, whatever the model
	whole  bool // chunks are copied out when all of them is there, not block by block
}

type carrier uint8

const (
	registered carrier = iota // both buffers are registered
	fresh                     // both ends register, transfer, deregister
	cached                    // as fresh, but registrations stay
	copied                    // all is copied, sent, and copied
	piped                     // in chunks
)

// wireTest is a transfer in virtual time, repeated.
type wireTest struct {
	model      sim.Model
	way        way
	bytes      int
	rounds     int
	rendezvous bool // a message and an answer come before the transfer
}

// pipeModel is the simulated machine as the superpipeline's model, for its plans and for the curves of its equations.
func pipeModel(m *sim.Model) *superpipe.Model {
	const second = 1e9
	pages := float64(m.Register.PerPage) / second / 4096
	return &superpipe.Model{
		Gap: float64(m.Write.Gap) / second, Latency: float64(m.Latency) / second, Net: 1e12 / float64(m.PerByte),
		RegLatency: float64(m.Register.Fixed) / second, Reg: 1 / pages,
		Copy: func(b float64) float64 { return b / (float64(m.CopyCost(1<<20, int(b))) / second / (1 << 20) * b) },
	}
}

// run makes the transfers and returns, for each round, the seconds from the call to the moment at which the target's memory is
// filled.
func (t wireTest) run(ctx context.Context) ([]float64, error) {
	clock := sched.NewSim(0)
	clock.SetExact(true) // the ranks see what they tell each other beside the wire
	machine := sim.Config{Model: t.model, MaxMessage: max(8<<20, 2*t.bytes)}
	machine.Faults.Reorder = t.way.whole // then the NIC promises no order within a write
	var c *superpipe.Config
	if t.way.how == piped {
		c = &superpipe.Config{Policy: t.way.policy, Model: pipeModel(&t.model)}
		if t.way.hard {
			c.Model = nil
		}
		if t.way.policy == superpipe.Flat {
			c.SlotBytes = (t.bytes/superpipe.Payload + 2) * superpipe.Block // C_opt is not to be cut short
		}
	}
	ends, err := newEnds(ctx, clock, machine, c)
	if err != nil {
		return nil, err
	}
	x := &exchange{wireTest: t, ends: ends, src: mem.Of(make([]byte, t.bytes)), dst: mem.Of(make([]byte, t.bytes))}
	for i, b := 0, x.src.Data(); i < len(b); i++ {
		b[i] = byte(i>>12) ^ byte(i)*5 | 1
	}
	if t.way.how == copied || t.way.how == registered {
		if err := x.prepare(); err != nil {
			return nil, err
		}
	}
	ends[0].s.Go(func() { ends[0].err = x.source(ctx) })
	ends[1].s.Go(func() { ends[1].err = x.sink(ctx) })
	if err := errors.Join(clock.Run(), ends[0].err, ends[1].err); err != nil {
		return nil, fmt.Errorf("%s of %d bytes: %w", t.way.name, t.bytes, err)
	}
	return x.seconds, nil
}

// exchange is a test under way. What the ranks tell each other beside the wire is in it: in virtual time it costs nothing.
type exchange struct {
	wireTest
	ends     [2]*end
	src, dst mem.Range
	slots    [2]mem.Range // for naive copies
	keys     [2]transport.Region
	began    float64
	round    int
	started  int  // rounds
	ready    bool // the target's memory is registered
	pipe     *superpipe.Pipe
	offer    superpipe.Offer
	grant    superpipe.Grant
	granted  bool
	seconds  []float64
}

// prepare registers what is registered beforehand: the buffers, or slots as long as they.
func (x *exchange) prepare() (err error) {
	x.slots = [2]mem.Range{x.src, x.dst}
	if x.way.how == copied {
		x.slots = [2]mem.Range{mem.Of(make([]byte, x.bytes)), mem.Of(make([]byte, x.bytes))}
	}
	for i, e := range x.ends {
		if x.keys[i], err = e.d.Register(x.slots[i], transport.AllAccess); err != nil {
			return err
		}
	}
	return nil
}

// Words of a rendezvous, told apart by the round.
func (x *exchange) request() uint64 { return uint64(2*x.round + 2) }
func (x *exchange) answer() uint64  { return uint64(2*x.round + 3) }

// source is the program of the origin.
func (x *exchange) source(ctx context.Context) error {
	e, peer := x.ends[0], x.ends[1]
	if err := e.meet(ctx, 1, peer); err != nil {
		return err
	}
	if err := e.until(ctx, func() bool { return peer.peer != (transport.EP{}) }); err != nil {
		return err
	}
	for ; x.round < x.rounds; x.round++ {
		x.began, x.started = e.s.Now().Seconds(), x.round+1
		peer.s.Ring()
		if err := x.send(ctx, e, peer); err != nil {
			return err
		}
		if err := e.until(ctx, func() bool { return len(x.seconds) > x.round }); err != nil {
			return err
		}
		if x.way.how == fresh {
			if err := e.d.Deregister(x.keys[0]); err != nil {
				return err
			}
		}
		if x.pipe != nil {
			if err := e.until(ctx, x.pipe.Done); err != nil {
				return err
			}
			e.origin.Reuse(x.pipe)
			x.pipe, x.granted = nil, false
		}
		clear(x.dst.Data())
		x.ready = false
	}
	return nil
}

func (x *exchange) send(ctx context.Context, e, peer *end) (err error) {
	if x.way.how == piped {
		return x.sendPipe(ctx, e, peer)
	}
	if x.rendezvous {
		if err := e.tell(peer, x.request()); err != nil {
			return err
		}
	}
	switch {
	case x.way.how == fresh || x.way.how == cached && x.round == 0:
		x.slots[0] = x.src
		if x.keys[0], err = e.d.Register(x.src, transport.LocalWrite); err != nil {
			return err
		}
	case x.way.how == copied:
		copy(x.slots[0].Data(), x.src.Data())
		e.s.ChargeCopy(x.bytes, x.bytes)
	}
	if x.rendezvous {
		err = e.hear(ctx, x.answer())
	} else {
		err = e.until(ctx, func() bool { return x.ready })
	}
	if err != nil {
		return err
	}
	return e.write(x.slots[0], x.keys[0].LKey, x.slots[1], x.keys[1].RKey)
}

// sendPipe begins the transfer in chunks; the rank's progress carries it out.
func (x *exchange) sendPipe(ctx context.Context, e, peer *end) error {
	p, ok, err := e.origin.Begin(superpipe.Transfer{Rank: 1, EP: e.peer, Local: x.src, Lease: true})
	if err != nil || !ok {
		return fmt.Errorf("begin a pipe: %v: %w", ok, err)
	}
	x.pipe, x.offer = p, p.Offer()
	if !x.rendezvous {
		if err := x.lease(); err != nil {
			return err
		}
		return p.Granted(x.grant)
	}
	if err := e.tell(peer, x.request()); err != nil {
		return err
	}
	for range 2 { // the first chunk is copied meanwhile
		p.Step()
	}
	if err := e.hear(ctx, x.answer()); err != nil {
		return err
	}
	return p.Granted(x.grant)
}

// lease takes the target's workspace for the transfer.
func (x *exchange) lease() error {
	var ok bool
	if x.grant, ok = x.ends[1].target.Lease(0, x.ends[1].peer, x.offer, x.dst); !ok {
		return errors.New("the target has no workspace free")
	}
	return nil
}

// sink is the program of the target.
func (x *exchange) sink(ctx context.Context) error {
	e, peer := x.ends[1], x.ends[0]
	if err := e.meet(ctx, 0, peer); err != nil {
		return err
	}
	peer.s.Ring()
	for k := range x.rounds {
		if err := e.until(ctx, func() bool { return x.started == k+1 && !x.ready }); err != nil {
			return err
		}
		if err := x.accept(ctx, e, peer); err != nil {
			return err
		}
		x.ready = true
		peer.s.Ring()
		arrived := x.dst
		if x.way.how == copied {
			arrived = x.slots[1]
		}
		last := arrived.Slice(x.bytes-1, 1).Data()
		if err := e.until(ctx, func() bool { return last[0] != 0 }); err != nil {
			return err
		}
		if x.way.how == copied {
			copy(x.dst.Data(), arrived.Data())
			e.s.ChargeCopy(x.bytes, x.bytes)
			clear(arrived.Data())
		}
		took := e.s.Now().Seconds() - x.began
		if !bytes.Equal(x.dst.Data(), x.src.Data()) { // T1
			return errors.New("wrong result at the target: the bytes differ")
		}
		if x.way.how == fresh {
			if err := e.d.Deregister(x.keys[1]); err != nil {
				return err
			}
		}
		if x.way.how == piped { // its last acknowledgement is to leave
			if err := e.until(ctx, func() bool { return e.target.Active() == 0 }); err != nil {
				return err
			}
		}
		x.seconds = append(x.seconds, took)
		peer.s.Ring()
	}
	return nil
}

// accept is what the target does before a transfer.
func (x *exchange) accept(ctx context.Context, e, peer *end) (err error) {
	if x.rendezvous {
		if err := e.hear(ctx, x.request()); err != nil {
			return err
		}
	}
	switch {
	case x.way.how == fresh || x.way.how == cached && x.round == 0:
		x.slots[1] = x.dst
		if x.keys[1], err = e.d.Register(x.dst, transport.AllAccess); err != nil {
			return err
		}
	case x.way.how == piped && x.rendezvous:
		if err := x.lease(); err != nil {
			return err
		}
	}
	if x.rendezvous {
		return e.tell(peer, x.answer())
	}
	return nil
}
