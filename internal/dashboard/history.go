package dashboard

import "time"

// mostPoints bounds a history. It is even: half of it is left when it is thinned.
const mostPoints = 240

// point is the job at one time: levels in bytes, totals since the start.
type point struct {
	at                time.Duration
	registered, heap  float64
	bytes, ops, moves float64
}

// history is the job over time, from its start to now, at a resolution that halves when there is no more room.
type history struct {
	points []point
	step   time.Duration
}

// add takes a point where it is time for one.
func (h *history) add(at time.Duration, sum func() point) {
	if n := len(h.points); n > 0 && at-h.points[n-1].at < h.step {
		return
	}
	p := sum()
	p.at = at
	h.points = append(h.points, p)
	if len(h.points) < mostPoints {
		return
	}
	h.step *= 2
	for i := range mostPoints / 2 {
		h.points[i] = h.points[2*i+1] // the newest stays
	}
	h.points = h.points[:mostPoints/2]
}

// series are the columns of a history. Rates are over the time since the point before.
type series struct {
	Seconds    []float64 `json:"seconds"`
	Registered []float64 `json:"registered"` // bytes
	Heap       []float64 `json:"heap"`       // bytes
	Rate       []float64 `json:"rate"`       // bytes per second
	Ops        []float64 `json:"ops"`        // operations per second
	Moves      []float64 `json:"moves"`      // firehose moves per second
}

func (h *history) series() series {
	n := len(h.points)
	s := series{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	var before point
	for i, p := range h.points {
		s.Seconds[i], s.Registered[i], s.Heap[i] = p.at.Seconds(), p.registered, p.heap
		if d := (p.at - before.at).Seconds(); d > 0 {
			s.Rate[i], s.Ops[i], s.Moves[i] = (p.bytes-before.bytes)/d, (p.ops-before.ops)/d, (p.moves-before.moves)/d
		}
		before = p
	}
	return s
}
