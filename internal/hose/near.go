package hose

import (
	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// near is exposed memory of this rank as regmgr sees it, which has this rank's own transfers use the registrations that are made for others.
type near struct {
	h   *Set
	of  firehose.Range
	mem mem.Range
}

// Find implements regmgr.Buckets, as all that follows.
func (n near) Find(r mem.Range) (regmgr.Bucket, bool) {
	h := n.h
	b, ready, ok := h.server.Around(n.of.ID, r.Addr()-n.mem.Addr(), uint64(r.Bytes))
	if !ok {
		return regmgr.Bucket{}, false
	}
	off, bytes := n.of.Extent(h.budget.Shift, b)
	if !ready {
		h.lock.Lock()
		c := h.costs
		h.lock.Unlock()
		if !together(bytes, uint64(r.Bytes), c) {
			return regmgr.Bucket{}, false
		}
	}
	return regmgr.Bucket{ID: uint64(b), Mem: n.mem.Slice(int(off), int(bytes)), Ready: ready}, true
}

// together reports whether a bucket of so many bytes is to be registered for a transfer of use of them by this rank itself: where that costs
// hardly more than to register what it uses. Then neither a peer nor another transfer has to register the bucket later.
func together(bucket, use uint64, c firehose.Costs) bool {
	const hardly = 1.25
	whole, part := c.Register+c.RegisterByte*float64(bucket), c.Register+c.RegisterByte*float64(use)
	return use == bucket || part > 0 && whole <= hardly*part
}

func (n near) Pin(b regmgr.Bucket) (transport.Region, error) {
	h := n.h
	defer h.resume()
	var buf [1]firehose.Pin
	pins, err := h.server.Pin(run(b), buf[:0])
	if err != nil {
		return transport.Region{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[pins[0].Handle].key, nil
}

func (n near) Unpin(b regmgr.Bucket) (freed int64) {
	defer n.h.resume()
	return n.h.server.Unpin(run(b))
}

func run(b regmgr.Bucket) firehose.Run { return firehose.Run{First: firehose.Bucket(b.ID), Count: 1} }

// resume has the poller answer moves that were put aside because a bucket of theirs was being registered, or deregistered, by somebody else:
// whoever that was has ended now, and may have nothing else for the poller to do.
func (h *Set) resume() {
	if h.server.Late() {
		h.nic.Wake()
	}
}
