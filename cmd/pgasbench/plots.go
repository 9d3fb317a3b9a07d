package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gopgas/internal/plot"
)

// plot draws what was measured: a sweep over sizes as a line with the range of its repeats, anything else as a list of dots;
// a file for each unit.
func (b *bench) plot(h header) error {
	notes := []string{h.where(), fmt.Sprintf("%d ranks, %s; median and range of %d repeats", h.Ranks, h.Pinned, b.set.reps), h.Command}
	units := unitsOf(b.results)
	for _, unit := range units {
		svg, err := draw(b.results, unit, notes)
		if err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
		name := ""
		if len(units) > 1 {
			name = strings.ToLower(strings.NewReplacer("/", "-", " ", "-", "%", "percent").Replace(unit))
		}
		err = toFile(between(b.set.plot, name), func(w io.Writer) error { _, err := w.Write(svg); return err })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkPlot refuses a picture that could not be written after all has been measured. Only rank 0 writes one.
func checkPlot(file string, rank int) error {
	if file == "" || rank != 0 {
		return nil
	}
	switch dir, err := os.Stat(filepath.Dir(file)); {
	case err != nil:
		return fmt.Errorf("--plot %s: %w; want a file in a folder that is there", file, err)
	case !dir.IsDir():
		return fmt.Errorf("--plot %s: %s is not a folder", file, filepath.Dir(file))
	case filepath.Ext(file) != ".svg" && filepath.Ext(file) != "":
		return fmt.Errorf("--plot %s: want a name that ends in .svg, which is what it is", file)
	}
	if err := writable(file); err != nil {
		return fmt.Errorf("--plot: %w; want a file that you may write to", err)
	}
	return nil
}

// writable says why a file could not be written; it leaves all as it was.
func writable(file string) error {
	_, missing := os.Lstat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if missing != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// unitsOf are the units there are, in the order in which they come.
func unitsOf(results []result) (units []string) {
	seen := map[string]bool{}
	for _, r := range results {
		if !seen[r.Unit] {
			units, seen[r.Unit] = append(units, r.Unit), true
		}
	}
	return units
}

// draw draws the results of a unit.
func draw(results []result, unit string, notes []string) ([]byte, error) {
	list := plot.Dots{Title: "pgasbench, over " + results[0].Transport, Label: unit, Notes: notes}
	sweep := plot.Chart{
		Title: list.Title, X: plot.Axis{Label: "bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: unit, Log: 10}, Notes: notes,
	}
	at := map[string]int{} // the series of a sweep
	for _, r := range results {
		if r.Unit != unit {
			continue
		}
		s := summarize(r.Values)
		p := plot.Point{X: float64(r.Bytes), Y: s.median, Low: s.least, High: s.most}
		if r.Bytes == 0 {
			list.Lines = append(list.Lines, plot.Dot{Name: r.Title + ": " + r.API, Point: p})
			continue
		}
		op, _, _ := strings.Cut(r.API, ",")
		i, ok := at[op]
		if !ok {
			i = len(sweep.Series)
			at[op] = i
			sweep.Series = append(sweep.Series, plot.Series{Name: op})
		}
		sweep.Series[i].Points = append(sweep.Series[i].Points, p)
	}
	if len(sweep.Series) > 0 {
		across := sweep.Series[0].Points
		for _, l := range list.Lines { // what has no size is a line across all sizes
			from, to := l.Point, l.Point
			from.X, to.X = across[0].X, across[len(across)-1].X
			sweep.Series = append(sweep.Series, plot.Series{Name: l.Name, Points: []plot.Point{from, to}})
		}
		return sweep.SVG()
	}
	return list.SVG()
}
