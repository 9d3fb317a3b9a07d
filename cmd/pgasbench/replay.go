package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/internal/predict"
	"gopgas/internal/replay"
	"gopgas/internal/seats"
	"gopgas/internal/trace"
)

const replayHelp = `Runs a trace of transfers under policies of memory registration, in virtual time, with the constants of --cost: what would
have been registered when, what would have hit, and what it would have cost. No figure of it is a measurement.

A trace is what PGAS_TRACE=DIR makes a program record, or has the --shape of a well-known program.
With --limit or --pinned, memory of other nodes is registered in buckets on demand (firehose), out of the same limit, if the trace
says where in it transfers lie; a second table shows that. Without, or with --whole, it is registered as a whole, uncounted.
--cost is the name of a model (helper-threads, superpipeline: papers' constants and what is derived or assumed beside them,
internal/cost says which; free) and words that change it; what concerns the helper and the kernel's scheduler is assumed:
  register=68us+200ns  deregister=...  fixed part + per page (+ largest residual)
  latency=2us (of a message, one way)  copy=5.2 (GB/s)  net=2 (GB/s, of transfers whose length the trace does not tell)  hash=200ns  compare=5ns  slice=4ms  swap=3us  poll=0 (how late the helper hears of a use)`

// replayCommand replays traces. It is no program of ranks: it runs alone.
func replayCommand(out io.Writer) *cli.Command {
	return &cli.Command{
		Name: "replay", Usage: "replay a trace under policies of registration, in virtual time", Description: replayHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "trace", Usage: "the trace's `DIR`ectory"},
			&cli.StringFlag{Name: "shape", Usage: "instead of a trace, one `OF` " + strings.Join(replay.Shapes(), ", ")},
			&cli.StringFlag{Name: "reg", Value: "leavepinned,predictive,periodicity", Usage: "policies, or all"},
			&cli.StringFlag{Name: "cost", Value: "helper-threads", Usage: "cost model"},
			&cli.IntFlag{Name: "nodes", Usage: "nodes; 0: as recorded"},
			&cli.IntFlag{Name: "ranks-per-node", Usage: "ranks of a node; 0: as recorded"},
			&cli.IntFlag{Name: "cores", Usage: "cores of a node; 0: one for each rank and one for each helper"},
			&cli.StringFlag{Name: "idle", Value: "auto", Usage: "none, conservative, aggressive or auto: who has a helper where cores are short"},
			&cli.BoolFlag{Name: "shuffle", Usage: "group ranks at random, by --seed"},
			&cli.Uint64Flag{Name: "seed", Value: 1},
			bytesFlag("limit", 0, "`BYTES` that a rank may have registered; 0: no limit"),
			bytesFlag("pinned", 0, "`BYTES` of it that are kept for other ranks' buckets; 0: three quarters"),
			bytesFlag("victims", 0, "`BYTES` of it for own transfers and buckets that nobody holds; 0: the rest"),
			bytesFlag("bucket", 0, "`BYTES` of a bucket, a power of two; 0: as it suits what a range is used for"),
			&cli.DurationFlag{Name: "latency", Usage: "of a message, one way; 0: that of --cost"},
			&cli.BoolFlag{Name: "whole", Usage: "memory of other nodes is registered as a whole"},
			bytesFlag("base", 0, "`BYTES` added to each rank's peak and average, as figures do that count pre-registered buffers"),
			bytesFlag("threshold", 16<<10, "`BYTES` from which transfers register"),
			&cli.IntFlag{Name: "window", Value: 2, Usage: "previous calls in a signature, 0 to 4"},
			&cli.IntFlag{Name: "periodicity", Value: 64, Usage: "calls that the periodicity-based predictor looks at, 8 to 1024"},
			&cli.IntFlag{Name: "age", Usage: "longer differences in a row that end a period; 0: it never grows"},
			&cli.IntFlag{Name: "series", Usage: "parts of time for which --json gives each node's peak"},
			&cli.BoolFlag{Name: "json", Usage: "JSON"},
			&cli.IntFlag{Name: "ranks", Value: 4, Usage: "of a shape"},
			&cli.IntFlag{Name: "iterations", Usage: "of a shape; 0: its own"},
			bytesFlag("bytes", 0, "scale of a shape; 0: its own"),
			&cli.Float64Flag{Name: "noise", Value: 0.002, Usage: "of a shape's computation: standard deviation, as a part"},
			&cli.Float64Flag{Name: "spikes", Value: 0.01, Usage: "part of a shape's computation phases that take 5 to 20 % longer"},
			&cli.StringFlag{Name: "save", Usage: "write the trace to `DIR` too"},
		},
		Action: func(c *cli.Context) error { return replayAll(c, out, c.App.ErrWriter) },
	}
}

// replayed is what --json gives.
type replayed struct {
	Command string           `json:"command"`
	Kind    string           `json:"kind"`
	Cost    string           `json:"cost"`
	Ranks   int              `json:"ranks"`
	Events  int              `json:"events"`
	Lost    uint64           `json:"lost"`
	Notes   []string         `json:"notes,omitempty"`
	Base    int64            `json:"base_bytes"` // of each rank, not contained in the results
	Results []*replay.Result `json:"results"`
}

