package proto

import (
	"fmt"
	"reflect"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/timeline"
	"gopgas/internal/trace"
	"gopgas/transport"
)

var errNoAtomics = fmt.Errorf("%w: this NIC has no 64-bit atomics", transport.ErrUnsupported)

// Atomic performs op on the element at byte off and returns its old bits. The path is the exposure's: CPU
// where the part is mapped, else the NIC.
func (e *Engine) Atomic(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, t.Bytes)
		return atom.Do(op, t, r.Mapped, off, x, y), nil
	}
	if e.record == nil {
		return e.nicAtomic(op, t, r, off, x, y)
	}
	v := e.record.visit(timeline.Transfer, op.Fetch(), r.Rank)
	old, err := e.nicAtomic(op, t, r, off, x, y)
	e.record.atomic(&v, trace.Atomic, r, off, t.Bytes)
	e.record.over(&v, t.Bytes)
	return old, err
}

// nicAtomic is Atomic where the path is not the CPU's.
func (e *Engine) nicAtomic(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	n := e.nic()
	switch n.wayTo(r, op, t) {
	case byMessage:
		return n.askedAtomic(op, t, r, off, x, y)
	case nowhere:
		return 0, transport.NewOpError(op.Fetch(), r.Rank, errNoAtomics)
	case native:
		if op == atom.CompareSwap {
			return n.atomic(transport.OpCompareSwap, r, off, x, y)
		}
		return n.atomic(transport.OpFetchAdd, r, off, x, 0)
	}
	if err := n.reachElements(op.Fetch(), r, off, t.Bytes, t.Bytes); err != nil {
		return 0, err
	}
	wordOff, shift, mask, err := locate(r, t, off)
	if err != nil {
		return 0, err
	}
	if op == atom.Load { // a read might find the word half-way
		word, err := n.atomic(transport.OpFetchAdd, r, wordOff, 0, 0)
		return word >> shift & mask, err
	}
	// What the NIC lacks is made of what it has: a compare-swap of the word around the element.
	word, err := e.nic().load64(r, wordOff)
	for err == nil {
		old := word >> shift & mask
		next := word&^(mask<<shift) | atom.Combine(op, t.Kind, old, x, y)&mask<<shift
		if next == word && op == atom.CompareSwap {
			return old, nil
		}
		var seen uint64
		if seen, err = e.nic().atomic(transport.OpCompareSwap, r, wordOff, word, next); seen == word {
			return old, err
		}
		word = seen
	}
	return 0, err
}

// Accumulate combines the elements in src into those from byte off on, each atomically; it returns when src may be
// reused, and is flushed and ordered like a put.
func (e *Engine) Accumulate(op atom.Op, t atom.Elem, r *Remote, off int, src mem.Range) error {
	return e.accumulate("accumulate", op, t, r, off, src)
}

// Store is the Accumulate that replaces the element at byte off by that in src.
func (e *Engine) Store(t atom.Elem, r *Remote, off int, src mem.Range) error {
	return e.accumulate("store", atom.Replace, t, r, off, src)
}

func (e *Engine) accumulate(name string, op atom.Op, t atom.Elem, r *Remote, off int, src mem.Range) error {
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, src.Bytes)
		atom.Accumulate(op, t, r.Mapped.Slice(off, src.Bytes), src)
		return nil
	}
	if e.record == nil {
		return e.nicAccumulate(name, op, t, r, off, src)
	}
	v := e.record.visit(timeline.Transfer, name, r.Rank)
	err := e.nicAccumulate(name, op, t, r, off, src)
	e.record.atomic(&v, trace.Accumulate, r, off, src.Bytes)
	e.record.over(&v, src.Bytes)
	return err
}

// nicAccumulate is Accumulate, or what goes by that name, where the path is not the CPU's.
func (e *Engine) nicAccumulate(name string, op atom.Op, t atom.Elem, r *Remote, off int, src mem.Range) error {
	n := e.nic()
	w := n.wayTo(r, op, t)
	switch {
	case w == native && src.Bytes == t.Bytes:
		return n.add(r, off, src.Bits())
	case w == byMessage || n.cpuToo():
		return n.askedAccumulate(name, op, t, r, off, src)
	}
	for at := 0; at < src.Bytes; at += t.Bytes {
		if _, err := e.nicAtomic(op, t, r, off+at, src.Slice(at, t.Bytes).Bits(), 0); err != nil {
			return err
		}
	}
	return nil
}

