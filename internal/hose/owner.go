package hose

import (
	"context"
	"errors"
	"fmt"

	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Expose lets peers ask for buckets of r, and returns the number by which they name it.
func (h *Set) Expose(r mem.Range) (uint32, error) {
	id, err := h.enter(r)
	if err != nil {
		return 0, err
	}
	h.reg.KeepPromise()
	of := rangeOf(id, r.Addr(), uint64(r.Bytes))
	if err := h.server.Expose(of); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.parts, id)
		h.promiseLocked()
		return 0, err
	}
	life := h.reg.Expose(r, near{h, of, r})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives[id] = life
	return id, nil
}

// enter gives memory a number that no other has: one that was withdrawn has its own again when all others have had their turn.
func (h *Set) enter(r mem.Range) (id uint32, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := h.budget.MaxRange()
	if len(h.parts) == int(most) {
		return 0, fmt.Errorf("%w: %d ranges are exposed at once, and no more can be", firehose.ErrRange, most)
	}
	for used := true; used; h.next = h.next%most + 1 {
		id = h.next
		_, used = h.parts[id]
	}
	h.parts[id] = r
	h.promiseLocked()
	return id, nil
}

// Withdraw ends what Expose began. It returns when no peer holds buckets any more: all members call Leave about then. Ranks that have parted
// have nothing in flight and send nothing any more: then each takes back what was held of it by itself.
// Where ctx ends first the error says who holds some, and all stays as it is: the memory, which they may reach, must not be freed.
// Withdraw may be called again then.
func (h *Set) Withdraw(ctx context.Context, id uint32) error {
	h.mu.Lock()
	life := h.lives[id]
	h.mu.Unlock()
	h.server.Withdraw(id)
	parted := h.nic.Parted()
	err := h.nic.WaitUntil(ctx, "free", nobody, func() bool {
		for r := range h.size {
			if parted || h.nic.Gone(r) != nil {
				h.server.Lost(r)
			}
		}
		// What this rank gives up must be on its way: when it waits no longer nobody may look after that for long.
		return life.Over() && h.server.Withdrawn(id) && (parted || !h.work.Load())
	})
	if cause := sched.Ended(ctx); cause != nil && errors.Is(err, cause) {
		holders := h.server.Withdraw(id)
		if len(holders) == 0 {
			return fmt.Errorf("transfers of this rank use the memory, so it stays registered: %w", err)
		}
		return fmt.Errorf("buckets of the memory are held by ranks %v, so it stays registered: %w", holders, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.parts, id)
	delete(h.lives, id)
	h.promiseLocked()
	return err
}

// nobody is the rank of a wait that concerns no single one.
const nobody = -1

// promiseLocked keeps the peers' part of the budget for them as long as they may ask for it.
func (h *Set) promiseLocked() {
	if len(h.parts) == 0 {
		h.reg.Promise(0, 0)
		return
	}
	units := h.budget.Share * int64(h.budget.Ranks-1)
	h.reg.Promise(units<<h.budget.Shift, int(units))
}

// lent is a bucket's registration.
type lent struct {
	key transport.Region
	mem mem.Range
}

// registrar is a Set as its Server sees it.
type registrar Set

// Register implements firehose.Registrar: each bucket is a registration of its own, made under regmgr's budget.
func (g *registrar) Register(r firehose.Range, run firehose.Run, pins []firehose.Pin) error {
	g.mu.Lock()
	whole := g.parts[r.ID]
	g.mu.Unlock()
	for i := range pins {
		off, n := r.Extent(g.budget.Shift, run.At(uint32(i)))
		part := whole.Slice(int(off), int(n))
		reg, err := g.reg.Lend(part, transport.AllAccess)
		if err != nil {
			_ = g.Deregister(r, run, pins[:i]) // the first error is the one to tell
			return err
		}
		pins[i] = firehose.Pin{Key: reg.RKey, Handle: reg.ID}
		g.mu.Lock()
		g.keys[reg.ID] = lent{reg, part}
		g.mu.Unlock()
	}
	return nil
}

// Deregister implements firehose.Registrar.
func (g *registrar) Deregister(_ firehose.Range, _ firehose.Run, pins []firehose.Pin) error {
	var first error
	for _, p := range pins {
		g.mu.Lock()
		l := g.keys[p.Handle]
		delete(g.keys, p.Handle)
		g.mu.Unlock()
		if err := g.reg.Return(l.key, l.mem); err != nil && first == nil {
			first = err
		}
	}
	return first
}
