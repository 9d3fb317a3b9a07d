package replay

import (
	"cmp"
	"slices"

	"gopgas/internal/predict"
)

// meter gathers changes of a node's registered bytes.
type meter struct{ changes []change }

type change struct {
	at    predict.Nanos
	bytes int64
}

func (m *meter) add(at predict.Nanos, bytes int64) { m.changes = append(m.changes, change{at, bytes}) }

// compareChanges orders changes by time; what ends at a time ends first.
func compareChanges(a, b change) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bytes, b.bytes))
}

// reading is what a meter says about the time from 0 to end: the peak, the average over time, and the peak within each of
// a number of equal parts.
type reading struct {
	peak    int64
	average float64
	series  []int64
}

func (m *meter) read(end predict.Nanos, parts int) reading {
	slices.SortStableFunc(m.changes, compareChanges)
	r := reading{series: make([]int64, parts)}
	end = max(end, 1)
	part := func(at predict.Nanos) int {
		return min(parts-1, int(float64(at)/float64(end)*float64(parts)))
	}
	var now int64
	var last predict.Nanos
	var area float64
	fill := func(until predict.Nanos) { // now holds from last to until
		if parts > 0 && until > last {
			for i := part(last); i <= part(until-1); i++ {
				r.series[i] = max(r.series[i], now)
			}
		}
		area += float64(now) * float64(until-last)
		last = until
	}
	for _, c := range m.changes {
		if at := min(c.at, end); at > last {
			fill(at)
		}
		now += c.bytes
		r.peak = max(r.peak, now)
	}
	if end > last {
		fill(end)
	}
	r.average = area / float64(end)
	return r
}
