package proto

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// acquire takes a piece, and a slot if wanted, for an operation to rank; it waits for them. Who holds pieces already
// that only he can free must not wait for more: see tryAcquire.
func (n *nic) acquire(op string, rank int, wantSlot bool) (int32, error) {
	id, ok := n.tryAcquire(rank, wantSlot)
	if ok {
		return id, nil
	}
	err := n.waitUntil(op, rank, func() bool {
		id, ok = n.tryAcquire(rank, wantSlot)
		return ok
	})
	return id, err
}

func (n *nic) tryAcquire(rank int, wantSlot bool) (id int32, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tryAcquireLocked(rank, wantSlot)
}

func (n *nic) tryAcquireLocked(rank int, wantSlot bool) (id int32, ok bool) {
	if id, ok = n.table.TryAcquire(rank, wantSlot); ok {
		n.ends[rank].pending.Add(1)
	}
	return id, ok
}

// post hands the operation of piece id to the NIC; it waits for the connection, and while the NIC has no room. On an
// error the piece has been freed.
func (n *nic) post(name string, id int32, op transport.Op) error {
	rank := n.table.Piece(id).Rank
	e, err := n.enter(name, rank)
	if err != nil {
		n.abandon(id)
		return err
	}
	op.Cookie = uint64(id)
	op.Flags |= transport.FlagSignaled
	op.EP = e.now()
	ops := n.table.Op(id)
	ops[0] = op
	n.table.Piece(id).Seq = e.seq.Add(1)
	posted := false
	var refused error
	try := func() bool {
		if !n.push() {
			return false // what was put before goes before
		}
		k, err := n.d.Post(ops)
		posted, refused = k == 1, err
		return posted || err != nil
	}
	if try() && posted {
		return nil
	}
	err = transport.NewOpError(name, rank, refused)
	if err == nil {
		err = n.waitUntil(name, rank, try)
	}
	if posted {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	e.leave()
	n.abandon(id)
	return err
}

// abandon frees a piece that was not posted.
func (n *nic) abandon(id int32) {
	n.landed(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[n.table.Piece(id).Rank].pending.Add(-1)
	if n.table.Unhose(id) {
		n.hoses.ReleaseLocked(id)
	}
	n.table.Free(id)
}

// buffer is the NIC memory of piece id for so many bytes, and its key.
func (n *nic) buffer(id int32, bytes int) (mem.Range, uint64) { return n.table.Buffer(id, bytes) }

// put sends src in pieces; it returns when src may be reused. src is copied, never kept.
func (n *nic) put(op string, r *Remote, off int, src mem.Range) error {
	if r.hosed != nil {
		return n.hosedPut(op, r, off, src)
	}
	if err := n.reach(op, r, off, src.Bytes); err != nil {
		return err
	}
	path := PathBounce
	if src.Bytes <= n.inline {
		path = PathInline
	}
	n.e.counts.add(path, r.Rank, src.Bytes)
	whole := src.Bytes
	for src.Bytes > 0 {
		part := src.Slice(0, min(src.Bytes, n.pool.SlotBytes()))
		id, err := n.acquire(op, r.Rank, part.Bytes > n.inline)
		if err != nil {
			return err
		}
		buf, key := n.buffer(id, part.Bytes)
		copy(buf.Data(), part.Data())
		n.e.Sched.ChargeCopy(part.Bytes, whole)
		wr := transport.Op{Kind: transport.OpWrite, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: r.rkey}
		wr.SGE[0] = transport.SGE{Mem: buf, LKey: key}
		if part.Bytes <= n.inline {
			wr.Flags = transport.FlagInline
		}
		if err := n.post(op, id, wr); err != nil {
			return err
		}
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}

// store64 sends one word.
func (n *nic) store64(op string, r *Remote, off int, v uint64) error {
	word := [1]uint64{v}
	return n.put(op, r, off, mem.Of(word[:]))
}

// window is how many pieces of one blocking get are in flight at once.
const window = 8

// get reads dst.Bytes; dst is written by the caller's goroutine only and not kept.
func (n *nic) get(r *Remote, off int, dst mem.Range) error {
	const name = "get"
	err := n.destination(name, r.Rank, dst)
	if err != nil {
		return err
	}
	if r.hosed != nil {
		return n.hosedGet(name, r, off, dst)
	}
	if err = n.reach(name, r, off, dst.Bytes); err != nil {
		return err
	}
	n.e.counts.add(PathBounce, r.Rank, dst.Bytes)
	whole := dst.Bytes
	var flight [window]kept
	var into [window]mem.Range
	posted, done := 0, 0
	for done < posted || (dst.Bytes > 0 && err == nil) {
		if dst.Bytes > 0 && err == nil && posted-done < window {
			part := dst.Slice(0, min(dst.Bytes, n.pool.SlotBytes()))
			rd := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off), RKey: r.rkey}
			var k kept
			// Only who holds nothing may wait: else many gets could hold all slots and wait for one more each.
			k, err = n.postKept(name, r.Rank, rd, part.Bytes, true, posted == done)
			if err == nil {
				flight[posted%window], into[posted%window] = k, part
				posted++
				dst = dst.Slice(part.Bytes, dst.Bytes-part.Bytes)
				off += part.Bytes
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
			n.e.Sched.ChargeCopy(part.Bytes, whole)
		} else if err == nil {
			err = werr
		}
		n.give(k)
		done++
	}
	return err
}

// getNB begins a read that the poller completes: dst belongs to the engine until the handle is done.
func (n *nic) getNB(r *Remote, off int, dst mem.Range) (Handle, error) {
	const name = "get"
	if err := n.reach(name, r, off, dst.Bytes); err != nil {
		return Handle{}, err
	}
	if err := n.destination(name, r.Rank, dst); err != nil {
		return Handle{}, err
	}
	h, err := n.begin(name, r.Rank)
	if err != nil {
		return Handle{}, err
	}
	n.e.counts.add(PathBounce, r.Rank, dst.Bytes)
	for dst.Bytes > 0 && err == nil {
		part := dst.Slice(0, min(dst.Bytes, n.pool.SlotBytes()))
		err = n.getPart(name, h, r, off, part)
		dst = dst.Slice(part.Bytes, dst.Bytes-part.Bytes)
		off += part.Bytes
	}
	n.partDone(h.id, err)
	return h, nil
}

// getPart adds a read of a slot's bytes, at most, to a transfer that is being begun: dst is the engine's until that is done.
func (n *nic) getPart(name string, h Handle, r *Remote, off int, dst mem.Range) error {
	id, err := n.acquire(name, r.Rank, true)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.table.Join(h.id, id)
	n.table.Piece(id).Dst = dst
	n.mu.Unlock()
	buf, key := n.buffer(id, dst.Bytes)
	rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: r.rkey}
	rd.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	if err := n.post(name, id, rd); err != nil {
		n.partDone(h.id, nil)
		return err
	}
	return nil
}

// kept is an operation whose result its waiter takes from the piece, and then gives the piece back.
type kept struct {
	h  Handle
	id int32
}

// errNoRoom: no piece, slot or transfer is free now.
var errNoRoom = errors.New("no room")

// keep takes a piece with a buffer of its own, and a transfer, for an operation to rank. Without leave to wait it fails
// with errNoRoom where it would have to.
func (n *nic) keep(name string, rank int, slot, wait bool) (kept, error) {
	// Whoever holds pieces that wait for him does not wait at all.
	k, ok := n.tryKeep(name, rank, slot)
	switch {
	case ok:
		return k, nil
	case !wait:
		return kept{}, errNoRoom
	}
	err := n.waitUntil(name, rank, func() bool {
		k, ok = n.tryKeep(name, rank, slot)
		return ok
	})
	return k, err
}

func (n *nic) tryKeep(name string, rank int, slot bool) (k kept, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k.h, k.id, ok = n.tryBeginOneLocked(name, rank, slot); ok {
		n.table.Piece(k.id).Keep = true
	}
	return k, ok
}

// postKept posts op with a kept piece for the result of bytes.
func (n *nic) postKept(name string, rank int, op transport.Op, bytes int, slot, wait bool) (kept, error) {
	k, err := n.keep(name, rank, slot, wait)
	if err != nil {
		return kept{}, err
	}
	buf, key := n.buffer(k.id, bytes)
	op.NSGE = 1
	op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	if err := n.post(name, k.id, op); err != nil {
		n.partDone(k.h.id, nil)
		return kept{}, err
	}
	return k, nil
}

// take waits for a kept word and gives the piece back.
func (n *nic) take(k kept) (uint64, error) {
	err := k.h.Wait(context.Background())
	buf, _ := n.buffer(k.id, 8)
	word := buf.Word64(0).Load()
	n.give(k)
	return word, err
}

func (n *nic) give(k kept) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table.Free(k.id)
}

