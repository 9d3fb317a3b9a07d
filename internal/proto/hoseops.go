package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// hosedPut is put into memory that is registered in buckets.
func (n *nic) hosedPut(op string, r *Remote, off int, src mem.Range) error {
	if hit, err := n.hosedPutHit(op, r, off, src); hit {
		return err
	}
	err := n.connected(op, r, off, src.Bytes)
	if err != nil {
		return err
	}
	for fetched := 0; src.Bytes > 0; {
		if fetched, err = n.ahead(op, r, off, src.Bytes, fetched); err != nil {
			return err
		}
		bytes, err := n.hoses.Cut(r.hosed, r.raddr+uint64(off), src.Bytes, n.pool.SlotBytes())
		if err != nil {
			return transport.NewOpError(op, r.Rank, err)
		}
		part := src.Slice(0, bytes)
		if err := n.hosedPart(op, r, off, part); err != nil {
			return err
		}
		src = src.Slice(bytes, src.Bytes-bytes)
		off, fetched = off+bytes, fetched-bytes
	}
	return nil
}

// ahead fetches more where the bytes fetched are used up, and returns how many are left.
func (n *nic) ahead(op string, r *Remote, off, bytes, fetched int) (int, error) {
	if fetched > 0 || r.Rank == n.e.Rank {
		return fetched, nil
	}
	return n.hoses.Fetch(op, r.hosed, r.raddr+uint64(off), bytes)
}

// hosedPart puts what lies in one bucket.
func (n *nic) hosedPart(op string, r *Remote, off int, part mem.Range) error {
	if r.Rank == n.e.Rank {
		return n.byMessage(op, r, off, part) // the budget is for others
	}
	id, err := n.acquire(op, r.Rank, part.Bytes > n.inline)
	if err != nil {
		return err
	}
	// A move carries the copy, not the caller's memory, which would have to be on the heap for that.
	buf, lkey := n.buffer(id, part.Bytes)
	copy(buf.Data(), part.Data())
	key, direct, carried, err := n.hoses.Attach(op, id, r.hosed, r.raddr+uint64(off), part.Bytes, buf.Data(), false)
	n.piece[id].hosed = direct
	if err != nil || carried || !direct {
		n.abandon(id)
		if err == nil && carried {
			n.e.counts.add(PathMessage, r.Rank, part.Bytes)
		} else if err == nil {
			err = n.byMessage(op, r, off, part)
		}
		return err
	}
	wr := transport.Op{Kind: transport.OpWrite, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: key}
	wr.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
	path := PathBounce
	if part.Bytes <= n.inline {
		wr.Flags, path = transport.FlagInline, PathInline
	}
	n.e.counts.add(path, r.Rank, part.Bytes)
	return n.post(op, id, wr)
}

// byMessage has the target's CPU store src; it returns when src may be reused.
func (n *nic) byMessage(op string, r *Remote, off int, src mem.Range) error {
	n.e.counts.add(PathMessage, r.Rank, src.Bytes)
	for src.Bytes > 0 {
		part := src.Slice(0, min(src.Bytes, n.am.MaxPayload()/8*8))
		id, err := n.acquire(op, r.Rank, false)
		if err != nil {
			return err
		}
		if err := n.ask(op, id, askStore, [4]uint64{r.rkey, r.raddr + uint64(off)}, part); err != nil {
			return err
		}
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}

// hosedGet is get from memory that is registered in buckets, with several parts of it under way at once.
func (n *nic) hosedGet(op string, r *Remote, off int, dst mem.Range) error {
	if hit, err := n.hosedGetHit(op, r, off, dst); hit {
		return err
	}
	err := n.connected(op, r, off, dst.Bytes)
	if err != nil {
		return err
	}
	var flight [window]kept
	var into [window]mem.Range
	posted, done, fetched := 0, 0, 0
	for done < posted || (dst.Bytes > 0 && err == nil) {
		if dst.Bytes > 0 && err == nil && posted-done < window {
			if fetched, err = n.ahead(op, r, off, dst.Bytes, fetched); err != nil {
				continue
			}
			var k kept
			var bytes int
			// Only who holds nothing may wait for a piece: see get. A part that waits for a bucket holds others back, but
			// what it has posted ends without it.
			k, bytes, err = n.hosedRead(op, r, off, dst, posted == done)
			if err == nil {
				flight[posted%window], into[posted%window] = k, dst.Slice(0, bytes)
				posted++
				dst = dst.Slice(bytes, dst.Bytes-bytes)
				off, fetched = off+bytes, fetched-bytes
			}
			if err != errNoRoom {
				continue
			}
			err = nil // take one that is done, then go on
		}
		k, part := flight[done%window], into[done%window]
		if werr := k.h.Wait(context.Background()); werr == nil {
			buf, _ := n.buffer(k.id, part.Bytes)
			copy(part.Data(), buf.Data())
		} else if err == nil {
			err = werr
		}
		n.give(k)
		done++
	}
	return err
}

// hosedRead begins to read the first of dst's bytes, as many as lie in one bucket or, where no firehose is to be had, fit
// into a message, and returns how many.
func (n *nic) hosedRead(op string, r *Remote, off int, dst mem.Range, wait bool) (k kept, bytes int, err error) {
	addr := r.raddr + uint64(off)
	bytes, err = n.hoses.Cut(r.hosed, addr, dst.Bytes, n.pool.SlotBytes())
	if err != nil {
		return kept{}, 0, transport.NewOpError(op, r.Rank, err)
	}
	if k, err = n.keep(op, r.Rank, bytes > scratchBytes, wait); err != nil {
		return kept{}, 0, err
	}
	var key uint64
	var direct bool
	if r.Rank != n.e.Rank {
		key, direct, _, err = n.hoses.Attach(op, k.id, r.hosed, addr, bytes, nil, true)
		n.piece[k.id].hosed = direct
	}
	switch {
	case err != nil:
		n.abandon(k.id)
	case direct:
		buf, lkey := n.buffer(k.id, bytes)
		rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: addr, RKey: key}
		rd.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
		n.e.counts.add(PathBounce, r.Rank, bytes)
		err = n.post(op, k.id, rd)
	default:
		bytes = min(bytes, n.am.MaxPayload()/8*8)
		n.e.counts.add(PathMessage, r.Rank, bytes)
		args := [4]uint64{r.rkey, addr, uint64(bytes)}
		err = n.ask(op, k.id, askLoad, args, mem.Range{})
	}
	if err != nil {
		n.partDone(k.h.id, nil)
		return kept{}, 0, err
	}
	return k, bytes, nil
}
