package figures

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gopgas/internal/plot"
	"gopgas/internal/trace"
)

// Options are what a figure is made with. A zero field takes the figure's own value.
type Options struct {
	Transport  string        // the NIC of measured figures; "" is soft
	Reps       int           // repeats of measured figures; 0: 1
	Bytes      int           // of a transfer
	Iterations int           // of the microbenchmark, of a shape, of alternating rounds
	Compute    time.Duration // after each of its calls
	Fine       bool          // sizes grow by 5 % instead of doubling
	Most       int           // the greatest size of a sweep
	Cost       string        // the model of replayed figures
	Noise      float64       // of a shape's computation, as a part
	Spikes     float64       // part of a shape's phases that are disturbed
	Seed       uint64
	Traces     []Trace // recorded traces, for the figures that can take them
	// Ranks starts this program's command again as n ranks that are processes, on so many cores, with settings NAME=value, and blocks until
	// all have ended. nil: figures that need it cannot be made.
	Ranks    func(ctx context.Context, n, cores int, settings []string, args ...string) error
	Progress io.Writer // where a figure says how far it is; nil: nowhere
}

// Trace is a recorded trace by name.
type Trace struct {
	Name  string
	Files []*trace.File
}

// Figure is an experiment: Make carries it out with options that Run has completed.
type Figure struct {
	Name  string // what it is called on the command line
	Paper string // which figures or tables of which paper it stands for
	Title string
	Make  func(context.Context, *Options) (*Result, error)
}

// Result is what came out.
type Result struct {
	Kind    string   // measured on …, or replayed in virtual time
	Columns []string // names with their units, such as peak_bytes
	Rows    [][]any  // strings, whole numbers and float64
	Notes   []string
	Charts  []Chart
}

// Chart is one picture of a figure; a figure with one picture has an empty name.
type Chart struct {
	Name string
	plot.Chart
}

// All returns all figures, in the order of the papers.
func All() []Figure {
	const helpers = "Li et al., CF 2011, "
	return []Figure{
		{"reuse", helpers + "figures 2 and 9", "the microbenchmark with the same buffers each time", reuse},
		{"noreuse", helpers + "figure 10", "the microbenchmark with fresh buffers each time", noReuse},
		{"latency", helpers + "figures 9b and 10b", "time of a call by size, buffers reused and not", latency},
		{"overhead", helpers + "section 4.3", "what a call costs more with the helper off", overhead},
		{"accuracy", helpers + "figure 5", "accuracy of both predictors", accuracy},
		{"recorded", helpers + "figure 5", "accuracy on traces recorded now, with phases of 100 ms", recorded},
		{"windows", helpers + "figure 6", "accuracy by window length", windows},
		{"jitter", helpers + "figure 5, the noise varied", "accuracy by how many phases are disturbed", jitter},
		{"impossible", helpers + "figures 3 and 11f", "more memory than may be registered", impossible},
		{"toolarge", helpers + "figures 3 and 11f", "the same with the shape of FT", tooLarge},
		{"nas", helpers + "figure 11 and table 2", "registered memory of programs", nas},
		{"grouping", helpers + "figure 12 and table 3", "four ranks a node, grouped at random", grouping},
		{"scaling", helpers + "figures 13, 14 and table 4", "FT on 16, 32 and 64 nodes", scaling},
		{"cores", helpers + "figure 8 and table 1", "six ranks on eight cores", cores},
		{"seats", helpers + "section 5", "one busy rank on two cores, and four", idleSeats},
		{"hoses", "Bell and Bonachea, 2003", "memory of other nodes in buckets, by how much may be registered for peers", hoses},
		{"costs", "Denis, Euro-Par 2011, figure 1", "registration against copy by size", costs},
	}
}

// Find returns the figure of that name.
func Find(name string) (Figure, error) {
	var names []string
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Figure{}, fmt.Errorf("figure %q: there are: %s", name, strings.Join(names, ", "))
}

// Run makes the figure.
func (f Figure) Run(ctx context.Context, o Options) (*Result, error) {
	if o.Transport == "" {
		o.Transport = "soft"
	}
	if o.Cost == "" {
		o.Cost = "helper-threads"
	}
	o.Reps = max(o.Reps, 1)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	r, err := f.Make(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("figure %s: %w", f.Name, err)
	}
	return r, nil
}

// say tells how far the figure is.
func (o *Options) say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// Sizes returns sizes from least to most: doubling, or growing by 5 %.
func Sizes(least, most int, fine bool) (all []int) {
	for n := least; n <= most; {
		all = append(all, n)
		if fine {
			n = max(n+1, n+n/20)
		} else {
			n *= 2
		}
	}
	return all
}

// Sweep returns the sizes from least to Most, or to the figure's own most; an error if there are none.
func (o *Options) Sweep(least, most int) ([]int, error) {
	all := Sizes(least, or(o.Most, most), o.Fine)
	if len(all) == 0 {
		return nil, fmt.Errorf("--max %d: want at least %d, with which the sizes of this figure begin", o.Most, least)
	}
	return all, nil
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

// point is a spread at a place of a chart.
func (s spread) point(x float64) plot.Point {
	return plot.Point{X: x, Y: s.median, Low: s.least, High: s.most}
}

// or returns v, or other where v is zero.
func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
