package window

import (
	"context"
	"errors"
	"sync/atomic"

	"gopgas/internal/mem"
)

// Short rows that lie one behind the other in the target's part are a single transfer there, by way of a buffer here: out of it they are copied to where they belong, or into it
// before. So travel the elements of a layout that deals them out. An operation of the NIC for each row would take longer than the copy by far. (MPI: packing a derived type.)
const (
	packRow  = 512     // bytes: rows that are as long go by themselves
	packRows = 8       // fewer do, too
	packMost = 1 << 20 // bytes of a call: where there are more each row goes by itself
	packOnce = 16      // transfers under way at once
)

// packs reports whether a piece is packed, of elements of so many bytes.
func (p *Piece) packs(size int) bool {
	return p.Rows >= packRows && p.Cols > 0 && p.Stride == p.Cols && (p.Cols == 1 || p.Step == 1) && p.Cols*size < packRow && p.NearStride != p.Cols
}

// packing is how many elements of pieces are to be packed.
func (w *core) packing(pieces []Piece) (n int) {
	for i := range pieces {
		if p := &pieces[i]; p.packs(w.elem.Bytes) {
			n += p.Rows * p.Cols
		}
	}
	if n > packMost/w.elem.Bytes {
		return 0
	}
	return n
}

// packBuffer is a buffer that a window keeps for calls to come.
type packBuffer[T any] struct{ s []T }

// take returns the buffer, if it is as long and nobody has it, or another one.
func take[T any](kept *atomic.Pointer[packBuffer[T]], n int) *packBuffer[T] {
	b := kept.Swap(nil)
	if b == nil {
		b = new(packBuffer[T])
	}
	if len(b.s) < n {
		b.s = make([]T, n)
	}
	return b
}

// pack moves pieces, of which so many elements are packed.
func (w *Window[T]) pack(put bool, op string, near []T, pieces []Piece, n int) error {
	b := take(&w.kept, n)
	if w.c.race != nil {
		near = mem.Slice[T](w.c.near(mem.Of(near))) // the check is told what is used of it
	}
	for len(pieces) > 0 {
		some := pieces[:min(packOnce, len(pieces))]
		if err := w.packSome(put, op, near, some, b.s); err != nil {
			return err // and nobody uses that buffer again
		}
		pieces = pieces[len(some):]
	}
	w.kept.Store(b)
	return nil
}

func (w *Window[T]) packSome(put bool, op string, near []T, some []Piece, buf []T) (err error) {
	var hs [packOnce]Handle
	at := 0
	for i := 0; i < len(some) && err == nil; i++ {
		p := &some[i]
		if !p.packs(w.c.elem.Bytes) {
			err = w.c.movePieces(put, op, p.runs(), some[i:i+1], mem.Of(near)) // the others are under way meanwhile
			continue
		}
		part := buf[at : at+p.Rows*p.Cols]
		at += len(part)
		if w.c.race != nil {
			w.c.checkPacked(put, op, p, mem.Of(near))
		}
		if put {
			move(p.Rows, p.Cols, part, 0, p.Cols, 1, near, p.Near, p.NearStride, p.NearStep)
		}
		switch {
		case w.c.race != nil:
			hs[i], err = w.c.packedNB(put, op, p, mem.Of(part))
		case put:
			hs[i], err = w.PutNB(p.Target, p.Disp, part)
		default:
			hs[i], err = w.GetNB(p.Target, p.Disp, part)
		}
	}
	for i := range some { // the buffer is the library's until all have ended
		if ended := hs[i].Wait(context.Background()); err == nil {
			err = ended
		}
	}
	at = 0
	for i := 0; i < len(some) && err == nil && !put; i++ {
		if p := &some[i]; p.packs(w.c.elem.Bytes) {
			move(p.Rows, p.Cols, near, p.Near, p.NearStride, p.NearStep, buf, at, p.Cols, 1)
			at += p.Rows * p.Cols
		}
	}
	return err
}

// packNB begins to put pieces, of which so many elements are packed: into a buffer of the call's own, which the NIC keeps as long as it needs it.
func (w *Window[T]) packNB(src []T, pieces []Piece, n int) (hs Handles, err error) {
	if _, err := w.c.pieces("put-sections", len(src), pieces); err != nil {
		return nil, err
	}
	buf := make([]T, n)
	for i := range pieces {
		var more Handles
		if p := &pieces[i]; p.packs(w.c.elem.Bytes) {
			part := buf[:p.Rows*p.Cols]
			buf = buf[len(part):]
			move(p.Rows, p.Cols, part, 0, p.Cols, 1, src, p.Near, p.NearStride, p.NearStep)
			var h Handle
			h, err = w.PutNB(p.Target, p.Disp, part)
			more = Handles{h}
		} else {
			more, err = w.c.beginSections(true, "put-sections", mem.Of(src), pieces[i:i+1])
		}
		if err != nil {
			return nil, errors.Join(err, hs.Wait(context.Background())) // nothing is under way then
		}
		hs = append(hs, more...)
	}
	return hs, nil
}
