package proto

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"gopgas/internal/mem"
	"gopgas/internal/timeline"
	"gopgas/transport"
)

// Atom is what an atomic does to an element.
type Atom uint8

// The atomics. All return the old value; Accumulate uses the same names without it.
const (
	Sum Atom = iota
	Prod
	Min
	Max
	And
	Or
	Xor
	Replace
	CompareSwap
)

func (a Atom) String() string {
	return [...]string{"sum", "prod", "min", "max", "and", "or", "xor", "replace", "compare-swap"}[a]
}

// ErrAtomic: the operation is not defined for the element type.
var ErrAtomic = errors.New("operation is not defined for this element type")

var errNoAtomics = fmt.Errorf("%w: this NIC has no 64-bit atomics", transport.ErrUnsupported)

// Combine returns what the element of kind k with the bits old becomes. For CompareSwap x is what is expected
// and y what is stored then; elsewhere x is the operand.
func Combine(a Atom, k reflect.Kind, old, x, y uint64) uint64 {
	switch a {
	case Replace:
		return x
	case CompareSwap:
		if old == x {
			return y
		}
		return old
	case And:
		return old & x
	case Or:
		return old | x
	case Xor:
		return old ^ x
	}
	switch k {
	case reflect.Float64:
		return math.Float64bits(arith(a, math.Float64frombits(old), math.Float64frombits(x)))
	case reflect.Float32:
		return uint64(math.Float32bits(arith(a, math.Float32frombits(uint32(old)), math.Float32frombits(uint32(x)))))
	case reflect.Int8:
		return uint64(uint8(arith(a, int8(old), int8(x))))
	case reflect.Int16:
		return uint64(uint16(arith(a, int16(old), int16(x))))
	case reflect.Int32:
		return uint64(uint32(arith(a, int32(old), int32(x))))
	case reflect.Int, reflect.Int64:
		return uint64(arith(a, int64(old), int64(x)))
	case reflect.Uint8:
		return uint64(arith(a, uint8(old), uint8(x)))
	case reflect.Uint16:
		return uint64(arith(a, uint16(old), uint16(x)))
	case reflect.Uint32:
		return uint64(arith(a, uint32(old), uint32(x)))
	default:
		return arith(a, old, x)
	}
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func arith[T number](a Atom, old, x T) T {
	switch a {
	case Prod:
		return old * x
	case Min:
		return min(old, x)
	case Max:
		return max(old, x)
	default:
		return old + x
	}
}

// Elem describes an element type for atomics.
type Elem struct {
	Kind  reflect.Kind
	Bytes int
}

// ElemOf describes T.
func ElemOf[T any]() Elem {
	t := reflect.TypeFor[T]()
	return Elem{Kind: t.Kind(), Bytes: int(t.Size())}
}

// Word64 describes the words that flags, locks and counters are made of.
func Word64() Elem { return Elem{reflect.Uint64, 8} }

// Check returns an error unless op is defined for the type.
func (t Elem) Check(op Atom) error {
	isInt := t.Kind >= reflect.Int && t.Kind <= reflect.Uintptr
	isFloat := t.Kind == reflect.Float32 || t.Kind == reflect.Float64
	bits := op == And || op == Or || op == Xor
	if op > CompareSwap {
		return fmt.Errorf("%w: operation %d", ErrAtomic, op)
	}
	if isInt || isFloat && !bits {
		return nil
	}
	return fmt.Errorf("%w: %s on %s", ErrAtomic, op, t.Kind)
}

// Atomic performs op on the element at byte off and returns its old bits. The path is the exposure's: CPU
// where the part is mapped, else the NIC.
func (e *Engine) Atomic(op Atom, t Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, t.Bytes)
		return cpuAtomic(op, t, r.Mapped, off, x, y), nil
	}
	if e.record == nil {
		return e.nicAtomic(op, t, r, off, x, y)
	}
	v := e.record.visit(timeline.Transfer, op.String(), r.Rank)
	old, err := e.nicAtomic(op, t, r, off, x, y)
	e.record.over(&v, t.Bytes)
	return old, err
}

