package figures

import (
	"context"
	"fmt"

	"gopgas/internal/plot"
	"gopgas/internal/predict"
	"gopgas/internal/replay"
	"gopgas/internal/trace"
)

// The paper's shares of predictions, in percent: within 5 and within 0.5 % of the observed period.
const (
	paperOurs5, paperOursHalf     = 94.68, 74.89
	paperTheirs5, paperTheirsHalf = 84.93, 40.0 // "less than 40 %"
)

// programs are the shapes of NAS kernels.
func programs() []string { return []string{"bt", "lu", "sp", "cg", "ft"} }

// defaultPeriodicity is the window of the periodicity-based predictor where it is not varied.
const defaultPeriodicity = 64

// predictor is one that is compared.
type predictor struct {
	name   string
	policy replay.Policy
	config predict.Config
}

// predictors are those compared; on recorded traces also one that forgets a period which the program no longer keeps.
func (o *Options) predictors() []predictor {
	all := []predictor{
		{"context-aware", replay.Predictive, predict.Config{}},
		{"periodicity, latest", replay.Periodicity, predict.Config{Periodicity: defaultPeriodicity}},
		{"periodicity, mean", replay.Periodicity, predict.Config{Periodicity: defaultPeriodicity, Mean: true}},
	}
	if len(o.Traces) > 0 {
		all = append(all, predictor{"context-aware, ageing 3", replay.Predictive, predict.Config{Age: 3}})
	}
	return all
}

// hits are the shares, in percent, of predictions and of all uses that were predicted so well.
type hits struct {
	uses, predicted, mistaken  uint64
	of5, ofHalf, all5, allHalf float64
	traces, silent             int // in a mean: how many, and how many without any prediction
}

// judge replays a trace with a predictor, with constants under which only the predictor matters.
func (p predictor) judge(files []*trace.File) (h hits, err error) {
	c, err := replay.ParseCosts("free")
	if err != nil {
		return h, err
	}
	r, err := replay.Run(files, replay.Config{Policy: p.policy, Costs: c, Predictor: p.config, RanksPerNode: 1})
	if err != nil {
		return h, err
	}
	if r.Calls == 0 {
		return h, fmt.Errorf("no transfer of the trace needs registered memory: of %d small ones and %d between ranks of one node", r.Small, r.Local)
	}
	s := r.Prediction
	h = hits{uses: r.Calls, predicted: s.Predicted, mistaken: s.Mispredicted}
	share := func(n, of uint64) float64 {
		if of == 0 {
			return 0
		}
		return 100 * float64(n) / float64(of)
	}
	h.of5, h.ofHalf = share(s.Within5, s.Predicted), share(s.WithinHalf, s.Predicted)
	h.all5, h.allHalf = share(s.Within5, r.Calls), share(s.WithinHalf, r.Calls)
	return h, nil
}

// traces are the recorded ones, or else those of the programs' shapes.
func (o *Options) traces(noise, spikes float64) (all []Trace, err error) {
	if len(o.Traces) > 0 {
		return o.Traces, nil
	}
	for _, name := range programs() {
		files, err := o.shape(name, replay.ShapeConfig{Noise: noise, Spikes: spikes})
		if err != nil {
			return nil, err
		}
		all = append(all, Trace{name, files})
	}
	return all, nil
}

func (o *Options) shape(name string, c replay.ShapeConfig) ([]*trace.File, error) {
	c.Seed, c.Iterations = or(o.Seed, 1), o.Iterations
	return replay.Synthesize(name, c)
}

// Noise of the shapes where Options leave it open: a processor's own, and phases that something else disturbs.
const defaultNoise, defaultSpikes = 0.002, 0.01

const accuracyNote = "of5 and ofhalf: percent of the predictions made that lie within 5 and 0.5 % of the observed period; " +
	"all5 and allhalf: percent of all uses, so that a use without a prediction counts as one missed; " +
	"a mean of the former is over the traces on which predictions were made"

func (o *Options) noiseNote(spikes float64) string {
	if len(o.Traces) > 0 {
		return "recorded traces"
	}
	return fmt.Sprintf("synthetic traces: noise %g of a phase, %g of the phases 5 to 20 %% longer, seed %d",
		or(o.Noise, defaultNoise), spikes, or(o.Seed, 1))
}

func accuracy(_ context.Context, o *Options) (*Result, error) {
	spikes := or(o.Spikes, defaultSpikes)
	all, err := o.traces(or(o.Noise, defaultNoise), spikes)
	if err != nil {
		return nil, err
	}
	res := &Result{
		Kind:    "replayed in virtual time, registrations free",
		Columns: []string{"trace", "predictor", "uses", "predictions", "of5", "ofhalf", "all5", "allhalf", "mispredicted"},
		Notes: []string{
			o.noiseNote(spikes), accuracyNote,
			fmt.Sprintf("paper: context-aware %.2f and %.2f, periodicity %.2f and less than %.0f", paperOurs5, paperOursHalf, paperTheirs5, paperTheirsHalf),
			fmt.Sprintf("periodicity: window of %d calls", defaultPeriodicity),
		},
	}
	kinds := []struct {
		name, title string
		of          func(hits) float64
	}{
		{"predictions", "predictions within 0.5 % of the period", func(h hits) float64 { return h.ofHalf }},
		{"uses", "uses predicted within 0.5 % of the period", func(h hits) float64 { return h.allHalf }},
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	names = append(names, "mean")
	for _, k := range kinds {
		res.Charts = append(res.Charts, Chart{k.name, plot.Chart{
			Title: k.title, X: plot.Axis{Names: names}, Y: plot.Axis{Label: "%"}, Bars: true, Notes: []string{o.noiseNote(spikes)},
		}})
	}
	for _, p := range o.predictors() {
		var sum hits
		series := [2]plot.Series{{Name: p.name}, {Name: p.name}}
		for i, t := range all {
			h, err := p.judge(t.Files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			res.Rows = append(res.Rows, h.row(t.Name, p.name))
			sum.add(h)
			for k := range kinds {
				series[k].Points = append(series[k].Points, plot.Point{X: float64(i), Y: kinds[k].of(h)})
			}
		}
		sum.settle()
		res.Rows = append(res.Rows, sum.row("mean", p.name))
		for k := range kinds {
			series[k].Points = append(series[k].Points, plot.Point{X: float64(len(all)), Y: kinds[k].of(sum)})
			res.Charts[k].Series = append(res.Charts[k].Series, series[k])
		}
	}
	return res, nil
}

func (s hits) row(trace, name string) []any {
	return []any{trace, name, s.uses, s.predicted, s.of5, s.ofHalf, s.all5, s.allHalf, s.mistaken}
}

// add takes h into a sum over traces.
func (s *hits) add(h hits) {
	s.uses, s.predicted, s.mistaken = s.uses+h.uses, s.predicted+h.predicted, s.mistaken+h.mistaken
	s.of5, s.ofHalf, s.all5, s.allHalf = s.of5+h.of5, s.ofHalf+h.ofHalf, s.all5+h.all5, s.allHalf+h.allHalf
	s.traces++
	if h.predicted == 0 {
		s.silent++
	}
}

// settle makes a sum a mean in which each trace counts the same; of predictions, those traces on which there were any.
func (s *hits) settle() {
	n, spoke := float64(max(s.traces, 1)), float64(max(s.traces-s.silent, 1))
	s.of5, s.ofHalf, s.all5, s.allHalf = s.of5/spoke, s.ofHalf/spoke, s.all5/n, s.allHalf/n
}
