package proto

import (
	"context"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
)

// put sends src in pieces; it returns when src may be reused. src is copied, never kept.
func (n *device) put(op string, r *Remote, off int, src mem.Range) error {
	if r.hosed != nil {
		return n.hosedPut(op, r, off, src)
	}
	if 0 < src.Bytes && src.Bytes <= n.Inline {
		return n.putInline(op, r, off, src)
	}
	if err := n.reach(op, r, off, src.Bytes); err != nil {
		return err
	}
	n.e.counts.count(PathBounce, r, src.Bytes)
	whole := src.Bytes
	for src.Bytes > 0 {
		part := src.Slice(0, min(src.Bytes, n.Slot))
		flags := uint8(0)
		if part.Bytes <= n.Inline {
			flags = transport.FlagInline
		}
		laid, err := n.layCopy(op, r, off, part, whole, flags)
		if err != nil {
			return err
		}
		if err := n.Send(op, laid); err != nil {
			return err
		}
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}

// layCopy lays the operation that puts a copy of a part of so many bytes: in a slot, unless flags say inline.
func (n *device) layCopy(op string, r *Remote, off int, part mem.Range, whole int, flags uint8) (*nic.Laid, error) {
	slot := flags&transport.FlagInline == 0
	laid, err := n.AcquireLaid(op, r.Rank, slot, transport.OpWrite, flags, part.Bytes, r.raddr+uint64(off), r.rkey)
	if err == nil {
		mem.Copy(laid[0].SGE[0].Mem.Data(), part.Data())
		n.e.Sched.ChargeCopy(part.Bytes, whole)
	}
	return laid, err
}

// What is one operation that is waited for, or flushed, at once goes a straight way, on which what it costs beyond the NIC is what the
// program sees: putInline, getSlot and word take a piece and count it in one passage through the NIC path's lock, write the
// operation where it is posted from, and look for its end once before they call themselves waiting.

// take takes a piece, and a slot if wanted, for an operation of so many bytes on a path; it waits for them.
func (n *device) take(op string, p Path, r *Remote, bytes int, slot bool) (int32, error) {
	n.Lock()
	id, ok := n.TryAcquireLocked(r.Rank, slot)
	if ok && !r.measured {
		n.e.counts.addLocked(p, r.Rank, bytes)
	}
	n.Unlock()
	if ok {
		return id, nil
	}
	id, err := n.Acquire(op, r.Rank, slot)
	if err == nil {
		n.e.counts.count(p, r, bytes)
	}
	return id, err
}

// takeLaid takes a piece for an operation between so many bytes of its buffer and byte off of the member's memory, and lays it, where TryLay has not.
func (n *device) takeLaid(name string, p Path, r *Remote, kind transport.Kind, flags uint8, off, bytes int) (*nic.Laid, error) {
	id, err := n.take(name, p, r, bytes, bytes > nic.ScratchBytes)
	if err != nil {
		return nil, err
	}
	n.Lay(id, kind, flags, bytes, r.raddr+uint64(off), r.rkey)
	return n.Enter(name, id)
}

// putInline is put for what goes inline.
func (n *device) putInline(op string, r *Remote, off int, src mem.Range) error {
	laid, err := n.layInline(op, r, off, src, 0)
	if err != nil {
		return err
	}
	return n.Send(op, laid)
}

// layInline lays the operation that puts src inline, with some flags more.
func (n *device) layInline(op string, r *Remote, off int, src mem.Range, flags uint8) (*nic.Laid, error) {
	if !n.reaches(r, off, src.Bytes) {
		if err := n.unreachable(op, r, off, src.Bytes); err != nil {
			return nil, err
		}
	}
	at := n.TryLay(n.e.counts.tally(PathInline, r), r.Rank, transport.OpWrite, transport.FlagInline|flags, src.Bytes, r.raddr+uint64(off), r.rkey)
	if at == nil {
		var err error
		if at, err = n.takeLaid(op, PathInline, r, transport.OpWrite, transport.FlagInline|flags, off, src.Bytes); err != nil {
			return nil, err
		}
	}
	mem.CopyRange(mem.Range{Base: at[0].SGE[0].Mem.Base, Bytes: src.Bytes}, src)
	n.e.Sched.ChargeCopy(src.Bytes, src.Bytes)
	return at, nil
}

// putLater is put for a caller who will flush or wait: a small put may be held back. src may be reused on return.
func (n *device) putLater(op string, r *Remote, off int, src mem.Range) error {
	if r.hosed != nil {
		if hit, err := n.hosedPutHit(op, r, off, src, true); hit {
			return err
		}
	}
	if src.Bytes > n.Inline || r.hosed != nil {
		return n.put(op, r, off, src)
	}
	return n.putInlineLater(op, r, off, src)
}

// putInlineLater is putInline for such a caller. A put that begins where the one before has ended goes with that, as one operation.
func (n *device) putInlineLater(op string, r *Remote, off int, src mem.Range) error {
	if n.reaches(r, off, src.Bytes) && n.Extend(r.Rank, r.raddr+uint64(off), r.rkey, src) {
		n.e.counts.count(PathInline, r, src.Bytes)
		n.e.Sched.ChargeCopy(src.Bytes, src.Bytes)
		return nil
	}
	laid, err := n.layInline(op, r, off, src, 0)
	if err != nil {
		return err
	}
	return n.SendLater(op, laid)
}

// putAhead begins a put behind which store64 follows. What is copied into a slot is held back until then.
func (n *device) putAhead(op string, r *Remote, off int, src mem.Range) (Handle, error) {
	if r.hosed == nil && src.Bytes <= n.Inline {
		return Handle{}, n.wordsAhead(op, r, off, src)
	}
	if n.small.how.Mode == eager.OnlyBypass { // else who puts would wait for the end of what takes no longer through a slot
		h, begun, err := n.startUser(journey{name: op, kind: transport.OpWrite, r: r, off: off, path: PathDirect}, src)
		if begun || err != nil {
			return h, err
		}
	}
	if r.hosed == nil && (src.Bytes <= n.Slot || n.Caps.Busy && src.Bytes <= aheadSlots*n.Slot) {
		return Handle{}, n.slotsAhead(op, r, off, src)
	}
	return Handle{}, n.put(op, r, off, src)
}

// copiesAhead reports whether putAhead copies so many bytes at once and holds the copy back, and nothing but a copy is likely to be chosen for a put of them.
func (n *device) copiesAhead(r *Remote, bytes int) bool {
	return r.hosed == nil && n.small.plain[leastPut].Load() > 0 && bytes <= n.Slot && bytes < min(leastLearned, n.direct.least)
}

// wordsAhead is putAhead of what goes inline, and is copied at once.
func (n *device) wordsAhead(op string, r *Remote, off int, src mem.Range) error {
	if r.hosed != nil || src.Bytes > n.Inline || src.Bytes == 0 {
		return n.put(op, r, off, src)
	}
	laid, err := n.layInline(op, r, off, src, n.Lazy(r.Rank))
	if err != nil {
		return err
	}
	return n.SendLater(op, laid)
}

// aheadSlots is how many slots are held back together at most: where the NIC is a program nothing is lost by that, since it would move the first on the
// processor on which the others are copied, and all go in one post, and are acknowledged together.
const aheadSlots = 4

// slotsAhead is putAhead through slots.
func (n *device) slotsAhead(op string, r *Remote, off int, src mem.Range) error {
	for at := 0; at < src.Bytes; at += n.Slot {
		if err := n.slotAhead(op, r, off+at, src.Slice(at, min(n.Slot, src.Bytes-at))); err != nil {
			return err
		}
	}
	return nil
}

// slotAhead is slotsAhead through one.
func (n *device) slotAhead(op string, r *Remote, off int, src mem.Range) error {
	laid, err := n.laySlot(op, r, off, src, n.Lazy(r.Rank))
	if err != nil {
		return err
	}
	return n.SendLater(op, laid)
}

// laySlot lays the operation that puts src through a slot, with some flags more.
func (n *device) laySlot(op string, r *Remote, off int, src mem.Range, flags uint8) (*nic.Laid, error) {
	if err := n.reach(op, r, off, src.Bytes); err != nil {
		return nil, err
	}
	laid, err := n.layCopy(op, r, off, src, src.Bytes, flags)
	if err == nil {
		n.e.counts.count(PathBounce, r, src.Bytes)
	}
	return laid, err
}

// store64 sends one word, likewise: at once, or in time (nic.SendInTime).
func (n *device) store64(op string, r *Remote, off int, v uint64, inTime bool) error {
	word := [1]uint64{v}
	src := mem.Of(word[:])
	if r.hosed != nil {
		if err := n.settled(r); err != nil {
			return err
		}
		return n.put(op, r, off, src)
	}
	var laid *nic.Laid
	var err error
	if src.Bytes <= n.Inline {
		laid, err = n.layInline(op, r, off, src, n.Lazy(r.Rank))
	} else {
		laid, err = n.laySlot(op, r, off, src, n.Lazy(r.Rank))
	}
	if err == nil {
		err = n.show(r, laid)
	}
	if err != nil {
		return err
	}
	if inTime {
		return n.SendInTime(op, laid)
	}
	return n.SendLazy(op, laid)
}

// window is how many pieces of one blocking get are in flight at once.
const window = 8

// get reads dst.Bytes; dst is written by the caller's goroutine only and not kept.
func (n *device) get(r *Remote, off int, dst mem.Range) error {
	const name = "get"
	if mem.OriginOf(dst) == mem.Foreign {
		if err := n.destination(name, r.Rank, dst); err != nil {
			return err
		}
	}
	if r.hosed != nil {
		return n.hosedGet(name, r, off, dst)
	}
	if !n.reaches(r, off, dst.Bytes) {
		if err := n.unreachable(name, r, off, dst.Bytes); err != nil {
			return err
		}
	}
	if 0 < dst.Bytes && dst.Bytes <= n.Slot {
		return n.getSlot(r, off, dst)
	}
	return n.getParts(r, off, dst)
}

// getSlot is get for what one slot holds. The caller has looked where it comes from and goes.
func (n *device) getSlot(r *Remote, off int, dst mem.Range) error {
	const name = "get"
	op := n.TryLay(n.e.counts.tally(PathBounce, r), r.Rank, transport.OpRead, 0, dst.Bytes, r.raddr+uint64(off), r.rkey)
	if op == nil {
		var err error
		if op, err = n.takeLaid(name, PathBounce, r, transport.OpRead, 0, off, dst.Bytes); err != nil {
			return err
		}
	}
	err := n.Carry(name, op, dst)
	if err == nil {
		n.e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
	}
	return err
}

// getParts is get for what takes several slots.
func (n *device) getParts(r *Remote, off int, dst mem.Range) (err error) {
	const name = "get"
	n.e.counts.count(PathBounce, r, dst.Bytes)
	whole := dst.Bytes
	var flight [window]nic.Kept
	var into [window]mem.Range
	posted, done := 0, 0
	for done < posted || (dst.Bytes > 0 && err == nil) {
		if dst.Bytes > 0 && err == nil && posted-done < window {
			part := dst.Slice(0, min(dst.Bytes, n.Slot))
			rd := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off), RKey: r.rkey}
			var k nic.Kept
			// Only who holds nothing may wait: else many gets could hold all slots and wait for one more each.
			k, err = n.PostKept(name, r.Rank, rd, part.Bytes, true, posted == done)
			if err == nil {
				flight[posted%window], into[posted%window] = k, part
				posted++
				dst = dst.Slice(part.Bytes, dst.Bytes-part.Bytes)
				off += part.Bytes
			}
			if err != nic.ErrNoRoom {
				continue
			}
			err = nil // take one that is done, then go on
		}
		k, part := flight[done%window], into[done%window]
		if werr := k.Wait(context.Background()); werr == nil {
			buf, _ := n.Buffer(k.ID, part.Bytes)
			mem.Copy(part.Data(), buf.Data())
			n.e.Sched.ChargeCopy(part.Bytes, whole)
		} else if err == nil {
			err = werr
		}
		n.Give(k.ID)
		done++
	}
	return err
}

