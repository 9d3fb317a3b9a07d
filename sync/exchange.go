package pgsync

import (
	"context"
	"encoding/binary"
)

// Exchange is an all-gather of byte strings of any lengths: it returns what each member gave, by member, in
// memory of its own. Collective. It implements the exchange that collective allocation needs.
func (t *Team) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	c, err := t.begin(ctx, "exchange")
	if err != nil {
		return nil, err
	}
	out, err := c.exchange(ctx, callOf("exchange", 0, 0, 0), card)
	return out, c.End(err)
}

func (c *turns) exchange(ctx context.Context, what call, card []byte) ([][]byte, error) {
	const header = 4 // the card's length
	n := len(c.t.ranks)
	slot := slotBytes(n)
	out := make([][]byte, n)
	mine, all := make([]byte, slot), make([]byte, n*slot)
	longest := len(card) // until the others' lengths are known
	for sent := 0; sent == 0 || sent < longest; sent += slot - header {
		binary.LittleEndian.PutUint32(mine, uint32(len(card)))
		copy(mine[header:], card[min(sent, len(card)):])
		if err := c.gather(ctx, what, everyone, mine, all); err != nil {
			return nil, err
		}
		for m := range out {
			theirs := all[m*slot : (m+1)*slot]
			if out[m] == nil {
				out[m] = make([]byte, binary.LittleEndian.Uint32(theirs))
				longest = max(longest, len(out[m]))
			}
			if sent < len(out[m]) {
				copy(out[m][sent:], theirs[header:])
			}
		}
	}
	return out, nil
}
