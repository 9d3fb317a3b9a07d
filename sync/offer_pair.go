package pgsync

import (
	"context"

	"gopgas/internal/mem"
)

// Of two members each combines all of a reduction by offers that is not too long: what it reads of the other is as much as the two halves of which both combine one, it
// asks for it once, and there is a turn less.

// asPair says whether a reduction of so many bytes goes that way. Where members map each other it does not: what each combines takes its processor longer than a turn.
func (r *reduction) asPair(bytes int) bool {
	return len(r.c.t.ranks) == 2 && !r.c.t.maps && bytes <= mostPartial
}

// offeredAsPair is offered of two members. Where dst is src the other one may be reading it until the last turn.
func (r *reduction) offeredAsPair(ctx context.Context, dst, src mem.Range) (done bool, err error) {
	c, g, o := r.c, givers{from: everyone}, offering{many: 1}
	if r.root != everyone {
		g.from = 1 - r.root
	}
	if g.include(c.t.me) {
		o.mine[0] = src
	}
	ok, err := c.offer(ctx, r.what, o, g)
	if !ok && err == nil {
		return false, nil
	}
	sum, inPlace := dst, r.want && dst.Addr() == src.Addr()
	if inPlace {
		sum = wordsFor(&c.t.offers.partial, src.Bytes)
	}
	if err == nil && r.want {
		err = r.combineOffered(sum, src, 0)
	}
	if err == nil {
		err = c.turn(ctx, r.what, max(r.root, 0), visitor{})
	}
	if err == nil && inPlace {
		mem.Copy(dst.Data(), sum.Data())
	}
	return ok, c.ended(err)
}
