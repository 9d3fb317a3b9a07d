package pgas

import (
	"slices"

	"gopgas/internal/mem"
)

// What is put from this rank's own part, or got into it, goes owner by owner: a piece that this rank owns would be written before others are read, which would then have its new
// elements in the place of the old.

// mixes reports whether near lies in this rank's part, at least partly, and the elements from lo on are those of several owners.
func (a *Array[T]) mixes(lo int, near []T) bool {
	if len(near) < 2 || a.d.run(lo) >= len(near) {
		return false
	}
	n, own := mem.Of(near), mem.Of(a.w.Local())
	return own.Bytes > 0 && n.Addr() < own.Addr()+uint64(own.Bytes) && own.Addr() < n.Addr()+uint64(n.Bytes)
}

// putApart is Put of such elements.
func (a *Array[T]) putApart(lo int, src []T) error { return a.put(lo, slices.Clone(src)) }

// getApart is Get of such elements.
func (a *Array[T]) getApart(lo int, dst []T) error {
	got := make([]T, len(dst))
	if err := a.get(lo, got); err != nil {
		return err
	}
	copy(dst, got)
	return nil
}
