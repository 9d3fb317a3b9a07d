package figures

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/plot"
)

func reuse(ctx context.Context, o *Options) (*Result, error)   { return side(ctx, o, false) }
func noReuse(ctx context.Context, o *Options) (*Result, error) { return side(ctx, o, true) }

// side sets all policies side by side on the microbenchmark.
func side(ctx context.Context, o *Options, fresh bool) (*Result, error) {
	m := micro{
		transport: o.Transport, bytes: or(o.Bytes, 4<<20), iterations: or(o.Iterations, 10),
		compute: or(o.Compute, 100*time.Millisecond), fresh: fresh,
	}
	names := policies()
	runs := make([][]*microRun, len(names))
	for rep := range o.Reps {
		for i, name := range names {
			o.say("repeat %d of %d: %s", rep+1, o.Reps, name)
			m.policy = name
			r, err := m.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			runs[i] = append(runs[i], r)
		}
	}
	res := &Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine, one rank that puts to itself",
		Columns: []string{
			"policy", "peak_bytes", "average_bytes", "seconds", "hits", "misses", "copies", "call_us", "call_us_min", "call_us_max", "mean_call_us",
		},
		Notes: []string{
			fmt.Sprintf("%d iterations of %d calls of %d bytes, %v of sleep after each; %d repeats; call_us: of the calls after iteration %d",
				m.iterations, buffers, m.bytes, m.compute, o.Reps, learning),
			"the paper adds a bounce base of about 20 MB to its registered bytes; these are the transfers' own, without windows",
		},
	}
	over := plot.Chart{
		Title: fmt.Sprintf("registered bytes over time, %d calls of %d bytes", m.iterations*buffers, m.bytes),
		X:     plot.Axis{Label: "seconds", Tight: true}, Y: plot.Axis{Label: "bytes registered", Zero: true, Bytes: true},
	}
	cost := plot.Chart{
		Title: "time of a call, after learning", X: plot.Axis{Names: names}, Y: plot.Axis{Label: "us"}, Bars: true,
		Series: []plot.Series{{Name: "median, range"}},
	}
	for i, name := range names {
		row, calls := microRow(name, runs[i])
		res.Rows = append(res.Rows, row)
		over.Series = append(over.Series, plot.Series{Name: name, Points: runs[i][0].series, Step: true, Plain: true})
		cost.Series[0].Points = append(cost.Series[0].Points, calls.point(float64(i)))
	}
	res.Notes = append(res.Notes, compare(names, runs)...)
	res.Charts = []Chart{{"memory", over}, {"time", cost}}
	return res, nil
}

// microRow is a policy's line: counters of the median run by peak would hide disagreement, so peaks are the greatest of all.
func microRow(name string, runs []*microRun) ([]any, spread) {
	var later, all, average, seconds []float64
	var peak int64
	for _, r := range runs {
		peak = max(peak, r.stats.PeakBytes)
		average, seconds = append(average, r.stats.AverageBytes), append(seconds, r.seconds)
		for _, c := range r.calls {
			all = append(all, c*1e6)
		}
		for _, c := range r.later() {
			later = append(later, c*1e6)
		}
	}
	s := runs[len(runs)-1].stats
	calls := spreadOf(later)
	return []any{
		name, peak, spreadOf(average).median, spreadOf(seconds).median, s.Hits, s.MissCold + s.MissPartial + s.MissRights,
		s.CopiedPolicy + s.CopiedBudget + s.CopiedOrigin + s.CopiedRefused, calls.median, calls.least, calls.most, mean(all),
	}, calls
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// base is what the paper's count of registered bytes has beside the buffers.
const base = 20e6

// compare says what the paper says in words: each policy against predictive.
func compare(names []string, runs [][]*microRun) (notes []string) {
	peaks := map[string]float64{}
	var ours float64
	for i, n := range names {
		peaks[n] = float64(runs[i][0].stats.PeakBytes)
		if n == "predictive" {
			ours = peaks[n]
		}
	}
	for _, n := range []string{"leavepinned", "pipelined", "pipelined-leavepinned"} {
		if peaks[n] > 0 && ours > 0 {
			notes = append(notes, fmt.Sprintf("peak of predictive against %s: %+.2f %%, with the paper's base %+.2f %%; %s is %.2f times as much",
				n, 100*(ours/peaks[n]-1), 100*((ours+base)/(peaks[n]+base)-1), n, peaks[n]/ours))
		}
	}
	return notes
}

// latency is the time of a call by size under all policies, with buffers reused and not.
func latency(ctx context.Context, o *Options) (*Result, error) {
	sizes, err := o.Sweep(64<<10, 8<<20)
	if err != nil {
		return nil, err
	}
	names := policies()
	res := &Result{
		Kind:    "measured on the " + o.Transport + " NIC of this machine, one rank that puts to itself",
		Columns: []string{"buffers", "policy", "bytes", "call_us", "call_us_min", "call_us_max", "mb_per_s"},
	}
	m := micro{transport: o.Transport, iterations: or(o.Iterations, 10), compute: or(o.Compute, 5*time.Millisecond)}
	for _, fresh := range []bool{false, true} {
		m.fresh = fresh
		what := map[bool]string{false: "reused", true: "fresh"}[fresh]
		c := plot.Chart{
			Title: "time of a call, buffers " + what,
			X:     plot.Axis{Label: "bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: "us", Log: 10},
		}
		for _, n := range names {
			c.Series = append(c.Series, plot.Series{Name: n})
		}
		for k, size := range sizes {
			o.say("buffers %s: %d bytes, size %d of %d", what, size, k+1, len(sizes))
			calls := make([][]float64, len(names))
			for range o.Reps {
				for i, n := range names {
					m.policy, m.bytes = n, size
					r, err := m.run(ctx)
					if err != nil {
						return nil, fmt.Errorf("%s, %d bytes: %w", n, size, err)
					}
					for _, s := range r.later() {
						calls[i] = append(calls[i], s*1e6)
					}
				}
			}
			for i, n := range names {
				s := spreadOf(calls[i])
				res.Rows = append(res.Rows, []any{what, n, size, s.median, s.least, s.most, float64(size) / s.median})
				c.Series[i].Points = append(c.Series[i].Points, plot.Point{X: float64(size), Y: s.median})
			}
		}
		res.Charts = append(res.Charts, Chart{what, c})
	}
	res.Notes = []string{fmt.Sprintf("%d iterations of %d calls for each size, %v of sleep after each; %d repeats; calls after iteration %d",
		m.iterations, buffers, m.compute, o.Reps, learning)}
	return res, nil
}
