//go:build !purego && !race && !msan && !asan

package mem

import "sync/atomic"

// recent is which memory was copied to of late, by stretches of 256 KiB. It is a hint: two goroutines that write it at once may leave either's, or some of both.
type recent struct {
	moved  atomic.Uint64 // bytes so far
	places [recentPlaces]struct{ stretch, at atomic.Uint64 }
}

const (
	recentPlaces = 512
	stretchBits  = 18
)

// again notes a copy of n bytes to dst, and reports whether all of that was copied to before, within the last so many bytes of copies.
func (r *recent) again(dst uintptr, n, within int) bool {
	now, all := r.moved.Add(uint64(n)), true
	for s, last := uint64(dst)>>stretchBits, (uint64(dst)+uint64(n)-1)>>stretchBits; s <= last; s++ {
		p := &r.places[s%recentPlaces]
		all = all && p.stretch.Load() == s && now-p.at.Load() <= uint64(within)
		Publish(&p.stretch, s)
		Publish(&p.at, now)
	}
	return all
}
