package plot

import (
	"errors"
	"fmt"
	"math"
)

// Chart is a picture to be drawn. Title, axes and at least one series with a point are needed.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
	Bars   bool     // bars over named places instead of lines
	Notes  []string // below the picture, a line each
}

// Axis says what a direction means.
type Axis struct {
	Label string
	Log   int      // 2 or 10: a logarithmic axis with ticks at powers of it; 0: linear
	Names []string // of the places 0, 1, 2, …; a named axis
	Zero  bool     // a linear axis shows zero even where no value is near it
	Tight bool     // a linear axis ends where its values do, not at the next round number
	Bytes bool     // ticks are written as sizes: 4K, 1M
}

// Series is one line, or the bars of one colour.
type Series struct {
	Name   string
	Points []Point
	Step   bool // the value holds until the next point
	Plain  bool // no marks at the points
}

// Point is a value at a place. Low and High are the range of the repeats; both zero: none is known.
type Point struct{ X, Y, Low, High float64 }

// ErrChart: a chart that cannot be drawn.
var ErrChart = errors.New("chart that cannot be drawn")

// Values that can be told apart on an axis: what is larger may differ by more than a number holds, and less than the least one is none.
const mostValue, leastValue = 1e300, 1e-300

// ranged reports whether the point has a range.
func (p Point) ranged() bool { return p.Low != 0 || p.High != 0 }

// check is V2.
func (c *Chart) check() error {
	if len(c.Series) == 0 || len(c.Series) > len(colours()) {
		return fmt.Errorf("%w: %q has %d series: want 1 to %d", ErrChart, c.Title, len(c.Series), len(colours()))
	}
	if c.Bars && (len(c.X.Names) == 0 || c.Y.Log != 0) {
		return fmt.Errorf("%w: %q: bars want a named axis below and a linear one beside", ErrChart, c.Title)
	}
	points := 0
	for _, s := range c.Series {
		points += len(s.Points)
		for _, p := range s.Points {
			if err := c.checkPoint(p); err != nil {
				return fmt.Errorf("%w: %q, series %q: %w", ErrChart, c.Title, s.Name, err)
			}
		}
	}
	if points == 0 {
		return fmt.Errorf("%w: %q has no point", ErrChart, c.Title)
	}
	return nil
}

func (c *Chart) checkPoint(p Point) error {
	for _, v := range []float64{p.X, p.Y, p.Low, p.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("point %v is not finite", p)
		}
		if math.Abs(v) > mostValue {
			return fmt.Errorf("point %v is too far away: want at most %g", p, mostValue)
		}
	}
	if p.ranged() && (p.Low > p.Y || p.High < p.Y) {
		return fmt.Errorf("point %v lies outside its range", p)
	}
	if c.X.Log > 0 && p.X <= 0 || c.Y.Log > 0 && (p.Y <= 0 || p.ranged() && p.Low <= 0) {
		return fmt.Errorf("point %v on a logarithmic axis: want more than zero", p)
	}
	if n := len(c.X.Names); n > 0 && (p.X != math.Trunc(p.X) || p.X < 0 || int(p.X) >= n) {
		return fmt.Errorf("point %v on an axis of %d names", p, n)
	}
	return nil
}

// extents returns the least and the greatest value on each axis, with ranges.
func (c *Chart) extents() (x, y [2]float64) {
	x, y = [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(-1)}
	widen := func(to *[2]float64, v float64) { to[0], to[1] = min(to[0], v), max(to[1], v) }
	for _, s := range c.Series {
		for _, p := range s.Points {
			widen(&x, p.X)
			widen(&y, p.Y)
			if p.ranged() {
				widen(&y, p.Low)
				widen(&y, p.High)
			}
		}
	}
	if c.Bars { // V3
		widen(&y, 0)
	}
	return x, y
}
