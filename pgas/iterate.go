package pgas

import (
	"context"
	"iter"
	"slices"

	"gopgas/internal/sched"
	"gopgas/window"
)

// Mine iterates over the elements that this rank owns, with their global indices; the pointers allow to change them in
// place. Owner computes.
//
//	for i, x := range a.Mine() {
//		*x = float64(i)
//	}
func (a *Array[T]) Mine() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		local, me := a.Local(), a.Team().Rank()
		for disp := range local {
			if !yield(a.d.index(me, disp), &local[disp]) {
				return
			}
		}
	}
}

// prefetchBytes is how much All fetches at once; two such pieces are under way.
const prefetchBytes = 64 << 10

// All iterates over the elements [lo, hi) in order, whoever owns them, and fetches ahead. The values are what they
// were when their piece was fetched. Where a get fails, or ctx ends, the iteration ends with that error beside a zero value.
//
//	for x, err := range a.All(ctx, 0, a.Len()) {
func (a *Array[T]) All(ctx context.Context, lo, hi int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if err := a.check("get", lo, hi-lo); err != nil {
			yield(zero, err)
			return
		}
		step := max(1, prefetchBytes/a.elemBytes())
		var pipe [2]piece[T]
		defer func() { // the buffers are of no use to anybody else
			for i := range pipe {
				pipe[i].drain(ctx)
			}
		}()
		pipe[0].start(a, lo, min(step, hi-lo))
		for at, turn := lo, 0; at < hi; at, turn = at+step, 1-turn {
			if err := sched.Ended(ctx); err != nil { // mapped memory has nothing to wait for
				yield(zero, err)
				return
			}
			if next := at + step; next < hi {
				pipe[1-turn].start(a, next, min(step, hi-next))
			}
			values, err := pipe[turn].wait(ctx)
			if err != nil {
				yield(zero, err)
				return
			}
			for _, v := range values {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// lookout asks a context once in so many elements whether it has ended. The zero left asks at once.
type lookout struct {
	ctx  context.Context
	left int
}

// next is called before n elements, and returns the cause of a context that is found to have ended.
func (l *lookout) next(n int) error {
	if l.left > 0 {
		l.left -= n
		return nil
	}
	l.left = wholePiece - n
	return sched.Ended(l.ctx)
}

// piece is a run of elements being fetched.
type piece[T any] struct {
	buf     []T
	dealt   []T            // what owners have of a layout that is dealt out, one after the other; buf has it when it is there
	owners  []window.Piece // of that
	handles []window.Handle
	err     error
}

// start begins to fetch n elements from lo on.
func (p *piece[T]) start(a *Array[T], lo, n int) {
	if cap(p.buf) < n {
		p.buf = make([]T, n)
	}
	p.buf, p.handles, p.err = p.buf[:n], p.handles[:0], nil
	p.owners = a.d.pieces(lo, n, p.owners[:0])
	dst, spread := p.buf, a.d.dealt() && a.d.p > 1
	if spread {
		p.dealt = slices.Grow(p.dealt[:0], n)[:n]
		dst = p.dealt
	}
	for _, o := range p.owners { // of any layout the elements of one are next to each other in its part
		k := o.Rows * o.Cols
		h, err := a.w.GetNB(o.Target, o.Disp, dst[:k])
		if err != nil {
			p.err = err
			return
		}
		p.handles, dst = append(p.handles, h), dst[k:] // one that is done may have failed
	}
	if !spread {
		p.owners = p.owners[:0]
	}
}

// wait returns the elements when they are there.
func (p *piece[T]) wait(ctx context.Context) ([]T, error) {
	for _, h := range p.handles {
		if err := h.Wait(ctx); err != nil {
			return nil, err
		}
	}
	p.handles = p.handles[:0]
	if p.err != nil {
		return nil, p.err
	}
	from := p.dealt
	for _, o := range p.owners {
		for row := range o.Rows {
			from = from[copy(p.buf[o.Near+row*o.NearStride:][:o.Cols], from):]
		}
	}
	return p.buf, nil
}

// drain waits for what is still under way, as long as ctx lasts; then the library keeps the buffer until that has ended.
func (p *piece[T]) drain(ctx context.Context) {
	for _, h := range p.handles {
		_ = h.Wait(ctx)
	}
}
