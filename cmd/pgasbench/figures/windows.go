package figures

import (
	"context"
	"fmt"

	"gopgas/internal/plot"
	"gopgas/internal/predict"
	"gopgas/internal/replay"
)

// windows varies what the predictors look at: calls before the current one, and calls that must hold a pattern twice.
func windows(_ context.Context, o *Options) (*Result, error) {
	spikes := or(o.Spikes, defaultSpikes)
	all, err := o.traces(or(o.Noise, defaultNoise), spikes)
	if err != nil {
		return nil, err
	}
	if len(o.Traces) == 0 { // figure 4 of the paper
		files, err := o.shape("nest", replay.ShapeConfig{Noise: or(o.Noise, defaultNoise), Spikes: spikes})
		if err != nil {
			return nil, err
		}
		all = append(all, Trace{"nest", files})
	}
	res := &Result{
		Kind:    "replayed in virtual time, registrations free",
		Columns: []string{"predictor", "window", "trace", "predictions", "of5", "ofhalf", "all5", "allhalf"},
		Notes: []string{
			o.noiseNote(spikes), accuracyNote,
			"paper, figure 6: without previous calls (window 0) CG loses 20 points within 0.5 %; the periodicity-based predictor is highly sensitive to its window",
		},
	}
	ours := plot.Chart{
		Title: "context-aware predictor: uses predicted within 0.5 %",
		X:     plot.Axis{Label: "previous calls in a signature", Names: []string{"0", "1", "2", "3", "4"}}, Y: plot.Axis{Label: "%", Zero: true},
	}
	theirs := plot.Chart{
		Title: "periodicity-based predictor: uses predicted within 0.5 %",
		X:     plot.Axis{Label: "calls in the window", Log: 2}, Y: plot.Axis{Label: "%", Zero: true},
	}
	for _, t := range all {
		a, b := plot.Series{Name: t.Name}, plot.Series{Name: t.Name}
		for w := range predict.MaxWindow + 1 {
			c := predict.Config{Window: or(w, predict.NoWindow)}
			h, err := predictor{"", replay.Predictive, c}.judge(t.Files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			res.Rows = append(res.Rows, []any{"context-aware", w, t.Name, h.predicted, h.of5, h.ofHalf, h.all5, h.allHalf})
			a.Points = append(a.Points, plot.Point{X: float64(w), Y: h.allHalf})
		}
		for _, w := range Sizes(8, 1024, o.Fine) {
			h, err := predictor{"", replay.Periodicity, predict.Config{Periodicity: w}}.judge(t.Files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			res.Rows = append(res.Rows, []any{"periodicity", w, t.Name, h.predicted, h.of5, h.ofHalf, h.all5, h.allHalf})
			b.Points = append(b.Points, plot.Point{X: float64(w), Y: h.allHalf})
		}
		ours.Series, theirs.Series = append(ours.Series, a), append(theirs.Series, b)
	}
	res.Charts = []Chart{{"context", ours}, {"periodicity", theirs}}
	return res, nil
}

// jitter varies how many phases are disturbed: it says how far the predictors differ, and where.
func jitter(_ context.Context, o *Options) (*Result, error) {
	res := &Result{
		Kind:    "replayed in virtual time, registrations free",
		Columns: []string{"spikes", "predictor", "predictions", "of5", "ofhalf", "all5", "allhalf"},
		Notes: []string{
			fmt.Sprintf("mean of the shapes %v, each with equal weight; noise %g; seed %d; spikes: part of the phases that are 5 to 20 %% longer",
				programs(), or(o.Noise, defaultNoise), or(o.Seed, 1)), accuracyNote,
		},
	}
	made := plot.Chart{
		Title: "predictions within 0.5 %, by disturbance",
		X:     plot.Axis{Label: "part of the phases that are disturbed", Tight: true}, Y: plot.Axis{Label: "%", Zero: true},
	}
	used := made
	used.Title = "uses predicted within 0.5 %, by disturbance"
	parts := []float64{0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16}
	if o.Spikes > 0 {
		parts = []float64{0, o.Spikes}
	}
	for _, p := range o.predictors() {
		a, b := plot.Series{Name: p.name}, plot.Series{Name: p.name}
		for _, spikes := range parts {
			var sum hits
			for _, name := range programs() {
				files, err := o.shape(name, replay.ShapeConfig{Noise: or(o.Noise, defaultNoise), Spikes: spikes})
				if err != nil {
					return nil, err
				}
				h, err := p.judge(files)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				sum.add(h)
			}
			sum.settle()
			res.Rows = append(res.Rows, []any{spikes, p.name, sum.predicted, sum.of5, sum.ofHalf, sum.all5, sum.allHalf})
			a.Points = append(a.Points, plot.Point{X: spikes, Y: sum.ofHalf})
			b.Points = append(b.Points, plot.Point{X: spikes, Y: sum.allHalf})
		}
		made.Series, used.Series = append(made.Series, a), append(used.Series, b)
	}
	res.Charts = []Chart{{"predictions", made}, {"uses", used}}
	return res, nil
}