// begin opens a transfer of one part, which the completion of its last piece, or partDone, ends.
func (n *nic) begin(op string, rank int) (Handle, error) {
	h, ok := n.tryBegin(op, rank)
	if ok {
		return h, nil
	}
	err := n.waitUntil(op, rank, func() bool {
		h, ok = n.tryBegin(op, rank)
		return ok
	})
	return h, err
}

func (n *nic) tryBegin(op string, rank int) (h Handle, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tryBeginLocked(op, rank)
}

func (n *nic) tryBeginLocked(op string, rank int) (h Handle, ok bool) {
	if h.id, h.gen, ok = n.table.TryBegin(op, rank, op == opPut); ok {
		h.n = n
	}
	return h, ok
}

func (n *nic) partDone(t int32, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.partDoneLocked(t, err)
}

// atomic performs a 64-bit fetch-add or compare-swap in the NIC and returns the old value.
func (n *nic) atomic(kind transport.Kind, r *Remote, off int, a, b uint64) (uint64, error) {
	const name = "atomic"
	if err := n.reachWord(name, r, off); err != nil {
		return 0, err
	}
	op := transport.Op{Kind: kind, RAddr: r.raddr + uint64(off), RKey: r.rkey, Arg0: a, Arg1: b}
	return n.word(name, r.Rank, op)
}