// getNB begins a read that the poller completes: dst belongs to the engine until the handle is done.
func (n *device) getNB(r *Remote, off int, dst mem.Range) (Handle, error) {
	const name = "get"
	if err := n.reach(name, r, off, dst.Bytes); err != nil {
		return Handle{}, err
	}
	if err := n.destination(name, r.Rank, dst); err != nil {
		return Handle{}, err
	}
	h, err := n.Begin(name, r.Rank)
	if err != nil {
		return Handle{}, err
	}
	n.e.counts.add(PathBounce, r.Rank, dst.Bytes)
	for dst.Bytes > 0 && err == nil {
		part := dst.Slice(0, min(dst.Bytes, n.Slot))
		err = n.getPart(name, h, r, off, part)
		dst = dst.Slice(part.Bytes, dst.Bytes-part.Bytes)
		off += part.Bytes
	}
	n.PartDone(h, err)
	return h, nil
}

// getPart adds a read of a slot's bytes, at most, to a transfer that is being begun: dst is the engine's until that is done.
func (n *device) getPart(name string, h Handle, r *Remote, off int, dst mem.Range) error {
	id, err := n.Acquire(name, r.Rank, true)
	if err != nil {
		return err
	}
	n.JoinInto(h, id, dst)
	buf, key := n.Buffer(id, dst.Bytes)
	rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: r.rkey}
	rd.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	if err := n.Post(name, id, rd); err != nil {
		n.PartDone(h, nil)
		return err
	}
	return nil
}

