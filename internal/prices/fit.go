package prices

import (
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
)

// What transfers took that were tried is the model's cost of them and the rest, which is kept by size: this library's part, and what the model does not see.

// more is by how much transfers took longer than s says, which knows the model alone. Between two sizes they take what lies between, whatever was measured of the
// wire there, by other transfers and at another moment.
func more(s *selector.Selector, all []tried, p selector.Protocol, get bool) (own selector.More) {
	wire := s.Machine().Model.Writes
	if get {
		wire = s.Machine().Model.Reads
	}
	var took selector.More
	for _, t := range all {
		took = append(took, point(t.bytes, t.seconds))
		for _, w := range wire {
			if len(own) > 0 && own[len(own)-1].Bytes < w.N && w.N < t.bytes {
				own = append(own, point(w.N, took.At(w.N)-s.Cost(p, query(p, get, w.N))))
			}
		}
		own = append(own, point(t.bytes, t.seconds-s.Cost(p, query(p, get, t.bytes))))
	}
	return own
}

// onwards is own which goes on in proportion to the bytes where transfers are quicker than the model says: beyond the last size it is the pace
// that differs, where this library's part is nothing. What makes them slower, or disturbed the last, does not grow.
func onwards(own selector.More) selector.More {
	last := own[len(own)-1]
	if last.Bytes < tuneSmall || last.Bytes == selector.Onward || last.Seconds >= 0 {
		return own
	}
	last.Seconds *= selector.Onward / float64(last.Bytes)
	last.Bytes = selector.Onward
	return append(own, last)
}

// cut is more for a protocol that cuts what is large, whose tuning it sets: what the longest took more than the one before it the bytes behind
// the first chunk have taken, and in all sizes they take as much.
func cut(s *selector.Selector, all []tried, p selector.Protocol, get bool, t *selector.Tuning) selector.More {
	own, each := more(s, all, p, get), &t.Put
	if get {
		each = &t.Get
	}
	later := func(i int) int { return s.Later(p, query(p, get, own[i].Bytes)) }
	k := len(own) - 1
	if k < 1 || later(k) <= later(k-1) {
		return own
	}
	*each = min(max(0, own[k].Seconds-own[k-1].Seconds)/float64(later(k)-later(k-1)), apart(s.Machine().Model, own[k].Bytes, get))
	for i := range own {
		own[i].Seconds -= *each * float64(later(i))
	}
	return own
}

// apart is what a byte of so many takes more if nothing overlaps, in seconds: the time of the quicker one of copy and wire. What took longer still
// was disturbed, and says nothing of longer transfers.
func apart(m superpipe.Model, bytes int, get bool) float64 {
	if get {
		m = *m.Reading()
	}
	return min(1/m.Copy(float64(bytes)), 1/m.Net)
}
