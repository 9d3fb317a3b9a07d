//go:build !purego && !race && !msan && !asan

package mem

import "sync/atomic"

// recent is which memory was copied from or to of late, by stretches of a MiB. It is a hint: two goroutines that write it at once may leave either's, or some of both.
type recent struct {
	moved  atomic.Uint64 // bytes so far
	places [recentPlaces]struct{ stretch, at atomic.Uint64 }
}

const (
	recentPlaces = 256
	stretchBits  = 20
)

// again notes a copy of n bytes from src to dst, and reports whether all of both was part of such copies within the last so many bytes of them.
func (r *recent) again(dst, src uintptr, n, within int) bool {
	now := r.moved.Add(uint64(n))
	before := r.was(dst, n, now, within)
	return r.was(src, n, now, within) && before
}

func (r *recent) was(addr uintptr, n int, now uint64, within int) bool {
	all := true
	for s, last := uint64(addr)>>stretchBits, (uint64(addr)+uint64(n)-1)>>stretchBits; s <= last; s++ {
		p := &r.places[s%recentPlaces]
		all = all && p.stretch.Load() == s && now-p.at.Load() <= uint64(within)
		Publish(&p.stretch, s)
		Publish(&p.at, now)
	}
	return all
}
