package pgsync

import (
	"context"
	"encoding/binary"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// begin opens a data collective.
func (t *Team) begin(ctx context.Context, op string) error {
	if err := t.enter(ctx, op); err != nil {
		return err
	}
	if t.broken != nil {
		t.leave()
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %w", ErrAbandoned, t.broken))
	}
	t.visit = t.e.Enter(ctx, op)
	return nil
}

// end closes a data collective; an error that left it half done spoils the team for further ones.
func (t *Team) end(err error) error {
	if err != nil && t.broken == nil {
		t.broken = err
	}
	t.leave()
	return err
}

// call is what a member does in a round, so that the others can tell when they do not do the same.
type call uint64

// Kinds of calls; a reduction adds its operation.
const (
	callExchange = iota + 1
	callBroadcast
	callAllGather
	callReduce // and one for each operation
	callAlloc  = callReduce + 32 + iota
	callFree
)

func callOf(kind, elemBytes, n int) call {
	return call(uint64(kind)<<56 | uint64(elemBytes&0xffff)<<40 | uint64(n)&(1<<40-1))
}

// name is the call's name in errors and in the list of waits.
func (c call) name() string {
	if kind := int(c >> 56); kind < callReduce {
		return [...]string{"barrier", "exchange", "broadcast", "allgather"}[kind]
	}
	return "reduction"
}

func (c call) String() string {
	return fmt.Sprintf("%s of %d elements of %d bytes", c.name(), c&(1<<40-1), c>>40&0xffff)
}

// round is the reading half of a round: where the outboxes lie, and what every member should be doing.
type round struct {
	off  int
	call call
}

// write fills this round's outbox.
func (t *Team) write(data mem.Range) {
	copy(t.local.Slice(t.outbox()+outboxHeader, data.Bytes).Data(), data.Data())
}

func (t *Team) outbox() int { return outboxOff + int(t.round&1)*boxBytes(len(t.ranks)) }

// turn ends the writing half of a round and begins the reading half. root is the member that the call names; it is
// part of what all must agree on.
func (t *Team) turn(ctx context.Context, c call, root int) (round, error) {
	r := round{t.outbox(), c}
	t.local.Word64(r.off).Store(uint64(c))
	t.round++
	return r, t.barrier(ctx, c.name(), uint64(c)^uint64(root)*sumMul)
}

// check verifies that member makes the same call as this rank.
func (t *Team) check(r round, member int) error {
	theirs, err := t.e.Load64(&t.peers[member], r.off)
	if err != nil {
		return err
	}
	if call(theirs) != r.call {
		return t.mismatch(r.call, member, call(theirs))
	}
	return nil
}

// read copies from a member's outbox.
func (t *Team) read(r round, member int, dst mem.Range) error {
	if err := t.check(r, member); err != nil {
		return err
	}
	return t.e.Fetch(&t.peers[member], r.off+outboxHeader, dst)
}

// see is read without a copy where the member is mapped; elsewhere it reads into buf.
func (t *Team) see(r round, member int, buf mem.Range, bytes int) (mem.Range, error) {
	if box := t.peers[member].Mapped; box.Bytes != 0 {
		return box.Slice(r.off+outboxHeader, bytes), t.check(r, member)
	}
	return buf, t.read(r, member, buf)
}

// Exchange is an all-gather of byte strings of any lengths: it returns what each member gave, by member, in
// memory of its own. Collective. It implements the exchange that collective allocation needs.
func (t *Team) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	const op = "exchange"
	if err := t.begin(ctx, op); err != nil {
		return nil, err
	}
	out, err := t.exchange(ctx, card)
	return out, t.end(err)
}

func (t *Team) exchange(ctx context.Context, card []byte) ([][]byte, error) {
	const header = 4 // the card's length
	n := len(t.ranks)
	slot := slotBytes(n)
	out := make([][]byte, n)
	mine, all := make([]byte, slot), make([]byte, n*slot)
	longest := len(card) // until the others' lengths are known
	for sent := 0; sent == 0 || sent < longest; sent += slot - header {
		binary.LittleEndian.PutUint32(mine, uint32(len(card)))
		copy(mine[header:], card[min(sent, len(card)):])
		if err := t.gather(ctx, callOf(callExchange, 1, 0), mine, all); err != nil {
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
