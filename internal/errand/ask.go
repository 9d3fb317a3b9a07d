package errand

import (
	"encoding/binary"
	"reflect"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
)

// Kind is what is asked. Kinds are numbers of handlers, from 1 on.
type Kind uint8

// The kinds.
const (
	ToAtomic        Kind = iota + 1 // an atomic on one element. Answer: the old value
	ToAccumulate                    // combine elements. No answer
	ToGetAccumulate                 // the same. Answer: the old elements
	ToStore                         // store bytes. No answer
	ToLoad                          // load bytes. Answer: these
	ToList                          // combine elements of a list. Answer: the old elements, or nothing
	Kinds                           // the first number that is none
)

// Args are the arguments of a message: key, address, and two that depend on the kind.
type Args = [4]uint64

// ForAtomic is ToAtomic of an element, with its operands; what is its payload.
func ForAtomic(op atom.Op, t atom.Elem, key, addr, x, y uint64) (args Args, what [3]byte) {
	return Args{key, addr, x, y}, [3]byte{byte(op), byte(t.Kind), byte(t.Bytes)}
}

// ForElements is ToAccumulate or ToGetAccumulate; the payload is the operands.
func ForElements(op atom.Op, t atom.Elem, key, addr uint64) Args { return Args{key, addr, pack(op, t)} }

// ForBytes is ToStore, whose payload is the bytes, or ToLoad of so many.
func ForBytes(key, addr uint64, bytes int) Args { return Args{key, addr, uint64(bytes)} }

// fetches marks a list whose old values are wanted.
const fetches = 1 << 24

// ForList is ToList; fetch says whether the old elements are wanted. Its payload is ListBytes long and written by SetEntry.
func ForList(op atom.Op, t atom.Elem, key uint64, fetch bool) Args {
	a := Args{key, 0, pack(op, t)}
	if fetch {
		a[2] |= fetches
	}
	return a
}

// ListBytes is the size of a list of n elements: their addresses, then their operands.
func ListBytes(t atom.Elem, n int) int { return n * (8 + t.Bytes) }

// SetEntry writes element j of a list of n.
func SetEntry(list mem.Range, t atom.Elem, n, j int, addr, x uint64) {
	binary.LittleEndian.PutUint64(list.Slice(8*j, 8).Data(), addr)
	list.Slice(8*n+j*t.Bytes, t.Bytes).SetBits(x)
}

func pack(op atom.Op, t atom.Elem) uint64 {
	return uint64(op) | uint64(t.Kind)<<8 | uint64(t.Bytes)<<16
}

func unpack(v uint64) (atom.Op, atom.Elem) {
	return atom.Op(v), atom.Elem{Kind: reflect.Kind(v >> 8 & 0xff), Bytes: int(v >> 16 & 0xff)}
}
