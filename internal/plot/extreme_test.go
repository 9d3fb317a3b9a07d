package plot

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExtremes: whatever the values are, a linear axis has a few ticks, at places within the picture.
func TestExtremes(t *testing.T) {
	next := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	for _, of := range [][]float64{
		{1e6, next(1e6)},
		{1e6, next(next(1e6))},
		{next(1e6), 1e6, next(next(next(1e6)))},
		{-1e6, -next(1e6)}, // equal but for rounding
		{0},
		{math.Copysign(0, -1), 0},
		{7},
		{-7},
		{math.SmallestNonzeroFloat64},
		{0, math.SmallestNonzeroFloat64},
		{-math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64},
		{1.7e18, 1.7e18 + 1024},
		{1e16, 1e16 + 2},
		{1e-299, 2e-299},
		{-1e300, 1e300},
		{1e300},
		{0.1 + 0.2, 0.3},
	} {
		for _, a := range []Axis{{}, {Zero: true}, {Tight: true}, {Bytes: true}, {Bytes: true, Tight: true}} {
			c := Chart{X: a, Y: a, Series: []Series{{}}}
			for _, v := range of {
				c.Series[0].Points = append(c.Series[0].Points, Point{X: v, Y: v})
			}
			out, err := c.SVG()
			require.NoError(t, err, "%v", of)
			require.False(t, bytes.Contains(out, []byte("NaN")) || bytes.Contains(out, []byte("Inf")), "%v on %+v: %s", of, a, out)
			x, _ := c.extents()
			s := newScale(a, x)
			require.LessOrEqual(t, len(s.ticks), 2*mostTicks, "%v", of)
			for _, v := range of {
				require.InDelta(t, 0.5, s.place(v), 0.5+1e-9, "%v of %v on %+v", v, of, a)
			}
		}
	}
	for _, v := range []float64{math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.NaN()} {
		_, err := (&Chart{Series: []Series{{Points: []Point{{X: 1, Y: v}}}}}).SVG()
		require.ErrorIs(t, err, ErrChart)
	}
}
