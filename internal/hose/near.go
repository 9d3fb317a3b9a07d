package hose

import (
	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// near is exposed memory of this rank as regmgr sees it, which has this rank's own transfers use the registrations that are made for others.
type near struct {
	h   *Set
	of  firehose.Range
	mem mem.Range
}

// Find is what Manager.Expose of package regmgr asks for, as all that follows.
func (n near) Find(r mem.Range) (id uint64, whole mem.Range, ready, ok bool) {
	h := n.h
	b, ready, ok := h.server.Around(n.of.ID, r.Addr()-n.mem.Addr(), uint64(r.Bytes))
	if !ok {
		return 0, mem.Range{}, false, false
	}
	off, bytes := n.of.Extent(h.budget.Shift, b)
	if !ready {
		h.lock.Lock()
		c := h.costs
		h.lock.Unlock()
		if !together(bytes, uint64(r.Bytes), c) {
			return 0, mem.Range{}, false, false
		}
	}
	return uint64(b), n.mem.Slice(int(off), int(bytes)), ready, true
}

// together reports whether a bucket of so many bytes is to be registered for a transfer of use of them by this rank itself: where that costs
// hardly more than to register what it uses. Then neither a peer nor another transfer has to register the bucket later.
func together(bucket, use uint64, c firehose.Costs) bool {
	const hardly = 1.25
	whole, part := c.Register+c.RegisterByte*float64(bucket), c.Register+c.RegisterByte*float64(use)
	return use == bucket || part > 0 && whole <= hardly*part
}

func (n near) Pin(id uint64) (transport.Region, error) {
	h := n.h
	defer h.resume()
	var buf [1]firehose.Pin
	pins, err := h.server.Pin(run(id), buf[:0])
	if err != nil {
		return transport.Region{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[pins[0].Handle].key, nil
}

func (n near) Unpin(id uint64) (freed int64) {
	defer n.h.resume()
	return n.h.server.Unpin(run(id))
}

func run(id uint64) firehose.Run { return firehose.Run{First: firehose.Bucket(id), Count: 1} }

// resume has the poller answer moves that were put aside because a bucket of theirs was being registered, or deregistered, by somebody else:
// whoever that was has ended now, and may have nothing else for the poller to do.
func (h *Set) resume() {
	if h.server.Late() {
		h.nic.Wake()
	}
}