// atomic performs a 64-bit fetch-add or compare-swap in the NIC and returns the old value.
func (n *device) atomic(kind transport.Kind, r *Remote, off int, a, b uint64) (uint64, error) {
	const name = "atomic"
	if err := n.reachWord(name, r, off); err != nil {
		return 0, err
	}
	return n.word(name, kind, r, off, a, b)
}

// load64 reads one word.
func (n *device) load64(r *Remote, off int) (uint64, error) {
	if err := n.reach("get", r, off, 8); err != nil {
		return 0, err
	}
	return n.word("get", transport.OpRead, r, off, 0, 0)
}

// word carries out an operation on one word and returns the 8 bytes that it brings.
func (n *device) word(name string, kind transport.Kind, r *Remote, off int, a, b uint64) (uint64, error) {
	op := n.TryLay(n.e.counts.tally(PathNICAtomic, r), r.Rank, kind, 0, 8, r.raddr+uint64(off), r.rkey)
	if op == nil {
		var err error
		if op, err = n.takeLaid(name, PathNICAtomic, r, kind, 0, off, 8); err != nil {
			return 0, err
		}
	}
	if err := n.show(r, op); err != nil {
		return 0, err
	}
	op[0].Arg0, op[0].Arg1 = a, b
	var old [1]uint64
	err := n.Carry(name, op, mem.Of(old[:]))
	return old[0], err
}

// flush waits until all is over that was begun to the target before, and reports the first failure. It ends early with ctx.
func (n *device) flush(ctx context.Context, rank int) error {
	if n.small.habits.Awaiting() {
		return n.flushNoted(ctx, rank)
	}
	return n.Flush(ctx, rank)
}

// flushNoted is flush behind puts that were noted, whose cost and its own may be wanted.
func (n *device) flushNoted(ctx context.Context, rank int) error {
	if puts := n.small.habits.Flush(rank); puts.Wanted() {
		defer n.flushTook(puts, n.e.Sched.Now())
	}
	return n.Flush(ctx, rank)
}