func replayAll(c *cli.Context, out, warn io.Writer) error {
	policies, err := policiesOf(c.String("reg"))
	if err != nil {
		return err
	}
	config, err := replayConfig(c)
	if err != nil {
		return err
	}
	doc := &replayed{Command: strings.Join(os.Args, " "), Kind: "replayed in virtual time", Cost: c.String("cost"), Base: int64(bytesOf(c, "base"))}
	files, err := traceOf(c, doc)
	if err != nil {
		return err
	}
	doc.Ranks = len(files)
	for _, f := range files {
		doc.Events += len(f.Events)
		doc.Lost += f.Lost
	}
	began := time.Now()
	far := newProgress(os.Stderr, func() time.Duration { return time.Since(began) })
	defer far.end()
	for i, p := range policies {
		far.at(i+1, len(policies), "replay "+p.String())
		config.Policy = p
		res, err := replay.Run(files, config)
		if errors.Is(err, replay.ErrNoTargets) { // an older trace, or none with other nodes
			doc.Notes = append(doc.Notes, "memory of other nodes is registered as a whole: "+replay.ErrNoTargets.Error())
			config.Hose = nil
			res, err = replay.Run(files, config)
		}
		if limit := (*replay.LimitError)(nil); errors.As(err, &limit) {
			doc.Notes = append(doc.Notes, err.Error()) // that is this policy's result
			continue
		}
		if err != nil {
			return err
		}
		doc.Results = append(doc.Results, res)
	}
	far.end()
	if why := idle(doc.Results); why != "" {
		fmt.Fprintln(warn, why)
	}
	if c.Bool("json") {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(doc)
	}
	return doc.table(out)
}

// idle says why nothing was registered, where nothing could be.
func idle(results []*replay.Result) string {
	if len(results) == 0 || len(results[0].Nodes) > 1 || results[0].Local == 0 || results[0].Calls+results[0].Small > 0 {
		return ""
	}
	if len(results[0].Nodes[0].Ranks) == 1 {
		return "the only rank transfers with itself: nothing is registered; record more ranks"
	}
	return "all ranks are on one node: nothing is registered; --ranks-per-node 1 spreads them"
}

