package transporttest

import (
	"encoding/binary"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// gather copies the pieces of src, one after another, to dst, which is as long as they are together. Eight or
// four bytes on their boundary become one atomic store: a flag.
func gather(dst mem.Range, src []transport.SGE) {
	if isWord(dst) {
		storeWord(dst, gatherWord(src, dst.Bytes))
		return
	}
	at := dst.Data()
	for i := range src {
		at = at[copyBytes(at, src[i].Mem):]
	}
}

// gatherInOrder is gather for a NIC that promises order within a write: whole words of dst are atomic stores, from the
// first to the last, so that whoever sees a later one sees the earlier ones.
func gatherInOrder(dst mem.Range, src []transport.SGE) {
	if isWord(dst) {
		storeWord(dst, gatherWord(src, dst.Bytes))
		return
	}
	var from []byte
	next := func(out []byte) {
		for len(out) > 0 {
			if len(from) == 0 {
				from, src = src[0].Mem.Data(), src[1:]
				continue
			}
			k := copy(out, from)
			out, from = out[k:], from[k:]
		}
	}
	for at := 0; at < dst.Bytes; {
		if (dst.Addr()+uint64(at))&7 == 0 && dst.Bytes-at >= 8 {
			var word [8]byte
			next(word[:])
			dst.Word64(at).Store(binary.NativeEndian.Uint64(word[:]))
			at += 8
			continue
		}
		next(dst.Slice(at, 1).Data())
		at++
	}
}

// scatter copies src to the pieces of dst, one after another, which are together as long as src.
func scatter(dst []transport.SGE, src mem.Range) {
	if isWord(src) {
		scatterWord(dst, loadWord(src), src.Bytes)
		return
	}
	from := src.Data()
	for i := range dst {
		from = from[copy(dst[i].Mem.Data(), from):]
	}
}

// isWord reports whether r is a word that others may use with atomics.
func isWord(r mem.Range) bool {
	return r.Bytes == 8 && r.Addr()&7 == 0 || r.Bytes == 4 && r.Addr()&3 == 0
}

func loadWord(r mem.Range) uint64 {
	if r.Bytes == 8 {
		return r.Word64(0).Load()
	}
	return uint64(r.Word32(0).Load())
}

func storeWord(r mem.Range, v uint64) {
	if r.Bytes == 8 {
		r.Word64(0).Store(v)
	} else {
		r.Word32(0).Store(uint32(v))
	}
}

// copyBytes copies r to the beginning of dst; a source that is a word is read with one atomic load.
func copyBytes(dst []byte, r mem.Range) int {
	if !isWord(r) {
		return copy(dst, r.Data())
	}
	if r.Bytes == 8 {
		binary.NativeEndian.PutUint64(dst, loadWord(r))
	} else {
		binary.NativeEndian.PutUint32(dst, uint32(loadWord(r)))
	}
	return r.Bytes
}

func gatherWord(src []transport.SGE, n int) uint64 {
	if len(src) == 1 && isWord(src[0].Mem) {
		return loadWord(src[0].Mem)
	}
	var b [8]byte
	at := b[:]
	for i := range src {
		at = at[copyBytes(at, src[i].Mem):]
	}
	if n == 8 {
		return binary.NativeEndian.Uint64(b[:])
	}
	return uint64(binary.NativeEndian.Uint32(b[:]))
}

func scatterWord(dst []transport.SGE, v uint64, n int) {
	if len(dst) == 1 && isWord(dst[0].Mem) {
		storeWord(dst[0].Mem, v)
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

// total returns the bytes of a list.
func total(list []transport.SGE) int {
	n := 0
	for i := range list {
		n += list[i].Mem.Bytes
	}
	return n
}
