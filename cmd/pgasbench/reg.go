package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/trace"
)

const regHelp = `Makes the figures of the papers on registered memory, measured on a NIC of this machine or replayed in virtual time with the
constants of --cost; each result says which. Without a name it sets all policies side by side on the reuse microbenchmark.
--plot writes the charts of a figure (FILE.svg; where there are several, FILE-NAME.svg each); --out writes table, JSON and
charts of each figure named to a directory.

It is no program of ranks: start it without a launcher.`

// regCommand makes figures.
func regCommand(out io.Writer) *cli.Command {
	var list []string
	for _, f := range figures.All() {
		list = append(list, fmt.Sprintf("  %-11s %s (%s)", f.Name, f.Title, f.Paper))
	}
	return &cli.Command{
		Name: "reg", Usage: "the papers' figures on registered memory, as tables and plots", ArgsUsage: "[FIGURE...|all]",
		Description: regHelp + "\n\n" + strings.Join(list, "\n"),
		Flags: append(figureFlags(), []cli.Flag{
			bytesFlag("bytes", 0, "of a transfer; 0: the figure's own"),
			&cli.IntFlag{Name: "iterations", Usage: "of the microbenchmark; 0: the figure's own"},
			&cli.DurationFlag{Name: "compute", Usage: "after each call of the microbenchmark; 0: the figure's own"},
			&cli.StringFlag{Name: "cost", Value: "helper-threads", Usage: "cost model of replayed figures"},
			&cli.StringSliceFlag{Name: "trace", Usage: "recorded `NAME=DIR` instead of shapes, for accuracy, windows and nas; may be repeated"},
			&cli.Float64Flag{Name: "noise", Usage: "of a shape's computation, as a part; 0: the figure's own"},
			&cli.Float64Flag{Name: "spikes", Usage: "part of a shape's phases that are disturbed; 0: the figure's own"},
		}...),
		Action: func(c *cli.Context) error { return makeFigures(c, out) },
	}
}

// figureFlags are the flags of all commands that make figures.
func figureFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "transport", Value: "soft", Usage: "`NIC` of measured figures"},
		&cli.IntFlag{Name: "reps", Value: 1, Usage: "repeats of measured figures"},
		bytesFlag("max", 0, "largest size of a sweep in `BYTES`; 0: the figure's own"),
		&cli.BoolFlag{Name: "fine", Usage: "sizes of a sweep grow by 5 % instead of doubling"},
		&cli.Uint64Flag{Name: "seed", Value: 1},
		&cli.BoolFlag{Name: "json", Usage: "JSON"},
		&cli.BoolFlag{Name: "csv", Usage: "comma-separated values"},
		&cli.StringFlag{Name: "plot", Usage: "write the charts to `FILE.svg`"},
		&cli.StringFlag{Name: "out", Usage: "write everything to `DIR`"},
	}
}

// made is a figure with what it means nothing without.
type made struct {
	header
	Figure  string   `json:"figure"`
	Paper   string   `json:"paper"`
	Title   string   `json:"title"`
	Kind    string   `json:"kind"`
	Notes   []string `json:"notes"`
	result  *figures.Result
	Results []map[string]any `json:"rows"`
}

func makeFigures(c *cli.Context, out io.Writer) error {
	chosen, err := chosenFigures(c.Args().Slice())
	if err != nil {
		return err
	}
	o, err := figureOptions(c)
	if err != nil {
		return err
	}
	return giveFigures(c, out, chosen, o)
}