func policiesOf(names string) ([]replay.Policy, error) {
	if names == "all" {
		return replay.Policies(), nil
	}
	var all []replay.Policy
	for name := range strings.SplitSeq(names, ",") {
		p, err := replay.ParsePolicy(name)
		if err != nil {
			return nil, fmt.Errorf("--reg: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

func replayConfig(c *cli.Context) (replay.Config, error) {
	costs, err := replay.ParseCosts(c.String("cost"))
	if err != nil {
		return replay.Config{}, fmt.Errorf("--cost: %w", err)
	}
	idle, err := seats.Parse(c.String("idle"))
	if err != nil {
		return replay.Config{}, fmt.Errorf("--idle: %w", err)
	}
	for name, limits := range map[string][2]int{
		"window": {0, predict.MaxWindow}, "periodicity": {8, 1024}, "age": {0, 1 << 20}, "series": {0, 1 << 20},
		"nodes": {0, 1 << 20}, "ranks-per-node": {0, 1 << 20}, "cores": {0, 1 << 20},
	} {
		if v := c.Int(name); v < limits[0] || v > limits[1] {
			return replay.Config{}, fmt.Errorf("--%s %d: want %d to %d", name, v, limits[0], limits[1])
		}
	}
	if v := bytesOf(c, "threshold"); v < 1 || v > 1<<40 {
		return replay.Config{}, fmt.Errorf("--threshold %d: want 1 to %d", v, 1<<40)
	}
	if d := c.Duration("latency"); d != 0 {
		if costs.Latency = d.Nanoseconds(); d < 0 || d > replay.MostCost {
			return replay.Config{}, fmt.Errorf("--latency %v: want 0 to %v", d, replay.MostCost)
		}
	}
	config := replay.Config{
		Costs: costs, Nodes: c.Int("nodes"), RanksPerNode: c.Int("ranks-per-node"), Cores: c.Int("cores"), Idle: idle,
		Shuffle: c.Bool("shuffle"), Seed: c.Uint64("seed"), Limit: int64(bytesOf(c, "limit")), Threshold: bytesOf(c, "threshold"),
		Series: c.Int("series"),
	}
	hose := &replay.Hose{Pinned: int64(bytesOf(c, "pinned")), Victims: int64(bytesOf(c, "victims")), Bucket: int64(bytesOf(c, "bucket"))}
	switch given := *hose != (replay.Hose{}); {
	case c.Bool("whole") && given:
		return replay.Config{}, errors.New("--whole: there are no buckets, so --pinned, --victims and --bucket say nothing")
	case c.Bool("whole"):
	case given || config.Limit > 0:
		config.Hose = hose
	}
	config.Predictor = predict.Config{Window: c.Int("window"), Age: c.Int("age"), Periodicity: c.Int("periodicity")}
	if config.Predictor.Window == 0 {
		config.Predictor.Window = predict.NoWindow
	}
	return config, nil
}

// traceOf reads or makes the trace.
func traceOf(c *cli.Context, doc *replayed) (files []*trace.File, err error) {
	dir, shape := c.String("trace"), c.String("shape")
	switch {
	case (dir == "") == (shape == ""):
		return nil, errors.New("replay: want one of --trace and --shape")
	case dir != "":
		files, err = trace.ReadDir(dir)
		if errors.Is(err, trace.ErrCut) { // what there is can be replayed
			doc.Notes, err = append(doc.Notes, err.Error()), nil
		}
	default:
		files, err = replay.Synthesize(shape, replay.ShapeConfig{
			Ranks: c.Int("ranks"), Iterations: c.Int("iterations"), Bytes: uint64(bytesOf(c, "bytes")), Noise: c.Float64("noise"),
			Spikes: c.Float64("spikes"), Seed: c.Uint64("seed"),
		})
		doc.Notes = append(doc.Notes, fmt.Sprintf("synthetic: shape %s, noise %g, spikes %g, seed %d",
			shape, c.Float64("noise"), c.Float64("spikes"), c.Uint64("seed")))
	}
	if err != nil {
		return nil, err
	}
	if to := c.String("save"); to != "" {
		return files, saveTrace(to, files)
	}
	return files, nil
}

func saveTrace(dir string, files []*trace.File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("save a trace: %w", err)
	}
	for _, f := range files {
		to, err := os.Create(filepath.Join(dir, trace.FileName(f.Rank)))
		if err != nil {
			return fmt.Errorf("save a trace: %w", err)
		}
		w := trace.NewWriter(to, f.Head)
		for i := range f.Events {
			w.Write(&f.Events[i])
		}
		w.Lose(f.Lost)
		if err := errors.Join(w.Close(), to.Close()); err != nil {
			return fmt.Errorf("save a trace: %w", err)
		}
	}
	return nil
}

// table prints one line for each policy. Percentages of predictions are of those that could be compared with a use.
func (d *replayed) table(out io.Writer) error {
	fmt.Fprintf(out, "# %s; cost %s; %d ranks, %d events, %d lost\n", d.Kind, d.Cost, d.Ranks, d.Events, d.Lost)
	for _, n := range d.Notes {
		fmt.Fprintln(out, "#", n)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tpeak MB\taverage MB\tseconds\tcritical ms\thits\tlate\tfirst\tagain\tcopies\tfallback\tpredicted\t5 %\t0.5 %\tmispredicted\thelpers\t")
	for _, r := range d.Results {
		ranks := 0
		for _, n := range r.Nodes {
			ranks = max(ranks, len(n.Ranks))
		}
		base, p := float64(d.Base)*float64(ranks), r.Prediction
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.3f\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t\n", r.Policy,
			(float64(r.Peak)+base)/1e6, (r.Average+base)/1e6, r.Seconds, float64(r.Slowest)/1e6, r.Hits, r.Late, r.First, r.Again,
			r.Copies, r.Fallback, p.Predicted, percent(p.Within5, p.Predicted), percent(p.WithinHalf, p.Predicted),
			p.Mispredicted, r.Helpers)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return d.hoses(out)
}

// hoses prints one line for each policy about the memory of other nodes.
func (d *replayed) hoses(out io.Writer) error {
	if len(d.Results) == 0 || d.Results[0].Hose == nil {
		return nil
	}
	h := d.Results[0].Hose
	fmt.Fprintf(out, "# firehose: limit %d bytes a rank, %d of them for peers; units of %d bytes: %d of each other rank, %d for victims; without: memory of other nodes registered beforehand\n",
		h.Limit, h.Pinned, h.Unit, h.Share, h.Victims)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tlent peak MB\taverage MB\thits\tjoins\tmisses\tahead\tforeseen\tlate\twasted\ttold\tuntold\tblocked\tmoves\tcarried\tby message\tregistered\tderegistered\tresurrected\tshared\tcritical ms\twithout\tseconds\twithout\t")
	for _, r := range d.Results {
		var peak int64
		var average float64
		for _, n := range r.Nodes {
			peak = max(peak, n.LentPeak)
			average += n.LentAverage / float64(len(r.Nodes))
		}
		h := r.Hose
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.3f\t%.3f\t\n", r.Policy,
			float64(peak)/1e6, average/1e6, h.Hits, h.Joins, h.Misses, h.Ahead, h.Foreseen, h.Late, h.Wasted, h.Told, h.Untold, h.Blocked, h.Moves, h.Carried, h.ByMessage, h.Registered,
			h.Deregistered, h.Resurrected, h.Shared, float64(r.Slowest)/1e6, float64(h.SlowestWithout)/1e6, r.Seconds, h.SecondsWithout)
	}
	return t.Flush()
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100*float64(part)/float64(whole))
}
