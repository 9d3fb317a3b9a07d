package pgsync

import (
	"context"
	"math/bits"

	"gopgas/internal/mem"
	"gopgas/internal/shape"
)

// An all-to-all in log2 n steps, on the rounds of the barrier that a turn is made of (Bruck et al. 1997). A member's slot i begins with what is
// for the one i places behind it. In round k the slots whose number has bit k set go 2^k places on; after all rounds slot i holds what the
// one i places before this one has sent. What goes on in a round is written to the outbox in one piece, which is not changed any more.

// withBit is how many of the numbers below n have this bit set.
func withBit(n, bit int) int { return n/(2*bit)*bit + max(0, n%(2*bit)-bit) }

// shuffleBytes is how many bytes a part may have in a Shuffle among n members.
func shuffleBytes(payload, n int) int {
	sum := 0
	for bit := 1; bit < n; bit *= 2 {
		sum += withBit(n, bit)
	}
	return payload / max(sum+withBit(n, 1), 1) &^ 7 // and room for what arrives
}

// ShuffleBytes is how many bytes of each part a Shuffle can move; 0 where members share memory, which are served better one by one.
func (c *turns) ShuffleBytes() int {
	n := len(c.t.ranks)
	if c.t.shape.Levels() || c.Mapped((c.t.me+1)%n) {
		return 0
	}
	return shuffleBytes(c.Payload(), n)
}

// Shuffle gives part j of every member's src to member j, as part i of whose dst that of member i arrives. All parts have one length. It is
// a turn in which members agree on elem and n.
func (c *turns) Shuffle(ctx context.Context, elem, n int, dst, src mem.Range) error {
	t, all := c.t, len(c.t.ranks)
	part := src.Bytes / all
	slots := mem.Of(make([]byte, src.Bytes))
	box := c.Box(0, c.Payload())
	for i := range all {
		mem.Copy(slots.Slice(i*part, part).Data(), src.Slice((t.me+i)%all*part, part).Data())
	}
	at := 0 // where in the outbox the round's piece begins
	pack := func(bit int) {
		to := at
		for i := bit; i < all; i = (i + 1) | bit {
			mem.Copy(box.Slice(to, part).Data(), slots.Slice(i*part, part).Data())
			to += part
		}
	}
	pack(1)
	v := visitor{heard: func(p *shape.Phase, from, dist int) error {
		some := box.Slice(box.Bytes-withBit(all, dist)*part, withBit(all, dist)*part)
		if err := c.fetch(from, at, box.Bytes-some.Bytes, some.Bytes); err != nil {
			return err
		}
		for i, k := dist, 0; i < all; i, k = (i+1)|dist, k+part {
			mem.Copy(slots.Slice(i*part, part).Data(), some.Slice(k, part).Data())
		}
		at += some.Bytes
		pack(2 * dist)
		return nil
	}}
	if err := c.turn(ctx, callOf(c.op, elem, 0, n), 0, v); err != nil {
		return err
	}
	for i := range all {
		mem.Copy(dst.Slice(shape.Behind(t.me, i, all)*part, part).Data(), slots.Slice(i*part, part).Data())
	}
	t.e.Sched.ChargeCopy(src.Bytes*bits.Len(uint(all)), src.Bytes)
	return nil
}
