package plot

import (
	"math"
	"strconv"
)

// scale turns values into places between 0 and 1.
type scale struct {
	lo, hi float64 // of the axis; logarithms on a logarithmic one
	log    float64 // natural logarithm of the base, 0 on a linear axis
	ticks  []tick
}

type tick struct {
	at   float64 // between 0 and 1
	text string
}

// mostTicks is about how many ticks an axis has at most.
const mostTicks = 8

// newScale makes the scale of an axis for values from extent[0] to extent[1].
func newScale(a Axis, extent [2]float64) scale {
	switch {
	case len(a.Names) > 0:
		return named(a.Names)
	case a.Log > 0:
		return logarithmic(a, extent)
	}
	return linear(a, extent)
}

func (s *scale) place(v float64) float64 {
	if s.log > 0 {
		v = math.Log(v) / s.log
	}
	return (v - s.lo) / (s.hi - s.lo)
}

func named(names []string) scale {
	s := scale{lo: -0.5, hi: float64(len(names)) - 0.5}
	for i, n := range names {
		s.ticks = append(s.ticks, tick{s.place(float64(i)), n})
	}
	return s
}

// logarithmic has its limits and ticks at whole powers of the base; every n-th power where there are many.
func logarithmic(a Axis, extent [2]float64) scale {
	const almost = 1e-9 // a power that is computed may miss itself
	s := scale{log: math.Log(float64(a.Log))}
	s.lo = math.Floor(math.Log(extent[0])/s.log + almost)
	s.hi = max(math.Ceil(math.Log(extent[1])/s.log-almost), s.lo+1)
	every := math.Ceil((s.hi - s.lo) / mostTicks)
	for p := s.lo; p <= s.hi; p += every {
		s.ticks = append(s.ticks, tick{(p - s.lo) / (s.hi - s.lo), a.number(math.Pow(float64(a.Log), p), 0)})
	}
	return s
}

// almostEqual is by which part of them values differ that are equal but for rounding: ticks between them would be the same number.
const almostEqual = 1e-12

// linear has its ticks at multiples of 1, 2 or 5 times a power of ten, or of a power of two of bytes, and its limits there
// too; a tight one ends where its values do.
func linear(a Axis, extent [2]float64) scale {
	lo, hi := extent[0], extent[1]
	if a.Zero {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	if hi-lo <= almostEqual*max(math.Abs(lo), math.Abs(hi)) {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	if hi-lo < leastValue {
		hi = lo + 1
	}
	step := round((hi - lo) / (mostTicks - 2))
	if a.Bytes && hi >= 1024 {
		step = math.Exp2(math.Ceil(math.Log2((hi-lo)/(mostTicks-2)) - 1e-9))
	}
	first, last := math.Floor(lo/step+1e-9), math.Ceil(hi/step-1e-9)
	s := scale{lo: first * step, hi: last * step}
	if a.Tight {
		first, last = math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
		s.lo, s.hi = lo, hi
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	for i := first; i <= last; i++ {
		s.ticks = append(s.ticks, tick{s.place(i * step), a.number(i*step, digits)})
	}
	return s
}

// round returns the next of 1, 2, 5, 10, … times a power of ten that is not below v.
func round(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// number writes a tick.
func (a Axis) number(v float64, digits int) string {
	if a.Bytes && v >= 1024 {
		for _, u := range []struct {
			size float64
			name string
		}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
			if v >= u.size {
				return strconv.FormatFloat(v/u.size, 'g', 4, 64) + u.name
			}
		}
	}
	if a.Log > 0 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	if v == 0 {
		return "0" // not -0
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
