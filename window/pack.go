package window

import (
	"context"
	"errors"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
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

// packing is how many elements of pieces are to be packed, and how many runs the others have; count is how many all have.
func (w *core) packing(pieces []Piece, count int) (n, others int) {
	for i := range pieces {
		if p := &pieces[i]; p.packs(w.elem.Bytes) {
			n += p.Rows * p.Cols
			count -= p.runs()
		}
	}
	if n > packMost/w.elem.Bytes {
		return 0, 0
	}
	return n, count
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

// pack moves pieces, of which n elements are packed; the others have so many runs.
func (w *Window[T]) pack(put bool, op string, near []T, pieces []Piece, n, others int) error {
	b := take(&w.kept, n)
	if w.c.race != nil {
		near = mem.Slice[T](w.c.near(mem.Of(near))) // the check is told what is used of it
	}
	for len(pieces) > 0 {
		passed, err := w.packSome(put, op, near, pieces, b.s, others)
		if err != nil {
			return err // and nobody uses that buffer again
		}
		pieces, others = pieces[passed:], 0
	}
	w.kept.Store(b)
	return nil
}

// packSome moves the first of the pieces that are packed, as many as are under way at once, and beside them the others, if there are any left. It returns how many pieces it has passed.
func (w *Window[T]) packSome(put bool, op string, near []T, pieces []Piece, buf []T, others int) (passed int, err error) {
	var hs [packOnce]Handle
	n := 0
	for free := buf; passed < len(pieces) && n < packOnce && err == nil; passed++ {
		p := &pieces[passed]
		if !p.packs(w.c.elem.Bytes) {
			continue
		}
		part := free[:p.Rows*p.Cols]
		free = free[len(part):]
		hs[n], err = w.packOne(put, op, near, p, part)
		n++
	}
	if err == nil && others > 0 {
		err = w.c.moveOthers(put, op, others, pieces, mem.Of(near))
	}
	for i := range hs[:n] { // the buffer is the library's until all have ended
		if ended := hs[i].Wait(context.Background()); err == nil {
			err = ended
		}
	}
	for i := 0; i < passed && err == nil && !put; i++ {
		if p := &pieces[i]; p.packs(w.c.elem.Bytes) {
			move(p.Rows, p.Cols, near, p.Near, p.NearStride, p.NearStep, buf, 0, p.Cols, 1)
			buf = buf[p.Rows*p.Cols:]
		}
	}
	return passed, err
}

// packOne begins the transfer of a piece by way of part.
func (w *Window[T]) packOne(put bool, op string, near []T, p *Piece, part []T) (Handle, error) {
	if w.c.race != nil {
		w.c.checkPacked(put, op, p, mem.Of(near))
	}
	if put {
		move(p.Rows, p.Cols, part, 0, p.Cols, 1, near, p.Near, p.NearStride, p.NearStep)
	}
	switch {
	case w.c.race != nil:
		return w.c.packedNB(put, op, p, mem.Of(part))
	case put:
		return w.PutNB(p.Target, p.Disp, part)
	default:
		return w.GetNB(p.Target, p.Disp, part)
	}
}

// moveOthers asks the engine for the pieces that are not packed, of so many runs.
func (w *core) moveOthers(put bool, op string, count int, pieces []Piece, near mem.Range) error {
	if err := w.gonePieces(op, pieces); err != nil {
		return err
	}
	c := cursor{pieces: pieces, unpacked: true}
	return w.moveRuns(put, op, count, func(i int) proto.Run { return c.run(w, i) }, near)
}

// packNB begins to put pieces, of which so many elements are packed: into a buffer of the call's own, which the NIC keeps as long as it needs it.
func (w *Window[T]) packNB(src []T, pieces []Piece, n, others int) (hs Handles, err error) {
	const op = "put-sections"
	buf := make([]T, n)
	for i := range pieces {
		p := &pieces[i]
		if !p.packs(w.c.elem.Bytes) {
			continue
		}
		part := buf[:p.Rows*p.Cols]
		buf = buf[len(part):]
		h, err := w.packOne(true, op, src, p, part)
		if err != nil {
			return nil, errors.Join(err, hs.Wait(context.Background())) // nothing is under way then
		}
		hs = append(hs, h)
	}
	if others > 0 {
		more, err := w.c.beginPieces(true, op, mem.Of(src), cursor{pieces: pieces, unpacked: true}, others)
		if err != nil {
			return nil, errors.Join(err, hs.Wait(context.Background()))
		}
		hs = append(hs, more...)
	}
	return hs, nil
}
