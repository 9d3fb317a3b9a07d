package figures

import (
	"context"
	"fmt"

	"gopgas/internal/plot"
	"gopgas/internal/replay"
	"gopgas/internal/seats"
	"gopgas/internal/trace"
)

// config is what replayed figures have in common.
func (o *Options) config() (replay.Config, error) {
	c, err := replay.ParseCosts(o.Cost)
	return replay.Config{Costs: c, Seed: or(o.Seed, 1)}, err
}

// replayed begins a result.
func (o *Options) replayed(columns ...string) *Result {
	return &Result{
		Kind: "replayed in virtual time, constants of the cost model " + o.Cost, Columns: columns,
		Notes: []string{o.noiseNote(or(o.Spikes, defaultSpikes))},
	}
}

// saved is by how much ours lies below theirs, in percent.
func saved(ours, theirs float64) float64 {
	if theirs == 0 {
		return 0
	}
	return 100 * (1 - ours/theirs)
}

// longer is by how much ours is above theirs, in percent.
func longer(ours, theirs float64) float64 {
	if theirs == 0 {
		return 0
	}
	return 100 * (ours/theirs - 1)
}

// seriesParts is into how many parts of time a picture of registered bytes is divided.
const seriesParts = 400

// overTime is the registered bytes of a node, as the peak within each part of time.
func overTime(name string, seconds float64, n replay.NodeResult) plot.Series {
	s := plot.Series{Name: name, Step: true, Plain: true}
	for i, b := range n.Series {
		s.Points = append(s.Points, plot.Point{X: seconds * float64(i) / float64(len(n.Series)), Y: float64(b)})
	}
	return s
}

func nas(_ context.Context, o *Options) (*Result, error) {
	paper := map[string]float64{"bt": 16.13, "lu": 18.43, "sp": 8.68, "cg": 0, "ft": 31.0}
	all, err := o.traces(or(o.Noise, defaultNoise), or(o.Spikes, defaultSpikes))
	if err != nil {
		return nil, err
	}
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.RanksPerNode, c.Series = 1, seriesParts
	res := o.replayed("trace", "policy", "peak_bytes", "average_bytes", "seconds", "critical_ms", "hits", "late", "misses",
		"peak_saved_percent", "average_saved_percent", "longer_percent", "paper_peak_saved_percent")
	res.Notes = append(res.Notes, "paper: four nodes, one task each, with Open MPI's bounce buffers counted, which are not here")
	bars := plot.Chart{
		Title: "registered memory saved against leavepinned", Y: plot.Axis{Label: "%"}, Bars: true,
		Series: []plot.Series{{Name: "peak"}, {Name: "average"}, {Name: "peak, paper"}},
	}
	for i, t := range all {
		picture := plot.Chart{
			Title: "registered bytes of node 0, " + t.Name, X: plot.Axis{Label: "seconds", Tight: true},
			Y: plot.Axis{Label: "bytes", Zero: true, Bytes: true},
		}
		var left *replay.Result
		for _, p := range []replay.Policy{replay.LeavePinned, replay.Predictive} {
			c.Policy = p
			r, err := replay.Run(t.Files, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			if left == nil {
				left = r
			}
			theirs, known := paper[t.Name]
			row := []any{
				t.Name, p.String(), r.Peak, r.Average, r.Seconds, float64(r.Slowest) / 1e6, r.Hits, r.Late, r.First + r.Again,
				saved(float64(r.Peak), float64(left.Peak)), saved(r.Average, left.Average), longer(r.Seconds, left.Seconds), "-",
			}
			if known && p == replay.Predictive {
				row[len(row)-1] = theirs
			}
			res.Rows = append(res.Rows, row)
			picture.Series = append(picture.Series, overTime(p.String(), r.Seconds, r.Nodes[0]))
			if p == replay.Predictive {
				bars.X.Names = append(bars.X.Names, t.Name)
				values := []float64{saved(float64(r.Peak), float64(left.Peak)), saved(r.Average, left.Average), theirs}
				for k, v := range values[:map[bool]int{true: 3, false: 2}[known]] {
					bars.Series[k].Points = append(bars.Series[k].Points, plot.Point{X: float64(i), Y: v})
				}
			}
		}
		res.Charts = append(res.Charts, Chart{t.Name, picture})
	}
	res.Charts = append([]Chart{{"saved", bars}}, res.Charts...)
	return res, nil
}

// pair replays a trace with everything kept, and with the helper.
func pair(files []*trace.File, c replay.Config) (left, ours *replay.Result, err error) {
	c.Policy = replay.LeavePinned
	if left, err = replay.Run(files, c); err != nil {
		return nil, nil, err
	}
	c.Policy = replay.Predictive
	ours, err = replay.Run(files, c)
	return left, ours, err
}

func grouping(_ context.Context, o *Options) (*Result, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	files, err := o.shape("ft", replay.ShapeConfig{Ranks: 16, Noise: or(o.Noise, defaultNoise), Spikes: or(o.Spikes, defaultSpikes)})
	if err != nil {
		return nil, err
	}
	c.RanksPerNode, c.Shuffle = 4, true
	res := o.replayed("grouping", "leavepinned_peak_bytes", "predictive_peak_bytes", "peak_saved_percent", "average_saved_percent",
		"leavepinned_seconds", "predictive_seconds", "paper_peak_saved_percent")
	res.Notes = append(res.Notes, "the shape is FT with a one-dimensional layout, in which every rank sends to every other: groupings differ less than in the paper's 2 by 8 layout")
	for i, paper := range []float64{49.39, 41.70} {
		c.Seed = or(o.Seed, 1) + uint64(i)
		left, ours, err := pair(files, c)
		if err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, []any{
			i + 1, left.Peak, ours.Peak, saved(float64(ours.Peak), float64(left.Peak)), saved(ours.Average, left.Average),
			left.Seconds, ours.Seconds, paper,
		})
	}
	return res, nil
}

