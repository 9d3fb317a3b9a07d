package softnic

import (
	"encoding/binary"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Gather copies the pieces of src, one after another, to dst, which is as long as they are together. Eight or
// four bytes on their boundary become one atomic store: they may be a flag that a program polls.
func Gather(dst mem.Range, src []transport.SGE) {
	if IsWord(dst) {
		StoreWord(dst, gatherWord(src, dst.Bytes))
		return
	}
	Keep(dst, src)
}

// Keep copies the pieces of src, one after another, to dst, a buffer of the NIC's own that nobody else looks at
// and that is at least as long.
func Keep(dst mem.Range, src []transport.SGE) {
	at := dst.Data()
	for i := range src {
		at = at[copyOut(at, src[i].Mem):]
	}
}

// Scatter copies src to the pieces of dst, one after another, which are together as long as src.
func Scatter(dst []transport.SGE, src mem.Range) {
	if IsWord(src) {
		ScatterWord(dst, LoadWord(src), src.Bytes)
		return
	}
	from := src.Data()
	for i := range dst {
		from = from[mem.Copy(dst[i].Mem.Data(), from):]
	}
}

// ScatterWord stores the first n bytes of v, 4 or 8, in the pieces of dst.
func ScatterWord(dst []transport.SGE, v uint64, n int) {
	if len(dst) == 1 && IsWord(dst[0].Mem) {
		StoreWord(dst[0].Mem, v)
		return
	}
	var b [8]byte
	if n == 8 {
		binary.NativeEndian.PutUint64(b[:], v)
	} else {
		binary.NativeEndian.PutUint32(b[:], uint32(v))
	}
	from := b[:n]
	for i := range dst {
		from = from[copy(dst[i].Mem.Data(), from):]
	}
}

// Total returns the bytes of a list.
func Total(list []transport.SGE) int {
	n := 0
	for i := range list {
		n += list[i].Mem.Bytes
	}
	return n
}

// Apply performs an atomic operation on a word of 8 bytes with the CPU's instruction, and returns the old value.
func Apply(kind transport.Kind, word mem.Range, arg0, arg1 uint64) uint64 {
	w := word.Word64(0)
	if kind == transport.OpFetchAdd {
		return w.Add(arg0) - arg0
	}
	for {
		old := w.Load()
		if old != arg0 || w.CompareAndSwap(old, arg1) {
			return old
		}
	}
}

// IsWord reports whether r is a word that others may use with atomics.
func IsWord(r mem.Range) bool {
	return r.Bytes == 8 && r.Addr()&7 == 0 || r.Bytes == 4 && r.Addr()&3 == 0
}

// LoadWord loads a word.
func LoadWord(r mem.Range) uint64 {
	if r.Bytes == 8 {
		return r.Word64(0).Load()
	}
	return uint64(r.Word32(0).Load())
}

// StoreWord stores a word.
func StoreWord(r mem.Range, v uint64) {
	if r.Bytes == 8 {
		r.Word64(0).Store(v)
	} else {
		r.Word32(0).Store(uint32(v))
	}
}

// copyOut copies r to the beginning of dst; a source that is a word is read with one atomic load.
func copyOut(dst []byte, r mem.Range) int {
	if !IsWord(r) {
		return mem.Copy(dst, r.Data())
	}
	if r.Bytes == 8 {
		binary.NativeEndian.PutUint64(dst, LoadWord(r))
	} else {
		binary.NativeEndian.PutUint32(dst, uint32(LoadWord(r)))
	}
	return r.Bytes
}

func gatherWord(src []transport.SGE, n int) uint64 {
	if len(src) == 1 && IsWord(src[0].Mem) {
		return LoadWord(src[0].Mem)
	}
	var b [8]byte
	at := b[:]
	for i := range src {
		at = at[copyOut(at, src[i].Mem):]
	}
	if n == 8 {
		return binary.NativeEndian.Uint64(b[:])
	}
	return uint64(binary.NativeEndian.Uint32(b[:]))
}