// load64 reads one word.
func (n *nic) load64(r *Remote, off int) (uint64, error) {
	if err := n.reach("get", r, off, 8); err != nil {
		return 0, err
	}
	return n.word("get", r.Rank, transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off), RKey: r.rkey})
}

// word posts op and returns the 8 bytes that it brings.
func (n *nic) word(name string, rank int, op transport.Op) (uint64, error) {
	k, err := n.postKept(name, rank, op, 8, false, true)
	if err != nil {
		return 0, err
	}
	n.e.counts.add(PathNICAtomic, rank, 8)
	return n.take(k)
}

// flush waits until nothing of this rank is in flight to the target, and reports the first failure. It ends early with ctx.
func (n *nic) flush(ctx context.Context, rank int) error {
	ep := &n.ends[rank]
	if puts := n.small.habits.Flush(rank); puts.Wanted() {
		defer n.flushTook(puts, n.e.Sched.Now())
	}
	if ep.pending.Load() != 0 {
		if err := n.waitWithin(ctx, "flush", rank, func() bool { return ep.pending.Load() == 0 }); err != nil {
			return err
		}
	}
	if !ep.bad.Load() {
		return nil
	}
	n.mu.Lock()
	err := ep.err
	if err == nil {
		err = n.table.Untold(rank)
	}
	ep.err = nil
	ep.bad.Store(false)
	n.mu.Unlock()
	return n.explain("flush", rank, transport.NewOpError("flush", rank, err))
}

// newsTime is how long a broken connection may wait for the news that its rank is gone.
const newsTime = 100 * time.Millisecond

// explain returns err, the error of op to rank, and for a broken connection its cause if that becomes known soon: the NIC
// reports what was in flight before, or instead of, the end of the peer.
func (n *nic) explain(op string, rank int, err error) error {
	if !errors.Is(err, errConnectionLost) {
		return err
	}
	ctx, cancel := n.e.Sched.WithTimeout(context.Background(), newsTime)
	defer cancel()
	sp := n.e.Sched.Begin(ctx, sched.What{Op: op, Peer: rank}, nil)
	defer sp.End()
	for !n.closed.Load() {
		if gone := n.e.Peers.Check(rank); gone != nil {
			return transport.NewOpError(op, rank, fmt.Errorf("%w; %w", gone, errConnectionLost))
		}
		if n.progress() {
			sp.Moved()
			continue
		}
		if sp.Step() != nil {
			break // no news within the time
		}
	}
	return err
}
