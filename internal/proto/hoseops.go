package proto

import (
	"context"
	"errors"

	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// attach gets a firehose for piece id on the bucket that n bytes at off of r lie in; it waits for a move. A put may
// travel in that: then carried is true and nothing is left to do. If direct is false the bytes must go by message. On an
// error, too, the piece holds nothing. read: the bytes come here.
func (h *hoses) attach(name string, id int32, r *Remote, off uint64, n int, put []byte, read bool) (key uint64, direct, carried bool, err error) {
	q := &h.q[id]
	h.n.mu.Lock()
	v, err := h.viewLocked(r)
	if err != nil {
		h.n.mu.Unlock()
		return 0, false, false, transport.NewOpError(name, r.Rank, err)
	}
	q.Put = put
	h.noteLocked(id, v, r, off, read)
	state := h.holder.Acquire(v, q, off, uint64(n))
	h.n.mu.Unlock()
	if state == firehose.Waiting {
		err = h.await(name, r.Rank, q)
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	ready := q.State() == firehose.Ready
	q.Put = nil
	switch {
	case ready && (err != nil || q.Carried()):
		h.work.Store(h.holder.Release(q) || h.work.Load())
	case ready:
		h.n.piece[id].hosed = true
		key = q.Key(0)
	case err == nil && !q.Carried() && !fallsBack(q.Err()):
		err = transport.NewOpError(name, r.Rank, q.Err())
	}
	if !h.n.piece[id].hosed {
		h.doneLocked(id)
	}
	return key, ready, q.Carried(), err
}

// await returns when q waits no longer. On an error everything with the rank has ended.
func (h *hoses) await(name string, rank int, q *firehose.Request) error {
	begun := h.n.e.Sched.Now()
	h.work.Store(true)
	h.send()
	err := h.n.waitUntil(name, rank, func() bool {
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		return q.State() != firehose.Waiting
	})
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	switch {
	case err != nil:
		h.holder.Lost(rank, err) // the rank is gone, or this one's NIC
	case q.State() == firehose.Ready && q.Moved():
		h.timedLocked(h.n.e.Sched.Now()-begun, q.Run())
	}
	return err
}

// fetch asks for the buckets of a long transfer together, as many as the share allows beside other transfers, and
// returns for how many of its bytes it did. It keeps none of them: whoever held some and waited for more could wait for
// ever. Most will still be there when they are used.
func (h *hoses) fetch(name string, r *Remote, off, bytes int) (int, error) {
	at := r.raddr + uint64(off) - r.hosed.r.Start
	h.n.mu.Lock()
	v, err := h.viewLocked(r)
	if err != nil {
		h.n.mu.Unlock()
		return 0, transport.NewOpError(name, r.Rank, err)
	}
	half := uint64(max(1, h.budget.Share/2) << h.budget.Shift)
	n := h.holder.Piece(v, at, min(uint64(bytes), half))
	if n <= v.End(at)-at {
		h.n.mu.Unlock()
		return int(n), nil // a single bucket: whoever uses it will ask
	}
	q := new(firehose.Request)
	state := h.holder.Acquire(v, q, at, n)
	h.n.mu.Unlock()
	if state == firehose.Waiting {
		if err := h.await(name, r.Rank, q); err != nil {
			return 0, err
		}
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if h.holder.Release(q) { // nothing, if it failed: the parts will find their own way
		h.work.Store(true)
	}
	return int(n), nil
}

// fallsBack reports whether a firehose was refused for a reason that leaves messages possible.
func fallsBack(err error) bool {
	return errors.Is(err, firehose.ErrRefused) || errors.Is(err, firehose.ErrNoShare) || errors.Is(err, firehose.ErrMove)
}

// releaseLocked lets go of the firehose of a piece whose operation is over.
func (n *nic) releaseLocked(id int32) {
	if p := &n.piece[id]; p.hosed {
		p.hosed = false
		n.hoses.doneLocked(id)
		if n.hoses.holder.Release(&n.hoses.q[id]) {
			n.hoses.work.Store(true)
		}
	}
}

// cut returns the next part of bytes at off of r that one operation can carry, of at most most, and where in the range it
// is: no part crosses the end of a bucket.
func (h *hoses) cut(r *Remote, off, bytes, most int) (at uint64, n int, err error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	v, err := h.viewLocked(r)
	if err != nil {
		return 0, 0, err
	}
	at = r.raddr + uint64(off) - r.hosed.r.Start
	return at, min(bytes, most, int(v.End(at)-at)), nil
}

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
		at, bytes, err := n.hoses.cut(r, off, src.Bytes, n.pool.SlotBytes())
		if err != nil {
			return transport.NewOpError(op, r.Rank, err)
		}
		part := src.Slice(0, bytes)
		if err := n.hosedPart(op, r, at, off, part); err != nil {
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
	return n.hoses.fetch(op, r, off, bytes)
}

// hosedPart puts what lies in one bucket.
func (n *nic) hosedPart(op string, r *Remote, at uint64, off int, part mem.Range) error {
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
	key, direct, carried, err := n.hoses.attach(op, id, r, at, part.Bytes, buf.Data(), false)
	if err != nil || carried || !direct {
		n.abandon(id)
		if err == nil && carried {
			n.e.counts.add(PathMessage, r.Rank, part.Bytes)
		} else if err == nil {
			n.ends[r.Rank].wary.Store(refusals)
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
	at, bytes, err := n.hoses.cut(r, off, dst.Bytes, n.pool.SlotBytes())
	if err != nil {
		return kept{}, 0, transport.NewOpError(op, r.Rank, err)
	}
	if k, err = n.keep(op, r.Rank, bytes > scratchBytes, wait); err != nil {
		return kept{}, 0, err
	}
	var key uint64
	var direct bool
	if r.Rank != n.e.Rank {
		key, direct, _, err = n.hoses.attach(op, k.id, r, at, bytes, nil, true)
	}
	switch {
	case err != nil:
		n.abandon(k.id)
	case direct:
		buf, lkey := n.buffer(k.id, bytes)
		rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: key}
		rd.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
		n.e.counts.add(PathBounce, r.Rank, bytes)
		err = n.post(op, k.id, rd)
	default:
		n.ends[r.Rank].wary.Store(refusals)
		bytes = min(bytes, n.am.MaxPayload()/8*8)
		n.e.counts.add(PathMessage, r.Rank, bytes)
		args := [4]uint64{r.rkey, r.raddr + uint64(off), uint64(bytes)}
		err = n.ask(op, k.id, askLoad, args, mem.Range{})
	}
	if err != nil {
		n.partDone(k.h.id, nil)
		return kept{}, 0, err
	}
	return k, bytes, nil
}

// waitAlone is waitUntil for a wait that concerns no single rank.
func (n *nic) waitAlone(op string, cond func() bool) error {
	n.pollers.Add(1)
	defer n.pollers.Add(-1)
	n.waits.Add(1)
	sp := n.e.Sched.Begin(context.Background(), sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !cond() {
		if n.progress() {
			sp.Moved()
			continue
		}
		if n.closed.Load() {
			return transport.NewOpError(op, -1, errOwnEnd)
		}
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}