// nicAtomic is Atomic where the path is not the CPU's.
func (e *Engine) nicAtomic(op Atom, t Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	n := e.nic()
	switch n.wayTo(r, op, t) {
	case byMessage:
		return n.askedAtomic(op, t, r, off, x, y)
	case nowhere:
		return 0, transport.NewOpError(op.String(), r.Rank, errNoAtomics)
	case native:
		if op == CompareSwap {
			return n.atomic(transport.OpCompareSwap, r, off, x, y)
		}
		return n.atomic(transport.OpFetchAdd, r, off, x, 0)
	}
	if err := n.reach(op.String(), r, off, t.Bytes); err != nil {
		return 0, err
	}
	wordOff, shift, mask, err := locate(r, t, off)
	if err != nil {
		return 0, err
	}
	// What the NIC lacks is made of what it has: a compare-swap of the word around the element.
	word, err := e.nic().load64(r, wordOff)
	for err == nil {
		old := word >> shift & mask
		next := word&^(mask<<shift) | Combine(op, t.Kind, old, x, y)&mask<<shift
		if next == word && op == CompareSwap {
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
func (e *Engine) Accumulate(op Atom, t Elem, r *Remote, off int, src mem.Range) error {
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, src.Bytes)
		cpuAccumulate(op, t, r.Mapped.Slice(off, src.Bytes), src)
		return nil
	}
	if e.record == nil {
		return e.nicAccumulate(op, t, r, off, src)
	}
	v := e.record.visit(timeline.Transfer, "accumulate", r.Rank)
	err := e.nicAccumulate(op, t, r, off, src)
	e.record.over(&v, src.Bytes)
	return err
}

// nicAccumulate is Accumulate where the path is not the CPU's.
func (e *Engine) nicAccumulate(op Atom, t Elem, r *Remote, off int, src mem.Range) error {
	if n := e.nic(); n.wayTo(r, op, t) == byMessage || n.caps.AtomicsCPU && n.am != nil {
		return n.askedAccumulate(op, t, r, off, src)
	}
	for at := 0; at < src.Bytes; at += t.Bytes {
		if _, err := e.nicAtomic(op, t, r, off+at, src.Slice(at, t.Bytes).Bits(), 0); err != nil {
			return err
		}
	}
	return nil
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
func (n *nic) way(op Atom, t Elem) way {
	hardware := n.caps.Atomics64 && t.Bytes == 8 && t.Kind != reflect.Float64
	switch {
	case hardware && (op == Sum || op == CompareSwap):
		return native
	case n.am != nil && (n.caps.AtomicsCPU || !hardware):
		return byMessage
	case n.caps.Atomics64:
		return byWord
	default:
		return nowhere
	}
}

// wayTo is way for a member's part. Where that is registered in buckets, which the NIC may not reach at the moment, the
// owner's CPU does everything: the same for all who use that part.
func (n *nic) wayTo(r *Remote, op Atom, t Elem) way {
	if r.hosed != nil {
		return byMessage
	}
	return n.way(op, t)
}

func (r *Remote) cpuAtomics() bool { return r.Mapped.Bytes != 0 && !r.nicAtomics }

// locate returns the aligned 8-byte word around the element, and where in it the element is.
func locate(r *Remote, t Elem, off int) (wordOff int, shift uint, mask uint64, err error) {
	mask = ^uint64(0) >> (64 - 8*t.Bytes)
	inWord := int(r.raddr+uint64(off)) & 7
	if wordOff = off - inWord; wordOff < 0 || wordOff+8 > r.room {
		return 0, 0, 0, transport.NewOpError("atomic", r.Rank, errEdge)
	}
	return wordOff, uint(8 * inWord), mask, nil
}

var errEdge = fmt.Errorf("%w: an atomic narrower than 8 bytes at the edge of memory that does not begin and end on an "+
	"8-byte boundary; make the window's slice longer, or use Allocate", transport.ErrUnsupported)

// cpuAtomic performs op on mapped memory.
func cpuAtomic(op Atom, t Elem, m mem.Range, off int, x, y uint64) uint64 {
	switch t.Bytes {
	case 8:
		w := m.Word64(off)
		if op == Sum && t.Kind != reflect.Float64 {
			return w.Add(x) - x
		}
		for {
			old := w.Load()
			if w.CompareAndSwap(old, Combine(op, t.Kind, old, x, y)) {
				return old
			}
		}
	case 4:
		w := m.Word32(off)
		for {
			old := w.Load()
			if w.CompareAndSwap(old, uint32(Combine(op, t.Kind, uint64(old), x, y))) {
				return uint64(old)
			}
		}
	default:
		w, shift := m.Around32(off)
		mask := uint32(1)<<(8*t.Bytes) - 1
		for {
			word := w.Load()
			old := word >> shift & mask
			next := word&^(mask<<shift) | uint32(Combine(op, t.Kind, uint64(old), x, y))&mask<<shift
			if w.CompareAndSwap(word, next) {
				return uint64(old)
			}
		}
	}
}
