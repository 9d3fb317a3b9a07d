package figures

import (
	"context"
	"fmt"

	"gopgas/internal/plot"
	"gopgas/internal/replay"
)

// hosed are the programs of which memory of other nodes is registered in buckets: two that come back to the same places, and one that
// never does. Sizes are such that what all peers use of a rank's memory lies within the sweep.
func (o *Options) hosed() ([]Trace, error) {
	if len(o.Traces) > 0 {
		return o.Traces, nil
	}
	var all []Trace
	for _, s := range []struct {
		name  string
		bytes uint64
	}{{"bt", 256 << 10}, {"ft", 8 << 20}, {"scatter", 8 << 20}} {
		files, err := o.shape(s.name, replay.ShapeConfig{
			Bytes: s.bytes, Noise: or(o.Noise, defaultNoise), Spikes: or(o.Spikes, defaultSpikes), Iterations: or(o.Iterations, 30),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, Trace{s.name, files})
	}
	return all, nil
}

// hosesOwn is what ranks keep for their own transfers and for buckets that nobody holds.
const hosesOwn = 32 << 20

// hoses varies what a rank keeps registered for its peers.
func hoses(_ context.Context, o *Options) (*Result, error) {
	budgets, err := o.Sweep(1<<20, 64<<20)
	if err != nil {
		return nil, err
	}
	all, err := o.hosed()
	if err != nil {
		return nil, err
	}
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.RanksPerNode = 1
	res := o.replayed("trace", "policy", "pinned_bytes", "share_units", "unit_bytes", "hits", "joins", "misses", "misses_percent",
		"ahead", "foreseen", "late", "wasted", "told", "untold", "registered", "deregistered",
		"resurrected", "lent_peak_bytes", "critical_ms", "critical_ms_without", "longer_percent")
	res.Notes = append(res.Notes,
		fmt.Sprintf("the library's own accounting (package firehose) on both sides; one rank a node; %d bytes of each rank are for its own transfers and for buckets that nobody holds", hosesOwn),
		"predictive: the helper asks for buckets ahead of their use, too; ahead: its moves; foreseen: uses that would have missed without; late: uses that came before the answer; wasted: buckets given up unused; told: uses of which it heard, and untold, since their call sites had gained nothing",
		"without: memory of other nodes registered beforehand, uncounted; critical: of the rank that has most; longer: until the last transfer is done")
	missed := plot.Chart{
		Title: "transfers that wait for a bucket", X: plot.Axis{Label: "registered for peers, bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: "%", Zero: true},
	}
	critical := missed
	critical.Title, critical.Y = "critical path beyond registration beforehand", plot.Axis{Label: "ms", Zero: true}
	type line struct {
		Trace
		policy replay.Policy
		name   string
	}
	var lines []line
	for _, t := range all {
		lines = append(lines, line{t, replay.LeavePinned, t.Name}, line{t, replay.Predictive, t.Name + ", ahead"})
	}
	for _, t := range lines {
		c.Policy = t.policy
		a, b := plot.Series{Name: t.name}, plot.Series{Name: t.name}
		for _, m := range budgets {
			c.Hose = &replay.Hose{Pinned: int64(m), Victims: hosesOwn}
			r, err := replay.Run(t.Files, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %d bytes for peers: %w", t.Name, m, err)
			}
			h := r.Hose
			var lent int64
			for _, n := range r.Nodes {
				lent = max(lent, n.LentPeak)
			}
			percent := 100 * float64(h.Misses+h.Joins) / float64(max(1, h.Hits+h.Misses+h.Joins))
			with, without := float64(r.Slowest)/1e6, float64(h.SlowestWithout)/1e6
			res.Rows = append(res.Rows, []any{
				t.Name, r.Policy, m, h.Share, h.Unit, h.Hits, h.Joins, h.Misses, percent, h.Ahead, h.Foreseen, h.Late, h.Wasted, h.Told, h.Untold, h.Registered, h.Deregistered, h.Resurrected, lent, with, without,
				longer(r.Seconds, h.SecondsWithout),
			})
			a.Points = append(a.Points, plot.Point{X: float64(m), Y: percent})
			b.Points = append(b.Points, plot.Point{X: float64(m), Y: with - without})
		}
		missed.Series, critical.Series = append(missed.Series, a), append(critical.Series, b)
	}
	res.Charts = []Chart{{"misses", missed}, {"critical", critical}}
	return res, nil
}
