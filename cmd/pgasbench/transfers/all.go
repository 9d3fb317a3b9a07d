package transfers

import (
	"fmt"
	"math"
	"slices"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
)

// Of which papers the figures are.
const (
	frequent = "Rashti and Afsahi, Cluster Computing 2011, "
	pipeline = "Denis, Euro-Par 2011, "
)

// Bulk returns the figures of large transfers.
func Bulk() []figures.Figure {
	return []figures.Figure{
		{Name: "bulk-soft", Paper: pipeline + "figures 6 and 7", Title: "first use and reuse on soft, slowed to the paper's network", Make: touchSoft},
		{Name: "bulk-native", Paper: pipeline + "figures 6 and 7", Title: "the same on soft at its own speed", Make: touchNative},
		{Name: "bulk-isx", Paper: pipeline + "section 5, IS", Title: "a bucket sort with new buckets and with the same", Make: sorting},
		{Name: "bulk-sim", Paper: pipeline + "figures 2, 4, 6 and 7", Title: "large transfers with the paper's constants", Make: simulated},
	}
}

// Eager returns the figures of small transfers.
func Eager() []figures.Figure {
	return []figures.Figure{
		{Name: "eager-ping", Paper: frequent + "figure 6", Title: "put and flush, and get, with the copy and without", Make: ping},
		{Name: "eager-spectrum", Paper: frequent + "figure 7 and table 2", Title: "a thousand buffers used once to a thousand times", Make: spectrum},
		{Name: "eager-tables", Paper: frequent + "tables 1 and 3", Title: "how often recorded programs use small buffers again", Make: profile},
		{Name: "eager-search", Paper: frequent + "figure 3", Title: "usage table: hash table against balanced tree", Make: search},
		{Name: "eager-adapt", Paper: frequent + "section 3.4", Title: "a million buffers used once, and what the table does", Make: adapt},
	}
}

// Select returns the figures of the choice between protocols.
func Select() []figures.Figure {
	return []figures.Figure{
		{Name: "select-matrix", Paper: "of this library", Title: "the choice by costs against each fixed policy", Make: matrix},
	}
}

// say tells how far a figure is.
func say(o *figures.Options, format string, args ...any) {
	fmt.Fprintf(o.Progress, format+"\n", args...)
}

// spread is the median and the range of values.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	return spread{(v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]}
}

// times is the spread of all values multiplied.
func (s spread) times(f float64) spread { return spread{s.median * f, s.least * f, s.most * f} }

// pairedNote says what the columns of pairedColumns are.
const pairedNote = "_paired: the median of what each turn found against the base's turn beside it, with the ends of its 95 % interval (order statistics; of fewer " +
	"than six turns the least and the greatest); a difference within the interval of the control is a tie"

// pairedColumns are the names of the cells that three makes.
func pairedColumns(names ...string) (all []string) {
	for _, n := range names {
		all = append(all, n+"_paired", n+"_low", n+"_high")
	}
	return all
}

// three are the cells of intervals.
func three(all ...paired.Interval) (cells []any) {
	for _, i := range all {
		cells = append(cells, i.Median, i.Low, i.High)
	}
	return cells
}

// point is the spread at a place of a chart.
func (s spread) point(x float64) plot.Point {
	return plot.Point{X: x, Y: s.median, Low: s.least, High: s.most}
}

// curve is a line of a chart without ranges.
func curve(name string, xs []int, ys []float64) plot.Series {
	s := plot.Series{Name: name, Plain: len(xs) > 30}
	for i, x := range xs {
		if !math.IsNaN(ys[i]) && !math.IsInf(ys[i], 0) {
			s.Points = append(s.Points, plot.Point{X: float64(x), Y: ys[i]})
		}
	}
	return s
}

// bandwidthChart is a chart of bandwidth by size.
func bandwidthChart(title string, series ...plot.Series) plot.Chart {
	return plot.Chart{
		Title: title, X: plot.Axis{Label: "bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: "GB/s", Zero: true}, Series: series,
	}
}
