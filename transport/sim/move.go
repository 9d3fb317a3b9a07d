package sim

import (
	"encoding/binary"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// isWord reports whether r is an aligned word of 8 or 4 bytes, which others may use with atomics.
func isWord(r mem.Range) bool {
	return r.Bytes == 8 && r.Addr()&7 == 0 || r.Bytes == 4 && r.Addr()&3 == 0
}

// put stores b, as one atomic store where dst is a word.
func put(dst mem.Range, b []byte) {
	switch {
	case !isWord(dst):
		copy(dst.Data(), b)
	case dst.Bytes == 8:
		dst.Word64(0).Store(binary.NativeEndian.Uint64(b))
	default:
		dst.Word32(0).Store(binary.NativeEndian.Uint32(b))
	}
}

// load copies src to b, with one atomic load where src is a word.
func load(b []byte, src mem.Range) {
	switch {
	case !isWord(src):
		copy(b, src.Data())
	case src.Bytes == 8:
		binary.NativeEndian.PutUint64(b, src.Word64(0).Load())
	default:
		binary.NativeEndian.PutUint32(b, src.Word32(0).Load())
	}
}

// gather copies dst.Bytes bytes from byte off of the list on to dst.
func gather(dst mem.Range, list []transport.SGE, off int) {
	var short [8]byte
	word := isWord(dst)
	at := dst.Data()
	if word {
		at = short[:dst.Bytes]
	}
	for i := range list {
		m := list[i].Mem
		if off >= m.Bytes {
			off -= m.Bytes
			continue
		}
		n := min(m.Bytes-off, len(at))
		load(at[:n], m.Slice(off, n))
		if at, off = at[n:], 0; len(at) == 0 {
			break
		}
	}
	if word {
		put(dst, short[:dst.Bytes])
	}
}

// scatter copies src to the pieces of the list, one after another.
func scatter(list []transport.SGE, src mem.Range) {
	var short [8]byte
	from := short[:]
	if isWord(src) {
		load(short[:src.Bytes], src)
	} else {
		from = src.Data()
	}
	for i := range list {
		m := list[i].Mem
		if m.Bytes > 0 {
			put(m, from[:m.Bytes])
			from = from[m.Bytes:]
		}
	}
}

// apply performs an atomic on a word and returns the old value.
func apply(word mem.Range, op *transport.Op) uint64 {
	w := word.Word64(0)
	if op.Kind == transport.OpFetchAdd {
		return w.Add(op.Arg0) - op.Arg0
	}
	for {
		old := w.Load()
		if old != op.Arg0 || w.CompareAndSwap(old, op.Arg1) {
			return old
		}
	}
}

// storeWord stores the old value of an atomic, at any address.
func storeWord(dst mem.Range, v uint64) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], v)
	put(dst, b[:])
}
