package cost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Line is the cost of an operation on pages, A·pages + B in nanoseconds.
type Line struct {
	A        float64 `json:"ns_per_page"`
	B        float64 `json:"ns_fixed"`
	Residual float64 `json:"ns_residual"` // by how much a measurement lay above the line, at most
}

// Sample is a measured cost: of so many pages, or bytes.
type Sample struct {
	N     int     `json:"n"`
	Nanos float64 `json:"ns"`
}

// Mean returns the line at so many pages. K1.
func (l Line) Mean(pages int) time.Duration { return nanos(l.A*float64(pages) + l.B) }

// Upper returns Mean plus the largest residual. K2.
func (l Line) Upper(pages int) time.Duration { return nanos(l.A*float64(pages) + l.B + l.Residual) }

func nanos(f float64) time.Duration { return time.Duration(math.Ceil(max(f, 0))) }

// Fit returns the line with the least squares of relative distances to the samples, which must be of two sizes at least:
// relative, so that the few large sizes do not decide the cost of the small ones. Where noise would make A or B negative
// it is 0 and the other one is fitted alone.
func Fit(samples []Sample) (Line, error) {
	var w, wx, wy, wxx, wxy float64
	sizes := map[int]bool{}
	for i, s := range samples {
		if s.N < 0 || !(s.Nanos > 0) || math.IsInf(s.Nanos, 0) {
			return Line{}, fmt.Errorf("sample %d of a cost: %v ns for %d: want a time above zero", i, s.Nanos, s.N)
		}
		weight := 1 / (s.Nanos * s.Nanos)
		x := float64(s.N)
		w, wx, wy, wxx, wxy = w+weight, wx+weight*x, wy+weight*s.Nanos, wxx+weight*x*x, wxy+weight*x*s.Nanos
		sizes[s.N] = true
	}
	if len(sizes) < 2 {
		return Line{}, errors.New("fit of a cost: want samples of two sizes at least")
	}
	d := w*wxx - wx*wx
	l := Line{A: (w*wxy - wx*wy) / d, B: (wxx*wy - wx*wxy) / d}
	switch {
	case l.B < 0:
		l = Line{A: wxy / wxx}
	case l.A < 0:
		l = Line{B: wy / w}
	}
	for _, s := range samples {
		l.Residual = max(l.Residual, s.Nanos-l.A*float64(s.N)-l.B)
	}
	return l, nil
}

// Curve is a cost by size, straight between samples in growing order of N, and in proportion beyond the last one.
type Curve []Sample

// At returns the cost of so many bytes. An empty curve costs nothing.
func (c Curve) At(bytes int) time.Duration {
	if len(c) == 0 || bytes <= 0 {
		return 0
	}
	last := Sample{}
	for _, s := range c {
		if bytes <= s.N {
			part := float64(bytes-last.N) / float64(s.N-last.N)
			if last.N == 0 { // below the first size: what is fixed is not known apart
				return nanos(s.Nanos)
			}
			return nanos(last.Nanos + part*(s.Nanos-last.Nanos))
		}
		last = s
	}
	return nanos(last.Nanos * float64(bytes) / float64(last.N))
}

// Seconds is At for a length that is no whole number of bytes, without rounding. Beyond the last sample the
// line of the last two goes on.
func (c Curve) Seconds(bytes float64) float64 {
	k := len(c)
	switch {
	case k == 0:
		return 0
	case k == 1 || bytes <= float64(c[0].N):
		return c[0].Nanos * 1e-9
	}
	i, _ := slices.BinarySearchFunc(c, bytes, func(s Sample, b float64) int { return cmp.Compare(float64(s.N), b) })
	a, b := c[min(i, k-1)-1], c[min(i, k-1)]
	return (a.Nanos + (bytes-float64(a.N))*(b.Nanos-a.Nanos)/float64(b.N-a.N)) * 1e-9
}

// Rate returns the bytes per second at a size.
func (c Curve) Rate(bytes int) float64 {
	if t := c.At(bytes); t > 0 {
		return float64(bytes) / t.Seconds()
	}
	return math.Inf(1)
}

// check refuses a curve that is out of order or has no times.
func (c Curve) check(name string) error {
	last := Sample{}
	for i, s := range c {
		if s.N <= last.N || !(s.Nanos >= last.Nanos) || !(s.Nanos > 0) || math.IsInf(s.Nanos, 0) {
			return fmt.Errorf("%s[%d]: %d bytes in %v ns after %d bytes in %v ns: want both growing", name, i, s.N, s.Nanos, last.N, last.Nanos)
		}
		last = s
	}
	return nil
}

func (l Line) check(name string) error {
	for _, f := range []float64{l.A, l.B, l.Residual} {
		if !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("%s: %+v: want numbers from zero on", name, l)
		}
	}
	if l.A == 0 && l.B == 0 {
		return fmt.Errorf("%s costs nothing: want ns_per_page or ns_fixed above zero", name)
	}
	return nil
}
