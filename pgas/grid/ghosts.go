package grid

import "context"

// UpdateGhosts renews the ghost cells: each member gets its frame from those who own the elements, corners included unless Config.Faces leaves
// them out, from as many blocks as the frame reaches across. Ghost cells outside an array that is not periodic stay as they are. Collective; it
// is a Fence before, and waits until all have their frames. The first call allocates.
func (a *Array[T]) UpdateGhosts(ctx context.Context) error {
	return a.Team().Abandon("update-ghosts", a.updateGhosts(ctx))
}

func (a *Array[T]) updateGhosts(ctx context.Context) error {
	if err := a.Fence(ctx); err != nil {
		return err
	}
	if a.frame == nil {
		for _, s := range a.slabs(&a.mine) {
			a.frame = a.sections(a.frame, &s.lines, s.from, s.near)
		}
	}
	if err := a.w.GetSections(a.w.Local(), a.frame); err != nil {
		return err
	}
	return a.Team().Barrier(ctx) // from here on the elements may change
}

// slab is a part of a frame: which elements it shows, where in the member's part the first one is, and how far apart neighbours lie there.
type slab struct {
	lines lines
	from  int
	near  dims
}

// slabs cuts the frame of a block into two for each dimension, before the block and behind it. Those of the first dimensions have the corners,
// if there are any, so that the last one's, in which few elements follow each other, are the smallest. A block without elements has no frame.
func (l *layout) slabs(mine *dims) (out []slab) {
	by, _ := l.strides(mine)
	for d := range l.n {
		for _, behind := range [2]bool{false, true} {
			s := slab{lines: lines{len: 1}, near: by}
			for e := range l.n {
				lo, hi, g := l.starts[e][mine[e]], l.starts[e][mine[e]+1], l.ghost[e]
				if lo == hi {
					return nil
				}
				from, to := lo-g, hi+g // of the later dimensions all, of the earlier ones what the block has
				switch {
				case e < d || e > d && l.faces:
					from, to = lo, hi
				case e == d && behind:
					from = hi
				case e == d:
					to = lo
				}
				if !l.periodic[e] {
					from, to = max(from, 0), min(to, l.shape[e])
				}
				s.lines.of[e] = line{lo: from, n: max(0, to-from), step: 1}
				s.lines.len *= s.lines.of[e].n
				s.from += (from - (lo - g)) * by[e]
			}
			if s.lines.len > 0 {
				out = append(out, s)
			}
		}
	}
	return out
}