func scaling(_ context.Context, o *Options) (*Result, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.RanksPerNode = 1
	most := or(o.Bytes, 64<<20) // an array of one rank on 16 nodes
	res := o.replayed("scaling", "nodes", "leavepinned_peak_bytes", "predictive_peak_bytes", "peak_saved_percent",
		"average_saved_percent", "leavepinned_seconds", "predictive_seconds", "paper_peak_saved_percent")
	paper := map[string][]float64{"strong": {33.19, 34.08, 31.70}, "weak": {33.05, 34.08, 33.09}}
	chart := plot.Chart{
		Title: "peak of registered memory saved, shape of FT", X: plot.Axis{Label: "nodes", Names: []string{"16", "32", "64"}}, Y: plot.Axis{Label: "%", Zero: true},
	}
	for _, kind := range []string{"strong", "weak"} {
		ours, theirs := plot.Series{Name: kind}, plot.Series{Name: kind + ", paper"}
		for i, n := range []int{16, 32, 64} {
			bytes := most
			if kind == "strong" {
				bytes = most * 16 / n
			}
			o.say("%s, %d nodes", kind, n)
			files, err := o.shape("ft", replay.ShapeConfig{
				Ranks: n, Bytes: uint64(bytes), Noise: or(o.Noise, defaultNoise), Spikes: or(o.Spikes, defaultSpikes),
			})
			if err != nil {
				return nil, err
			}
			l, p, err := pair(files, c)
			if err != nil {
				return nil, err
			}
			s := saved(float64(p.Peak), float64(l.Peak))
			res.Rows = append(res.Rows, []any{kind, n, l.Peak, p.Peak, s, saved(p.Average, l.Average), l.Seconds, p.Seconds, paper[kind][i]})
			ours.Points = append(ours.Points, plot.Point{X: float64(i), Y: s})
			theirs.Points = append(theirs.Points, plot.Point{X: float64(i), Y: paper[kind][i]})
		}
		chart.Series = append(chart.Series, ours, theirs)
	}
	res.Charts = []Chart{{"", chart}}
	return res, nil
}

// sharedCores are the programs of figure 8. SP.D.36 took 18.6 s and CG.D.32 17.1 s in table 1; with the 500 and 2500 steps of class D
// (assumed) a step is 37 and 6.8 ms. Pace follows from that, and from messages of a size assumed for so many ranks.
func sharedCores() []struct {
	name  string
	bytes uint64
	pace  float64
} {
	return []struct {
		name  string
		bytes uint64
		pace  float64
	}{{"sp", 555 << 10, 0.06}, {"cg", 1500 << 10, 0.2}}
}

func cores(_ context.Context, o *Options) (*Result, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.RanksPerNode, c.Cores, c.Series = 6, 8, seriesParts
	res := o.replayed("trace", "idle_cores", "helpers", "peak_bytes", "average_bytes", "seconds", "average_saved_percent")
	res.Notes = append(res.Notes, "paper: SP saves more with aggressive sharing, CG only with conservative; seconds of both differ by at most 0.1 %",
		"messages and phases are scaled so that a step takes as long as table 1 says, 37 ms of SP and 6.8 ms of CG if they ran class D's 500 and 2500 steps (assumed, as the messages' sizes are); a slice of the scheduler is 4 ms (assumed), and three helpers share a core")
	for _, p := range sharedCores() {
		name := p.name
		files, err := o.shape(name, replay.ShapeConfig{Ranks: 12, Bytes: p.bytes, Pace: p.pace, Noise: or(o.Noise, defaultNoise), Spikes: or(o.Spikes, defaultSpikes)})
		if err != nil {
			return nil, err
		}
		picture := plot.Chart{
			Title: "registered bytes of a node of 6 ranks on 8 cores, " + name, X: plot.Axis{Label: "seconds", Tight: true},
			Y: plot.Axis{Label: "bytes", Zero: true, Bytes: true},
		}
		var none float64
		for _, idle := range []string{"none", "conservative", "aggressive", "auto"} {
			if c.Idle, err = seats.Parse(idle); err != nil {
				return nil, err
			}
			c.Policy = replay.Predictive
			r, err := replay.Run(files, c)
			if err != nil {
				return nil, err
			}
			if idle == "none" {
				none = r.Average
			}
			res.Rows = append(res.Rows, []any{name, idle, r.Helpers, r.Peak, r.Average, r.Seconds, saved(r.Average, none)})
			picture.Series = append(picture.Series, overTime(idle, r.Seconds, r.Nodes[0]))
		}
		res.Charts = append(res.Charts, Chart{name, picture})
	}
	return res, nil
}
