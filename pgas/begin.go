package pgas

import (
	"context"
	"iter"
	"slices"

	"gopgas/window"
)

// GetNB begins a Get of the elements from lo on, whoever owns them. dst belongs to the library until the handles are done, all of them or one after the
// other; where all memory is mapped that is so at once. It allocates the handles, and may wait for room on the NIC. Of a layout that deals out short blocks each travels by itself
// over a NIC, which takes far longer than a Get. (Global Arrays: NGA_NbGet.)
func (a *Array[T]) GetNB(lo int, dst []T) (window.Handles, error) {
	if err := a.check("get", lo, len(dst)); err != nil {
		return nil, err
	}
	return begun(slices.Values(a.d.pieces(lo, len(dst), nil)), dst, a.w.GetSectionsNB)
}

// PutNB begins a Put. src belongs to the library until the handles are done; the elements are visible at their owners after a Flush or Fence.
// (Global Arrays: NGA_NbPut.)
func (a *Array[T]) PutNB(lo int, src []T) (window.Handles, error) {
	if err := a.check("put", lo, len(src)); err != nil {
		return nil, err
	}
	if a.d.dealt() && a.d.p > 1 && min(a.d.length, a.d.n)*a.elemBytes() < shortRun {
		return a.putShortNB(lo, src)
	}
	return begun(slices.Values(a.d.pieces(lo, len(src), nil)), src, a.w.PutSectionsNB)
}

// copiesOnce is how many copies of dealtOnce bytes there are at a time of what one PutNB puts.
const copiesOnce = 16

// putShortNB begins to put the elements from lo on of a layout that deals out short blocks, as many at a time as a window packs. It has copies of them on their way: behind some it
// waits for the first ones.
func (a *Array[T]) putShortNB(lo int, src []T) (hs window.Handles, err error) {
	var calls []window.Handles // of those that may have copies
	for step := max(1, dealtOnce/a.elemBytes()); len(src) > 0 && err == nil; {
		n := min(step, len(src))
		var more window.Handles
		more, err = begun(slices.Values(a.d.pieces(lo, n, nil)), src[:n], a.w.PutSectionsNB)
		hs, calls = append(hs, more...), append(calls, more)
		if err == nil && len(calls) == copiesOnce {
			err, calls = calls[0].Wait(context.Background()), calls[1:]
		}
		lo, src = lo+n, src[n:]
	}
	if err != nil {
		_ = hs.Wait(context.Background())
		return nil, err
	}
	return hs, nil
}

// begun begins the transfer of pieces, some at a time. On an error nothing is under way.
func begun[T any](pieces iter.Seq[window.Piece], near []T, sections func([]T, []window.Piece) (window.Handles, error)) (hs window.Handles, err error) {
	some := make([]window.Piece, 0, together)
	start := func() bool {
		var more window.Handles
		more, err = sections(near, some)
		hs, some = append(hs, more...), some[:0]
		return err == nil
	}
	for p := range pieces {
		if some = append(some, p); len(some) == together && !start() {
			break
		}
	}
	if err == nil && len(some) > 0 {
		start()
	}
	if err != nil {
		_ = hs.Wait(context.Background())
		return nil, err
	}
	return hs, nil
}

// pieces appends to ps what n elements from lo on, which exist, are cut into by owner. Of a layout that is dealt out an owner's whole blocks are one piece: they lie
// next to each other in its part, and p blocks apart in the array. So there are two more than owners, at most.
func (d dist) pieces(lo, n int, ps []window.Piece) []window.Piece {
	add := func(at, rows, cols int) {
		member, disp := d.owner(at)
		ps = append(ps, window.Piece{Target: member, Disp: disp, Near: at - lo, Section: window.Section{
			Rows: rows, Cols: cols, Stride: cols, Step: 1, NearStride: cols * d.p, NearStep: 1,
		}})
	}
	for at, end := lo, lo+n; at < end; {
		blocks := 0 // whole ones from here on
		if d.dealt() && d.p > 1 && at%d.length == 0 {
			blocks = (end - at) / d.length
		}
		if blocks == 0 {
			k := min(d.run(at), end-at)
			add(at, 1, k)
			at += k
			continue
		}
		for q := range min(blocks, d.p) {
			add(at+q*d.length, (blocks-q+d.p-1)/d.p, d.length)
		}
		at += blocks * d.length
	}
	return ps
}
