package regmgr

import "math"

// always is later than any use.
const always = math.MaxUint64

// idleList orders regions by their last use: a heap by rank. A rank is never later than the true last use, because uses do
// not touch the list: so the least true last use is found by correcting ranks from the top on. Guarded by Manager.mu.
type idleList struct{ heap []*Region }

func (l *idleList) add(r *Region) {
	r.rank = r.used()
	r.place = len(l.heap)
	l.heap = append(l.heap, r)
	l.up(r.place)
}

func (l *idleList) remove(r *Region) {
	i, last := r.place, len(l.heap)-1
	if i < 0 {
		return
	}
	l.swap(i, last)
	l.heap[last] = nil
	l.heap = l.heap[:last]
	r.place = -1
	if i < last {
		l.down(i)
		l.up(i)
	}
}

// oldest retires the idle region, of those that ok accepts, whose last use lies farthest back, and takes it out; nil: there
// is none that was last used before that many uses. Whatever is passed over is referenced or not accepted, and stays in the list.
func (l *idleList) oldest(ok func(*Region) bool, before uint64) (found *Region) {
	var passed []*Region
	for len(l.heap) > 0 && found == nil {
		r := l.heap[0]
		if t := r.used(); t != r.rank {
			r.rank = t
			l.down(0)
			continue
		}
		if r.rank >= before {
			break
		}
		l.remove(r)
		if ok != nil && !ok(r) || !r.retire() {
			passed = append(passed, r)
			continue
		}
		found = r
	}
	for _, r := range passed {
		l.add(r)
	}
	return found
}

// latest retires the idle region, of those that ok accepts (nil: all), that is predicted to be needed last, and takes it out;
// nil: nothing is predicted of any.
func (l *idleList) latest(ok func(*Region) bool) *Region {
	for {
		var best *Region
		for _, r := range l.heap {
			at := r.expected.Load()
			if at == 0 || r.state() != ready || r.references() != 0 || ok != nil && !ok(r) {
				continue
			}
			if best == nil || at > best.expected.Load() {
				best = r
			}
		}
		if best == nil {
			return nil
		}
		if best.retire() {
			l.remove(best)
			return best
		}
	}
}

func (l *idleList) swap(i, j int) {
	h := l.heap
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (l *idleList) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if l.heap[parent].rank <= l.heap[i].rank {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *idleList) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(l.heap); c++ {
			if l.heap[c].rank < l.heap[least].rank {
				least = c
			}
		}
		if least == i {
			return
		}
		l.swap(i, least)
		i = least
	}
}
