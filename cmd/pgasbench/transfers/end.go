package transfers

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/superpipe"
	"gopgas/transport"
	"gopgas/transport/sim"
)

// Cookies of an end's operations.
const (
	plainCookie  = 1
	originCookie = 1 << 48
	targetCookie = 2 << 48
)

// end is one of two simulated ranks: a NIC, and both sides of the superpipeline where they are wanted.
type end struct {
	s      *sched.Sched
	d      transport.Domain
	peer   transport.EP
	origin *superpipe.Origin
	target *superpipe.Target

	note     mem.Range // a word that the peer writes to: a message of a rendezvous
	noteKey  transport.Region
	outgoing mem.Range
	arrivals mem.Range // what writes with immediate use up
	arrivKey transport.Region
	reported int // operations of its own that the NIC has reported
	err      error
}

// newEnds makes two ranks of a machine and connects them. c is the pipes' configuration; without a NIC's slots there are none.
func newEnds(ctx context.Context, clock *sched.Sim, machine sim.Config, c *superpipe.Config) (ends [2]*end, err error) {
	fabric := sim.New(clock, len(ends), machine)
	for r := range ends {
		e := &end{s: clock.Rank()}
		ends[r] = e
		if e.d, err = fabric.Provider(r).Open(ctx, transport.Config{Rank: r, Size: len(ends), Job: "figures", Sched: e.s}); err != nil {
			return ends, err
		}
		e.note, e.outgoing = mem.Of(make([]uint64, 1)), mem.Of(make([]uint64, 1))
		if e.noteKey, err = e.d.Register(e.note, transport.AllAccess); err != nil {
			return ends, err
		}
		if c != nil {
			if err = e.pipes(*c); err != nil {
				return ends, err
			}
		}
	}
	return ends, nil
}

// pipes gives the end an origin and a target.
func (e *end) pipes(c superpipe.Config) (err error) {
	c.NIC, c.Copied = e.d, e.s.ChargeCopy
	c.Cookies = originCookie
	if e.origin, err = superpipe.NewOrigin(c); err != nil {
		return err
	}
	c.Cookies = targetCookie
	if e.target, err = superpipe.NewTarget(c); err != nil {
		return err
	}
	n := e.target.Immediates()
	if n == 0 {
		return nil
	}
	e.arrivals = mem.Of(make([]uint64, n))
	if e.arrivKey, err = e.d.Register(e.arrivals, transport.LocalWrite); err != nil {
		return err
	}
	for i := range n {
		if err := e.receive(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) receive(cookie uint64) error {
	sge := transport.SGE{Mem: e.arrivals.Slice(int(cookie)*8, 8), LKey: e.arrivKey.LKey}
	if n, err := e.d.PostRecv([]transport.Recv{{Buf: sge, Cookie: cookie}}); n != 1 || err != nil {
		return fmt.Errorf("post a receive buffer: %d of 1: %w", n, err)
	}
	return nil
}

// meet connects the end with its peer; it takes virtual time.
func (e *end) meet(ctx context.Context, rank int, peer *end) (err error) {
	e.peer, err = e.d.Connect(ctx, rank, peer.d.Address())
	return err
}

// until polls and moves transfers along until done.
func (e *end) until(ctx context.Context, done func() bool) error {
	sp := e.s.Begin(ctx, sched.What{Op: "figure", Peer: -1}, nil)
	defer sp.End()
	for !done() {
		moved, err := e.progress()
		if err != nil {
			return err
		}
		if !moved && !done() {
			if err := sp.Step(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *end) progress() (moved bool, err error) {
	var cq [16]transport.Completion
	n, err := e.d.Poll(cq[:])
	if err != nil {
		return false, err
	}
	for i := range cq[:n] {
		c := &cq[i]
		switch {
		case c.Status != transport.StatusOK:
			return false, fmt.Errorf("an operation ended with status %d", c.Status)
		case e.origin != nil && (e.origin.Completed(c) || e.target.Completed(c)):
		case e.target != nil && e.target.Arrived(c):
			if err := e.receive(c.Cookie); err != nil {
				return false, err
			}
		default:
			e.reported++
		}
	}
	moved = n > 0
	if e.origin != nil {
		moved = e.origin.Progress() || moved
		moved = e.target.Progress() || moved
	}
	return moved, nil
}

// write posts one write of registered memory and does not wait.
func (e *end) write(local mem.Range, lkey uint64, to mem.Range, rkey uint64) error {
	op := transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: e.peer, RAddr: to.Addr(), RKey: rkey, Cookie: plainCookie,
		SGE: [4]transport.SGE{{Mem: local, LKey: lkey}},
	}
	if local.Bytes == 8 {
		op.Flags |= transport.FlagInline
	}
	if n, err := e.d.Post([]transport.Op{op}); n != 1 || err != nil {
		return fmt.Errorf("post a write of %d bytes: %d of 1: %w", local.Bytes, n, err)
	}
	return nil
}

// tell sends the peer a message of a word, of a rendezvous.
func (e *end) tell(peer *end, word uint64) error {
	e.outgoing.Word64(0).Store(word)
	return e.write(e.outgoing, 0, peer.note, peer.noteKey.RKey)
}

// hear waits for the message with that word.
func (e *end) hear(ctx context.Context, word uint64) error {
	return e.until(ctx, func() bool { return e.note.Word64(0).Load() == word })
}
