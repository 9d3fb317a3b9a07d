package pgsync

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Where all members map each other's memory, or reach it through a NIC, data that does not fit into an outbox goes through two larger ones beside the control block,
// the team's room: a barrier for every 256 KiB, not for every 16. It is made in the first call that wants it, with two exchanges that are turns of that call, so
// that a team without long calls takes no more memory, and a call that is left meanwhile is like any other. Where some members map each other and others do not
// calls go by nodes, in outboxes.
//
// Blocking calls alone use it: they come one after the other, in the same order on all members, and so do their turns, which take the two halves in turn,
// whichever lane they are on. So the barrier of the next such turn is what allows this one's half to be overwritten, as with outboxes. The word by which members
// see that they are in the same call stays in the outbox.

// roomBytes is the size of each half.
const roomBytes = 256 << 10

// room is a team's room, or what is known of it. It belongs to whoever has made Team.busy true.
type room struct {
	of      *proto.Exposure // nil: there is none
	refused bool            // it could not be made, on which all members agree
	turns   uint64          // so far
}

// roomy says whether a call of so many bytes in one outbox goes through the room of a team of n, whose members may be alike.
func roomy(n, bytes int, alike bool) bool {
	return n > 1 && alike && bytes > boxPayload(n)
}

// Widen has further turns of the call move up to 256 KiB where they can, of an outbox that must hold so many bytes to do in one. All members agree on elem,
// detail, n and bytes, and on what they have called before.
func (c *turns) Widen(ctx context.Context, elem, detail, n, bytes int) error {
	return c.widen(ctx, callOf(c.op, elem, detail, n), bytes)
}

func (c *turns) widen(ctx context.Context, what call, bytes int) error {
	t := c.t
	if t.room.refused || !roomy(len(t.ranks), bytes, t.alike) {
		return nil
	}
	if t.room.of == nil {
		if err := c.furnish(ctx, what); err != nil || t.room.refused {
			return err
		}
	}
	c.wide = true
	return nil
}

// Apart says whether the members are alike, and none maps another's memory.
func (c *turns) Apart() bool { return c.t.apart }

// furnish makes the room.
func (c *turns) furnish(ctx context.Context, what call) error {
	t, x := c.t, &inCall{c: c, what: what}
	of, err := t.e.Allocate(ctx, x, t.ranks, 2*roomBytes)
	switch {
	case x.err != nil: // nobody knows what the others have got
		return x.err
	case err != nil: // the same on all members: there is not enough memory on one of them
		t.room.refused = true
	case of.CPU != t.mapped, of.Bare(): // likewise
		t.room.refused = true
		return of.Free()
	default:
		t.room.of = of
		return c.turn(ctx, what, 0, visitor{}) // nobody writes to a member that has left meanwhile, and given its part back
	}
	return nil
}

// unfurnish gives the room back. The caller has made sure that no member is in a call.
func (t *Team) unfurnish() error {
	of := t.room.of
	if of == nil {
		return nil
	}
	t.room.of = nil
	return of.Free()
}

// inCall exchanges cards in turns of a call.
type inCall struct {
	c    *turns
	what call
	err  error // of the exchange
}

// Exchange implements proto.Exchanger.
func (x *inCall) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	cards, err := x.c.exchange(ctx, x.what, card)
	x.err = errors.Join(x.err, err)
	return cards, err
}

// local is this member's memory in which its outbox lies, and at the offset of the next turn's bytes there.
func (c *turns) local() mem.Range {
	if c.wide {
		return c.t.room.of.Local
	}
	return c.t.local
}

// peer is a member's memory in which its outbox lies.
func (c *turns) peer(member int) *proto.Remote {
	if c.wide {
		return &c.t.room.of.Of[member]
	}
	return &c.t.peers[member]
}

// coming is where the bytes of the coming turn lie in that memory.
func (c *turns) coming() int {
	if c.wide {
		return int(c.t.room.turns&1) * roomBytes
	}
	return c.box() + outboxHeader
}