// add posts the accumulate of one word, which the NIC performs by itself: what was there nobody wants to know.
func (n *device) add(r *Remote, off int, v uint64) error {
	const name = "accumulate"
	if err := n.reachWord(name, r, off); err != nil {
		return err
	}
	id, err := n.take(name, PathNICAtomic, r, 8, false)
	if err != nil {
		return err
	}
	n.Add(id)
	op, _ := n.Lay(id, transport.OpFetchAdd, 0, 8, r.raddr+uint64(off), r.rkey)
	op.Arg0 = v
	return n.PostLaid(name, id)
}

// Before reports whether all that this rank has under way to data's rank is done there before an atomic on word, of the same rank, that is
// posted now, whatever breaks meanwhile: sums that the NIC performs, and nothing else. What is a put could be put once more, and a get
// be brought, after the atomic.
func (e *Engine) Before(data, word *Remote) bool {
	n := e.nic()
	return n != nil && data.Mapped.Bytes == 0 && !word.cpuAtomics() && n.wayTo(word, atom.Sum, atom.Word64()) == native && n.OnlyAdds(data.Rank)
}

// way is how a NIC performs an atomic.
type way uint8

const (
	nowhere   way = iota
	native        // the NIC has it
	byWord        // by a compare-swap of the word around the element
	byMessage     // the target's CPU does it
)

// way decides by the operation, the element type and what the NIC can do, and by nothing else, so that all members of a
// window agree. Where the NIC's atomics are not atomic with a CPU's, all operations on one type take one of the two.
func (n *device) way(op atom.Op, t atom.Elem) way {
	hardware := n.Caps.Atomics64 && t.Bytes == 8 && t.Kind != reflect.Float64
	switch {
	case hardware && (op == atom.Sum || op == atom.CompareSwap || op == atom.Load): // a load is a sum with 0
		return native
	case n.Payload != 0 && (n.Caps.AtomicsCPU || !hardware):
		return byMessage
	case n.Caps.Atomics64:
		return byWord
	default:
		return nowhere
	}
}

// wayTo is way for a member's part. Where that is registered in buckets, which the NIC may not reach at the moment, the
// owner's CPU does everything: the same for all who use that part. And behind what it has been asked for and has not answered it does what the
// NIC could, where that is the same to all: else the NIC would overtake it, and what a rank does to an element one after the other would not stay so.
func (n *device) wayTo(r *Remote, op atom.Op, t atom.Elem) way {
	if r.hosed != nil {
		return byMessage
	}
	w := n.way(op, t)
	if w == native && n.cpuToo() && n.Asked(r.Rank) {
		return byMessage
	}
	return w
}

// cpuToo reports whether the target's CPU can be asked for what the NIC could do, and the two are atomic with each other.
func (n *device) cpuToo() bool { return n.Caps.AtomicsCPU && n.Payload != 0 }

func (r *Remote) cpuAtomics() bool { return r.Mapped.Bytes != 0 && !r.nicAtomics }

// locate returns the aligned 8-byte word around the element, and where in it the element is.
func locate(r *Remote, t atom.Elem, off int) (wordOff int, shift uint, mask uint64, err error) {
	mask = ^uint64(0) >> (64 - 8*t.Bytes)
	inWord := int(r.raddr+uint64(off)) & 7
	if wordOff = off - inWord; wordOff < 0 || wordOff+8 > r.room {
		return 0, 0, 0, transport.NewOpError("atomic", r.Rank, errEdge)
	}
	return wordOff, uint(8 * inWord), mask, nil
}

var errEdge = fmt.Errorf("%w: an atomic narrower than 8 bytes at the edge of memory that does not begin and end on an "+
	"8-byte boundary; make the window's slice longer, or use Allocate", transport.ErrUnsupported)
