package proto

import (
	"context"

	"gopgas/internal/errand"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
)

// hosedPut is put into memory that is registered in buckets.
func (n *device) hosedPut(op string, r *Remote, off int, src mem.Range) error {
	if hit, err := n.hosedPutHit(op, r, off, src, false); hit {
		return err
	}
	err := n.connected(op, r, off, src.Bytes)
	if err != nil {
		return err
	}
	for src.Bytes > 0 {
		run, err := n.hosedRun(op, r, off, src)
		if err != nil {
			return err
		}
		src = src.Slice(run, src.Bytes-run)
		off += run
	}
	return nil
}

// asked is how many bytes of a transfer buckets were asked for that it has yet to use, and a question under way.
type asked struct {
	f    hose.Fetch
	open bool
	left int
}

// more asks for more where nothing is left; it reports false while the answer is on its way, unless it may wait for that.
func (a *asked) more(n *device, op string, r *Remote, off, bytes int, wait bool) (some bool, err error) {
	switch {
	case a.left > 0:
		return true, nil
	case r.Rank == n.e.Rank:
		a.left = bytes
		return true, nil
	case !a.open:
		if a.f, err = n.hoses.Fetch(op, r.hosed, r.raddr+uint64(off), bytes, true); err != nil {
			return false, err
		}
		a.open = true
	}
	if !wait && a.f.Pending() {
		return false, nil
	}
	a.open = false
	a.left, err = a.f.End(op)
	return err == nil, err
}

// drop ends a question that is still under way.
func (a *asked) drop(op string) {
	if a.open {
		a.open = false
		_, _ = a.f.End(op) // whoever has asked has an error of his own, or asks again
	}
}

// laid is a part of a put that has been copied and waits for its bucket.
type laid struct {
	id    int32 // the piece whose memory it is in
	bytes int
}

// laidMost is how many parts are copied while buckets are asked for.
const laidMost = 8

// hosedRun puts the first of src's bytes, those whose buckets are asked for together, and returns how many. Where the answer takes a
// round trip the first parts are copied meanwhile.
func (n *device) hosedRun(op string, r *Remote, off int, src mem.Range) (run int, err error) {
	if r.Rank == n.e.Rank {
		return src.Bytes, n.byMessage(op, r, off, src) // the budget is for others
	}
	f, err := n.hoses.Fetch(op, r.hosed, r.raddr+uint64(off), src.Bytes, src.Bytes > n.Payload)
	if err != nil {
		return 0, err
	}
	var parts [laidMost]laid
	ready := 0
	for at := 0; ready < laidMost && at < f.Bytes() && f.Pending(); ready++ {
		if parts[ready], err = n.lay(op, r, off+at, src.Slice(at, f.Bytes()-at), false); err != nil {
			break // no room: so much for that
		}
		at += parts[ready].bytes
	}
	run, err = f.End(op)
	for k, at := 0, 0; err == nil && at < run; k++ {
		var p laid
		if k < ready {
			p, parts[k].bytes = parts[k], 0
		} else {
			p, err = n.lay(op, r, off+at, src.Slice(at, run-at), true)
		}
		if err == nil { // asked here, as deep below the put as where it hits: both are one use to who foresees the next
			buf, _ := n.Buffer(p.id, p.bytes)
			key, direct, carried, refused := n.hoses.Attach(op, p.id, r.hosed, r.raddr+uint64(off+at), p.bytes, buf.Data(), false)
			err = n.hosedPart(op, r, off+at, src.Slice(at, p.bytes), p.id, bucket{key, direct, carried}, refused)
		}
		at += p.bytes
	}
	for _, p := range parts[:ready] {
		if p.bytes > 0 { // after an error
			n.Abandon(p.id)
		}
	}
	return run, err
}

// lay copies the first of src's bytes, as many as one bucket and one slot hold, into a piece. Without leave to wait it fails where it
// would have to.
func (n *device) lay(op string, r *Remote, off int, src mem.Range, wait bool) (p laid, err error) {
	if p.bytes, err = n.hoses.Cut(r.hosed, r.raddr+uint64(off), src.Bytes, n.Slot); err != nil {
		return p, transport.NewOpError(op, r.Rank, err)
	}
	id, ok := n.TryAcquire(r.Rank, p.bytes > n.Inline)
	switch {
	case !ok && !wait:
		return p, nic.ErrNoRoom
	case !ok:
		if id, err = n.Acquire(op, r.Rank, p.bytes > n.Inline); err != nil {
			return p, err
		}
	}
	p.id = id
	buf, _ := n.Buffer(id, p.bytes)
	mem.Copy(buf.Data(), src.Slice(0, p.bytes).Data())
	n.e.Sched.ChargeCopy(p.bytes, src.Bytes)
	return p, nil
}

// bucket is what Attach said of one.
type bucket struct {
	key             uint64
	direct, carried bool // a move has carried the copy, not the caller's memory, which would have to be on the heap for that
}

