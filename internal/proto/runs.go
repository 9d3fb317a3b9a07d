package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/trace"
	"gopgas/transport"
)

// nobody is the target of a transfer with many.
const nobody = -1

// Run is one contiguous piece of a transfer that has many: Bytes at Far in the member's part and at Near in this rank's
// memory, both in bytes.
type Run struct {
	To               *Remote
	Far, Near, Bytes int
}

// joins reports whether b continues a at both ends.
func (a Run) joins(b Run) bool {
	return a.To == b.To && a.Far+a.Bytes == b.Far && a.Near+a.Bytes == b.Near
}

// whole returns the run that begins at number i, with all that continue it, and the number of the first that does not.
func whole(count, i int, run func(int) Run) (r Run, next int) {
	r = run(i)
	for next = i + 1; next < count; next++ {
		b := run(next)
		if !r.joins(b) {
			break
		}
		r.Bytes += b.Bytes
	}
	return r, next
}

// PutRuns copies count runs of src to the members' memory, like as many Puts, but hands them to the NIC in chains: one
// crossing for many, and one wait for room. The caller has checked the bounds; run(i) describes run i, is asked more than
// once, always answers the same, and is asked in stretches of ascending order; runs of no bytes are allowed. src may be reused on return.
func (e *Engine) PutRuns(op string, count int, run func(int) Run, src mem.Range) error {
	if e.record == nil {
		return e.putRuns(op, count, run, src)
	}
	event, v := e.record.runs(trace.Put, op)
	err := e.putRuns(op, count, run, src)
	e.record.overRuns(&event, &v, count, run, src, false)
	return err
}

func (e *Engine) putRuns(op string, count int, run func(int) Run, src mem.Range) error {
	var c *chain
	var err error
	fetched := 0 // runs before this one had their buckets asked for
	copied := 0  // to mapped memory
	for i := 0; i < count && err == nil; {
		var r Run
		first := i
		r, i = whole(count, i, run)
		part := src.Slice(r.Near, r.Bytes)
		if r.Bytes == 0 {
			continue
		}
		if r.To.Mapped.Bytes != 0 {
			mem.Copy(r.To.Mapped.Slice(r.Far, r.Bytes).Data(), part.Data())
			e.note(PathMapped, r.To.Rank, r.Bytes)
			copied += r.Bytes
			continue
		}
		if c == nil {
			c = e.chains.take(e.nic(), op)
		}
		if next, lerr := c.lease(transport.OpWrite, r.To, src, count, first, run); lerr != nil || next > first {
			i, err = max(i, next), lerr
			continue
		}
		if r.To.hosed != nil {
			if i > fetched {
				fetched, err = c.fetch(mem.Range{}, count, first, run)
			}
			if err == nil {
				err = c.hosed(r.To, r.Far, part, mem.Range{}, nic.Nowhere, r.Bytes)
			}
			continue
		}
		err = c.put(r.To, r.Far, part)
	}
	e.Sched.ChargeCopy(copied, copied) // together: what a short one takes is less than the clock's unit
	return e.chains.finish(c, mem.Range{}, err)
}

// GetRuns copies count runs of the members' memory to dst, like as many Gets, with all reads of a chain under way at
// once. It returns when they are there. Otherwise as PutRuns.
func (e *Engine) GetRuns(op string, count int, run func(int) Run, dst mem.Range) error {
	if e.record == nil {
		return e.getRuns(op, count, run, dst)
	}
	event, v := e.record.runs(trace.Get, op)
	err := e.getRuns(op, count, run, dst)
	e.record.overRuns(&event, &v, count, run, dst, false)
	return err
}

func (e *Engine) getRuns(op string, count int, run func(int) Run, dst mem.Range) error {
	var c *chain
	var err error
	fetched := 0 // runs before this one had their buckets asked for
	copied := 0  // from mapped memory
	for i := 0; i < count && err == nil; {
		var r Run
		first := i
		r, i = whole(count, i, run)
		part := dst.Slice(r.Near, r.Bytes)
		if r.Bytes == 0 {
			continue
		}
		if r.To.Mapped.Bytes != 0 {
			mem.Copy(part.Data(), r.To.Mapped.Slice(r.Far, r.Bytes).Data())
			e.note(PathMapped, r.To.Rank, r.Bytes)
			copied += r.Bytes
			continue
		}
		if c == nil {
			if err = e.nic().destinations(op, count, run, dst); err != nil {
				break
			}
			c = e.chains.take(e.nic(), op)
		}
		if next, lerr := c.lease(transport.OpRead, r.To, dst, count, first, run); lerr != nil || next > first {
			i, err = max(i, next), lerr
			continue
		}
		if r.To.hosed != nil {
			if i > fetched {
				fetched, err = c.fetch(dst, count, first, run)
			}
			if err == nil {
				err = c.hosed(r.To, r.Far, mem.Range{}, dst, r.Near, r.Bytes)
			}
			continue
		}
		err = c.get(r.To, r.Far, dst, r.Near, r.Bytes)
	}
	e.Sched.ChargeCopy(copied, copied)
	return e.chains.finish(c, dst, err)
}

// FlushLocal returns when this rank's memory is free of transfers with the member's rank that it has begun: sources may
// be reused, destinations hold their data. On mapped memory that is so at once, but for atomics where they are the NIC's.
func (e *Engine) FlushLocal(r *Remote) error {
	n := e.nic()
	if r.Mapped.Bytes != 0 && !r.nicAtomics || n == nil || !n.Pending(r.Rank) {
		return nil
	}
	return n.Land(context.Background(), "flush-local", r.Rank)
}