// giveFigures makes figures and gives them to whoever asked.
func giveFigures(c *cli.Context, out io.Writer, chosen []figures.Figure, o figures.Options) error {
	to := c.String("plot")
	if err := checkPlot(to, 0); err != nil {
		return err
	}
	if to != "" && len(chosen) > 1 {
		return fmt.Errorf("--plot %s: the charts of %d figures would be one file; want one figure, or --out and a folder", to, len(chosen))
	}
	if dir := c.String("out"); dir != "" { // before anything is measured
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		for _, f := range chosen {
			if err := writable(filepath.Join(dir, f.Name+".csv")); err != nil {
				return fmt.Errorf("--out: %w; want a folder that you may write to", err)
			}
		}
	}
	for _, f := range chosen {
		began := time.Now()
		m := &made{header: headerOf(1, "threads unbound", strings.Join(os.Args, " ")), Figure: f.Name, Paper: f.Paper, Title: f.Title}
		fmt.Fprintf(os.Stderr, "figure %s: %s\n", f.Name, f.Title)
		err := untilTold(c.Context, dieOf, func(ctx context.Context) (err error) {
			m.result, err = f.Run(ctx, o)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "figure %s: %.1f s\n", f.Name, time.Since(began).Seconds())
		m.Kind, m.Notes = m.result.Kind, m.result.Notes
		if err := m.give(c, out); err != nil {
			return err
		}
	}
	return nil
}

func chosenFigures(names []string) (all []figures.Figure, err error) {
	switch {
	case len(names) == 0:
		names = []string{"reuse"}
	case len(names) == 1 && names[0] == "all":
		return figures.All(), nil
	}
	for _, n := range names {
		if strings.HasPrefix(n, "-") {
			return nil, fmt.Errorf("reg: %q: options come before the figures", n)
		}
		f, err := figures.Find(n)
		if err != nil {
			return nil, fmt.Errorf("reg: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

// checkFigures refuses what no command that makes figures can do.
func checkFigures(c *cli.Context, mostIterations int) error {
	command := c.Command.Name
	if n := c.Int("reps"); n < 1 || n > 1000 {
		return fmt.Errorf("%s: --reps %d: want 1 to 1000", command, n)
	}
	if n := c.Int("iterations"); n < 0 || n > mostIterations {
		return fmt.Errorf("%s: --iterations %d: want 0 to %d", command, n, mostIterations)
	}
	for _, name := range []string{"bytes", "max"} {
		if n := bytesOf(c, name); n > 1<<30 {
			return fmt.Errorf("%s: --%s %s: want 0 to 1G", command, name, c.Generic(name))
		}
	}
	if c.Bool("json") && c.Bool("csv") {
		return fmt.Errorf("%s: --csv and --json: want one of them", command)
	}
	return nil
}

func figureOptions(c *cli.Context) (o figures.Options, err error) {
	if err := checkFigures(c, 1<<16); err != nil {
		return o, err
	}
	if noise, spikes := c.Float64("noise"), c.Float64("spikes"); c.Duration("compute") < 0 || !(noise >= 0 && noise <= 100) || !(spikes >= 0 && spikes <= 1) {
		return o, errors.New("reg: --compute, --noise, --spikes: want 0 or more, --noise at most 100, and --spikes at most 1")
	}
	if b := bytesOf(c, "bytes"); b > 0 && b < 17<<10 {
		return o, fmt.Errorf("reg: --bytes %d: want at least %d, below which transfers are copied", b, 17<<10)
	}
	o = figures.Options{
		Transport: c.String("transport"), Reps: c.Int("reps"), Bytes: bytesOf(c, "bytes"), Iterations: c.Int("iterations"),
		Compute: c.Duration("compute"), Fine: c.Bool("fine"), Most: bytesOf(c, "max"), Cost: c.String("cost"), Noise: c.Float64("noise"),
		Spikes: c.Float64("spikes"), Seed: c.Uint64("seed"), Progress: os.Stderr,
		Ranks: startRanks,
	}
	o.Traces, err = tracesOf("reg", c.StringSlice("trace"))
	return o, err
}

// tracesOf reads recorded traces that are named NAME=DIR.
func tracesOf(command string, named []string) (all []figures.Trace, err error) {
	for _, t := range named {
		name, dir, ok := strings.Cut(t, "=")
		if !ok || name == "" || dir == "" {
			return nil, fmt.Errorf("%s: --trace %q: want NAME=DIR", command, t)
		}
		files, err := trace.ReadDir(dir)
		if errors.Is(err, trace.ErrCut) { // what there is can be replayed
			fmt.Fprintln(os.Stderr, "pgasbench:", err)
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		all = append(all, figures.Trace{Name: name, Files: files})
	}
	return all, nil
}

// give prints and writes what was asked for.
func (m *made) give(c *cli.Context, out io.Writer) error {
	if to := c.String("plot"); to != "" {
		if err := m.plot(to); err != nil {
			return err
		}
	}
	if dir := c.String("out"); dir != "" {
		return m.writeAll(dir)
	}
	switch {
	case c.Bool("json"):
		return m.json(out)
	case c.Bool("csv"):
		return m.csv(out)
	}
	return m.table(out)
}

func (m *made) writeAll(dir string) error {
	for ext, write := range map[string]func(io.Writer) error{".csv": m.csv, ".json": m.json} {
		if err := toFile(filepath.Join(dir, m.Figure+ext), write); err != nil {
			return err
		}
	}
	return m.plot(filepath.Join(dir, m.Figure+".svg"))
}

func toFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write a figure: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Fprintln(os.Stderr, "wrote", name)
	return nil
}

// plot writes each chart, with where its values come from.
func (m *made) plot(to string) error {
	for i := range m.result.Charts {
		ch := &m.result.Charts[i]
		ch.Notes = append([]string{m.Kind + ", " + m.where()}, append(ch.Notes, m.Command)...)
		svg, err := ch.SVG()
		if err != nil {
			return fmt.Errorf("figure %s: %w", m.Figure, err)
		}
		if err := toFile(between(to, ch.Name), func(w io.Writer) error { _, err := w.Write(svg); return err }); err != nil {
			return err
		}
	}
	return nil
}

// between puts a chart's name into that of a file, before its extension.
func between(file, name string) string {
	if name == "" {
		return file
	}
	ext := filepath.Ext(file)
	return strings.TrimSuffix(file, ext) + "-" + name + ext
}

func (m *made) lines() []string {
	lines := append([]string{fmt.Sprintf("%s: %s (%s)", m.Figure, m.Title, m.Paper), m.Kind}, m.header.lines()...)
	return append(lines, m.Notes...)
}

func (m *made) json(out io.Writer) error {
	m.Results = nil
	for _, r := range m.result.Rows {
		row := map[string]any{}
		for i, c := range m.result.Columns {
			row[c] = r[i]
		}
		m.Results = append(m.Results, row)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

func (m *made) csv(out io.Writer) error {
	for _, l := range m.lines() {
		fmt.Fprintln(out, "#", strings.ReplaceAll(l, "\n", "; "))
	}
	w := csv.NewWriter(out)
	_ = w.Write(m.result.Columns) // an error of it comes back from Error
	for _, r := range m.result.Rows {
		_ = w.Write(cells(r, exact))
	}
	w.Flush()
	return w.Error()
}

func (m *made) table(out io.Writer) error {
	for _, l := range m.lines() {
		fmt.Fprintln(out, "#", l)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, strings.Join(m.result.Columns, "\t")+"\t")
	for _, r := range m.result.Rows {
		fmt.Fprintln(t, strings.Join(cells(r, short), "\t")+"\t")
	}
	return t.Flush()
}

// short shows four digits, and the whole of what has more before the point.
func short(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func cells(row []any, float func(float64) string) (out []string) {
	for _, v := range row {
		if f, ok := v.(float64); ok {
			out = append(out, float(f))
		} else {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}
