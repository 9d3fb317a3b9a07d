package proto

import (
	"os"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// What the NIC brings into slots or messages is copied to its destination when it is there: where that cannot be written
// the copy would end the program. So destinations are looked at before anything moves. That costs nothing worth mentioning for
// Go's memory, and a system call for any other.

// destination returns an error if a get cannot write its destination.
func (n *nic) destination(op string, rank int, dst mem.Range) error {
	if err := n.direct.reg.Destination(dst); err != nil {
		return transport.NewOpError(op, rank, err)
	}
	return nil
}

// destinations is destination for what runs bring from members that are not mapped here. What lies between runs may be
// read-only; runs on neighbouring pages are asked for together.
func (n *nic) destinations(op string, count int, run func(int) Run, dst mem.Range) error {
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
