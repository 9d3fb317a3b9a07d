package softnic

import "sort"

// run is a stretch of pages, [from, to), each covered by count registrations.
type run struct {
	from, to uint64
	count    int
}

// span is a stretch of pages, [from, to).
type span struct{ from, to uint64 }

// pages counts the registrations that cover each page. Stretches with equal counts are kept as one run, so
// that a registration of a million pages costs as little as one of a single page. The zero pages is ready.
type pages struct {
	runs   []run // sorted, disjoint, counts above zero, neighbours that touch differ in count
	locked uint64

	// Scratch of change.
	next  []run
	edges []span
}

// change adds delta, 1 or -1, to the count of every page in [from, to) and returns the stretches whose count
// has become, or was, zero: those to lock, or to unlock. The result is valid until the next call.
func (p *pages) change(from, to uint64, delta int) []span {
	p.next, p.edges = p.next[:0], p.edges[:0]
	// The runs that change, and those that touch them, which may have to be merged.
	first := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].to >= from })
	end, at := first, from
	for ; end < len(p.runs) && p.runs[end].from <= to; end++ {
		r := p.runs[end]
		if r.from < from {
			p.emit(r.from, min(r.to, from), r.count)
		}
		lo, hi := max(r.from, from), min(r.to, to)
		if at < lo {
			p.shift(at, min(lo, to), 0, delta)
			at = min(lo, to)
		}
		if lo < hi {
			p.shift(lo, hi, r.count, delta)
			at = hi
		}
		if r.to > to {
			p.emit(max(r.from, to), r.to, r.count)
		}
	}
	if at < to {
		// Pages before the next run, or behind the last: none of next lies behind them.
		p.shift(at, to, 0, delta)
	}
	p.replace(first, end)
	return p.edges
}

// shift gives the pages of [from, to) a new count.
func (p *pages) shift(from, to uint64, count, delta int) {
	if count == 0 || count+delta == 0 {
		p.edges = append(p.edges, span{from, to})
		if delta > 0 {
			p.locked += to - from
		} else {
			p.locked -= to - from
		}
	}
	p.emit(from, to, count+delta)
}

// emit appends a run, merged with the one before it if they touch and are equal.
func (p *pages) emit(from, to uint64, count int) {
	if from >= to || count == 0 {
		return
	}
	if n := len(p.next); n > 0 && p.next[n-1].to == from && p.next[n-1].count == count {
		p.next[n-1].to = to
		return
	}
	p.next = append(p.next, run{from, to, count})
}

// replace puts next in the place of runs[first:end].
func (p *pages) replace(first, end int) {
	old, now := end-first, len(p.next)
	tail := len(p.runs) - end
	for range now - old {
		p.runs = append(p.runs, run{})
	}
	copy(p.runs[first+now:first+now+tail], p.runs[end:end+tail])
	p.runs = p.runs[:first+now+tail]
	copy(p.runs[first:], p.next)
}
