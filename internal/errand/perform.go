package errand

import (
	"encoding/binary"
	"reflect"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
)

// Verdict says how an errand went. It is the status of an active message's answer.
type Verdict = uint8

// The verdicts.
const (
	OK Verdict = iota
	Refused
	Malformed
)

// Perform does an errand to whole, the memory that its key names, and writes the answer, of which it returns the length, to out.
// It waits for nothing and allocates nothing.
func Perform(k Kind, args Args, payload []byte, whole mem.Range, out []byte) (int, Verdict) {
	addr := args[1]
	switch k {
	case ToAtomic:
		return single(args, payload, whole, out)
	case ToAccumulate, ToGetAccumulate:
		return elements(k, args, payload, whole, out)
	case ToList:
		return list(args, payload, whole, out)
	case ToStore:
		part, ok := Within(whole, addr, len(payload))
		if !ok {
			return 0, Refused
		}
		Store(part, mem.Of(payload))
		return 0, OK
	case ToLoad:
		if args[2] > uint64(len(out)) {
			return 0, Malformed
		}
		part, ok := Within(whole, addr, int(args[2]))
		if !ok {
			return 0, Refused
		}
		Load(mem.Of(out[:part.Bytes]), part)
		return part.Bytes, OK
	}
	return 0, Malformed
}

// single performs an atomic on one element.
func single(args Args, payload []byte, whole mem.Range, out []byte) (int, Verdict) {
	if len(payload) != 3 || len(out) < 8 {
		return 0, Malformed
	}
	op, t := atom.Op(payload[0]), atom.Elem{Kind: reflect.Kind(payload[1]), Bytes: int(payload[2])}
	part, ok := Within(whole, args[1], t.Bytes)
	if !ok || t.Check(op) != nil || !t.Fits(args[1]) {
		return 0, Refused
	}
	binary.LittleEndian.PutUint64(out, atom.Do(op, t, part, 0, args[2], args[3]))
	return 8, OK
}

// elements combines elements that lie one behind the other.
func elements(k Kind, args Args, payload []byte, whole mem.Range, out []byte) (int, Verdict) {
	op, t := unpack(args[2])
	part, ok := Within(whole, args[1], len(payload))
	if !ok || op >= atom.CompareSwap || t.Check(op) != nil || !t.Fits(args[1]) || len(payload)%t.Bytes != 0 {
		return 0, Refused
	}
	if k == ToAccumulate {
		atom.Accumulate(op, t, part, mem.Of(payload))
		return 0, OK
	}
	if len(payload) > len(out) {
		return 0, Malformed
	}
	atom.FetchAccumulate(op, t, part, mem.Of(payload), mem.Of(out[:len(payload)]))
	return len(payload), OK
}

// list combines the elements of a list: all of them, or none if it asks for what it may not.
func list(args Args, payload []byte, whole mem.Range, out []byte) (int, Verdict) {
	op, t := unpack(args[2])
	fetch := args[2]&fetches != 0
	if op >= atom.CompareSwap || t.Check(op) != nil || !t.Fits(0) || len(payload)%(8+t.Bytes) != 0 {
		return 0, Malformed
	}
	n := len(payload) / (8 + t.Bytes)
	if fetch && n*t.Bytes > len(out) {
		return 0, Malformed
	}
	for j := range n {
		addr := binary.LittleEndian.Uint64(payload[8*j:])
		if _, ok := Within(whole, addr, t.Bytes); !ok || !t.Fits(addr) {
			return 0, Refused
		}
	}
	operands, olds := mem.Of(payload[8*n:]), mem.Of(out)
	for j := range n {
		off := int(binary.LittleEndian.Uint64(payload[8*j:]) - whole.Addr())
		old := atom.Do(op, t, whole, off, operands.Slice(j*t.Bytes, t.Bytes).Bits(), 0)
		if fetch {
			olds.Slice(j*t.Bytes, t.Bytes).SetBits(old)
		}
	}
	if !fetch {
		return 0, OK
	}
	return n * t.Bytes, OK
}
