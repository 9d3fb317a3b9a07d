package transporttest

import (
	"encoding/binary"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// gatherInOrder is softnic.Gather for a NIC that promises order within a write: whole words of dst are atomic stores, from the
// first to the last, so that whoever sees a later one sees the earlier ones.
func gatherInOrder(dst mem.Range, src []transport.SGE) {
	if softnic.IsWord(dst) {
		softnic.Gather(dst, src)
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
