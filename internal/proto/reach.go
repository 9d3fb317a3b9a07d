package proto

import (
	"errors"
	"fmt"
	"os"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// What is looked at before anything is posted: the target's memory, and the caller's.

// reach returns an error if the n bytes at off of r cannot be operated on: the rank is gone, or they are not its
// exposed memory, which the NICs at both ends would answer by breaking the connection.
func (n *device) reach(op string, r *Remote, off, bytes int) error {
	if n.reaches(r, off, bytes) {
		return nil
	}
	return n.unreachable(op, r, off, bytes)
}

// reaches reports whether reach has nothing to say, as it mostly has. False says nothing.
func (n *device) reaches(r *Remote, off, bytes int) bool {
	return (r.keyed || r.hosed != nil) && off >= 0 && bytes <= r.room-off && !n.e.Peers.AnyGone()
}

// unreachable is reach where that has to look twice.
func (n *device) unreachable(op string, r *Remote, off, bytes int) error {
	if err := n.e.Peers.Check(r.Rank); err != nil {
		return transport.NewOpError(op, r.Rank, err)
	}
	switch {
	case !r.keyed && r.hosed == nil && bytes > 0:
		return transport.NewOpError(op, r.Rank, errNoKey)
	case off < 0 || bytes > r.room-off:
		return transport.NewOpError(op, r.Rank, fmt.Errorf("%w: bytes %d to %d of %d", errBounds, off, off+bytes, r.room))
	}
	return nil
}

// connected is reach for what begins with messages about firehoses: the connection is made, if there is none, so that
// its failure is the operation's.
func (n *device) connected(op string, r *Remote, off, bytes int) error {
	if err := n.reach(op, r, off, bytes); err != nil {
		return err
	}
	return n.Connect(op, r.Rank)
}

// reachWord is reach for a 64-bit atomic, which must lie on an 8-byte boundary: some NICs never answer otherwise.
func (n *device) reachWord(op string, r *Remote, off int) error {
	if n.reaches(r, off, 8) && (r.raddr+uint64(off))&7 == 0 {
		return nil
	}
	return n.reachElements(op, r, off, 8, 8)
}

// reachElements is reach for atomics on elements of size bytes, a power of two, each of which must lie at a multiple of that: a CPU's
// atomics want it, and what is made of an atomic on the word around the element would lose what lies beyond that. Go's own memory always does.
func (n *device) reachElements(op string, r *Remote, off, bytes, size int) error {
	if err := n.reach(op, r, off, bytes); err != nil {
		return err
	}
	if at := r.raddr + uint64(off); at&uint64(size-1) != 0 {
		return transport.NewOpError(op, r.Rank, fmt.Errorf("%w: %d bytes at %#x", errAlign, size, at))
	}
	return nil
}

var (
	errNoKey  = errors.New("the rank has not registered this memory with its NIC, since it was to be mapped, and here it is not mapped")
	errBounds = errors.New("outside of the exposed memory")
	errAlign  = errors.New("an atomic on an element that does not lie at a multiple of its size")
)

// What the NIC brings into slots or messages is copied to its destination when it is there: where that cannot be written
// the copy would end the program. So destinations are looked at before anything moves. That costs nothing worth mentioning for
// Go's memory, and a system call for any other.

// destination returns an error if a get cannot write its destination.
func (n *device) destination(op string, rank int, dst mem.Range) error {
	if err := n.direct.reg.Destination(dst); err != nil {
		return transport.NewOpError(op, rank, err)
	}
	return nil
}

// destinations is destination for what runs bring from members that are not mapped here. What lies between runs may be
// read-only; runs on neighbouring pages are asked for together.
func (n *device) destinations(op string, count int, run func(int) Run, dst mem.Range) error {
	if mem.OriginOf(dst) != mem.Foreign {
		return nil
	}
	page := os.Getpagesize()
	var from, to, rank int // of dst, in bytes: what is to be asked for
	for i := 0; i < count; {
		var r Run
		r, i = whole(count, i, run)
		if r.To.Mapped.Bytes != 0 || r.Bytes == 0 {
			continue
		}
		if to > from && r.Near >= from && r.Near-to < page {
			to = max(to, r.Near+r.Bytes)
			continue
		}
		if err := n.destination(op, rank, dst.Slice(from, to-from)); err != nil {
			return err
		}
		from, to, rank = r.Near, r.Near+r.Bytes, r.To.Rank
	}
	return n.destination(op, rank, dst.Slice(from, to-from))
}
