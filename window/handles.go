package window

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Handles are transfers in flight that belong together. None at all are done. They are used by one goroutine at a time.
type Handles []Handle

// Done reports whether all have ended, in success or in error.
func (hs Handles) Done() bool {
	for _, h := range hs {
		if !h.Done() {
			return false
		}
	}
	return true
}

// Wait returns when all have ended, with their errors the first time it is asked. When ctx ends first it returns ctx's cause,
// and the transfers go on: their buffers stay the library's until Done. ctx may be nil.
func (hs Handles) Wait(ctx context.Context) error {
	var errs []error
	for _, h := range hs {
		err := h.Wait(ctx)
		if err != nil {
			errs = append(errs, err)
		}
		if err != nil && ctx != nil && ctx.Err() != nil {
			break // the others would only say so too
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// PutSectionNB begins a PutSection. src belongs to the library until the handles are done.
func (w *Window[T]) PutSectionNB(target, disp int, src []T, s Section) (Handles, error) {
	return w.PutSectionsNB(src, []Piece{{Target: target, Disp: disp, Section: s}})
}

// GetSectionNB begins a GetSection. dst belongs to the library until the handles are done.
func (w *Window[T]) GetSectionNB(target, disp int, dst []T, s Section) (Handles, error) {
	return w.GetSectionsNB(dst, []Piece{{Target: target, Disp: disp, Section: s}})
}

// PutSectionsNB begins a PutSections. src belongs to the library until the handles are done; what is short is copied on the way, so
// that there is none for it. It may wait for room on the NIC, and allocates a handle for each long row, and for what it packs as PutSections does a buffer and a handle for each piece.
func (w *Window[T]) PutSectionsNB(src []T, pieces []Piece) (Handles, error) {
	if w.c.direct.Load() != 0 {
		return nil, w.PutSections(src, pieces)
	}
	const op = "put-sections"
	count, err := w.c.pieces(op, len(src), pieces)
	if err != nil || count == 0 {
		return nil, err
	}
	if w.c.race == nil { // it watches the source itself until the handles are done
		if n, others := w.c.packing(pieces, count); n > 0 {
			return w.packNB(src, pieces, n, others)
		}
	}
	return w.c.beginPieces(true, op, mem.Of(src), cursor{pieces: pieces}, count)
}

// GetSectionsNB begins a GetSections. dst belongs to the library until the handles are done. It may wait for room on the NIC, and
// allocates a handle for each long row and each stretch of short ones from one target. On an error nothing is under way.
func (w *Window[T]) GetSectionsNB(dst []T, pieces []Piece) (Handles, error) {
	if w.c.direct.Load() != 0 {
		return nil, w.GetSections(dst, pieces)
	}
	const op = "get-sections"
	count, err := w.c.pieces(op, len(dst), pieces)
	if err != nil || count == 0 {
		return nil, err
	}
	return w.c.beginPieces(false, op, mem.Of(dst), cursor{pieces: pieces}, count)
}

// beginPieces begins the transfers of the pieces of c, which were checked and have so many runs; near is the caller's end.
func (w *core) beginPieces(put bool, op string, near mem.Range, c cursor, count int) (Handles, error) {
	if err := w.gonePieces(op, c.pieces); err != nil {
		return nil, err
	}
	near = w.near(near)
	run := func(i int) proto.Run { return c.run(w, i) }
	switch {
	case w.race != nil:
		return w.checkedRunsNB(put, count, run, near)
	case put:
		return w.e.PutRunsNB(op, count, run, near, nil)
	default:
		return w.e.GetRunsNB(op, count, run, near, nil)
	}
}