// hosedPart puts part, which lies in bucket b and has been copied to piece id; err is what the question for b ended with.
func (n *device) hosedPart(op string, r *Remote, off int, part mem.Range, id int32, b bucket, err error) error {
	buf, lkey := n.Buffer(id, part.Bytes)
	if b.direct {
		n.Tie(id)
	}
	if err != nil || b.carried || !b.direct {
		n.Abandon(id)
		if err == nil && b.carried {
			n.e.counts.add(PathMessage, r.Rank, part.Bytes)
		} else if err == nil {
			n.bulk.wary[r.Rank].Store(refusals)
			err = n.byMessage(op, r, off, part)
		}
		return err
	}
	wr := transport.Op{Kind: transport.OpWrite, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: b.key}
	wr.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
	path := PathBounce
	if part.Bytes <= n.Inline {
		wr.Flags, path = transport.FlagInline, PathInline
	}
	n.e.counts.add(path, r.Rank, part.Bytes)
	return n.Post(op, id, wr)
}

// byMessage has the target's CPU store src; it returns when src may be reused.
func (n *device) byMessage(op string, r *Remote, off int, src mem.Range) error {
	return n.copyAll(&messages{name: op, kind: errand.ToStore, r: r, off: off}, src)
}

// hosedGet is get from memory that is registered in buckets, with several parts of it under way at once.
func (n *device) hosedGet(op string, r *Remote, off int, dst mem.Range) error {
	if hit, err := n.hosedGetHit(op, r, off, dst); hit {
		return err
	}
	err := n.connected(op, r, off, dst.Bytes)
	if err != nil {
		return err
	}
	var flight [window]nic.Kept
	var into [window]mem.Range
	var ask asked
	defer ask.drop(op)
	posted, done := 0, 0
	for done < posted || (dst.Bytes > 0 && err == nil) {
		some := false // buckets were asked for
		if dst.Bytes > 0 && err == nil && posted-done < window {
			// While that is on its way, what has arrived is copied.
			some, err = ask.more(n, op, r, off, dst.Bytes, posted == done)
		}
		if some {
			var k nic.Kept
			var bytes int
			// Only who holds nothing may wait for a piece: see get. A part that waits for a bucket holds others back, but
			// what it has posted ends without it.
			k, bytes, err = n.hosedRead(op, r, off, dst, posted == done)
			if err == nil {
				flight[posted%window], into[posted%window] = k, dst.Slice(0, bytes)
				posted++
				dst = dst.Slice(bytes, dst.Bytes-bytes)
				off, ask.left = off+bytes, ask.left-bytes
			}
			if err != nic.ErrNoRoom {
				continue
			}
			err = nil // take one that is done, then go on
		}
		if posted == done {
			continue
		}
		k, part := flight[done%window], into[done%window]
		if werr := k.Wait(context.Background()); werr == nil {
			buf, _ := n.Buffer(k.ID, part.Bytes)
			mem.Copy(part.Data(), buf.Data())
			n.e.Sched.ChargeCopy(part.Bytes, part.Bytes)
		} else if err == nil {
			err = werr
		}
		n.Give(k.ID)
		done++
	}
	return err
}

// hosedRead begins to read the first of dst's bytes, as many as lie in one bucket or, where no firehose is to be had, fit
// into a message, and returns how many.
func (n *device) hosedRead(op string, r *Remote, off int, dst mem.Range, wait bool) (k nic.Kept, bytes int, err error) {
	addr := r.raddr + uint64(off)
	bytes, err = n.hoses.Cut(r.hosed, addr, dst.Bytes, n.Slot)
	if err != nil {
		return nic.Kept{}, 0, transport.NewOpError(op, r.Rank, err)
	}
	if k, err = n.Keep(op, r.Rank, bytes > nic.ScratchBytes, wait); err != nil {
		return nic.Kept{}, 0, err
	}
	var key uint64
	var direct bool
	if r.Rank != n.e.Rank {
		key, direct, _, err = n.hoses.Attach(op, k.ID, r.hosed, addr, bytes, nil, true)
		if direct {
			n.Tie(k.ID)
		}
	}
	switch {
	case err != nil:
		n.Abandon(k.ID)
	case direct:
		buf, lkey := n.Buffer(k.ID, bytes)
		rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: addr, RKey: key}
		rd.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
		n.e.counts.add(PathBounce, r.Rank, bytes)
		err = n.Post(op, k.ID, rd)
	default:
		n.bulk.wary[r.Rank].Store(refusals)
		bytes = min(bytes, n.Payload/8*8)
		n.e.counts.add(PathMessage, r.Rank, bytes)
		err = n.Ask(op, k.ID, uint8(errand.ToLoad), errand.ForBytes(r.rkey, addr, bytes), mem.Range{})
	}
	if err != nil {
		n.PartDone(k.Handle, nil)
		return nic.Kept{}, 0, err
	}
	return k, bytes, nil
}
