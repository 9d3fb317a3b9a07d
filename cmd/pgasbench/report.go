package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// header is what a figure means nothing without.
type header struct {
	Machine string `json:"machine"`
	Cores   int    `json:"cores"`
	Kernel  string `json:"kernel"`
	Go      string `json:"go"`
	Date    string `json:"date"`
	Commit  string `json:"commit"`
	Load    string `json:"load"` // threads that wanted to run in the minute before the beginning
	Command string `json:"command"`
	Ranks   int    `json:"ranks"`
	Pinned  string `json:"pinned"`
}

func (h header) lines() []string {
	return []string{
		fmt.Sprintf("%s, %d cores, %s, %s", h.Machine, h.Cores, h.Kernel, h.Go),
		fmt.Sprintf("%s, commit %s, load %s, %d ranks, %s", h.Date, h.Commit, h.Load, h.Ranks, h.Pinned),
		"command: " + h.Command,
	}
}

// where is one line of it, for below a picture.
func (h header) where() string {
	return fmt.Sprintf("%s, %d cores, %s, commit %s, load %s", h.Machine, h.Cores, h.Date, h.Commit, h.Load)
}

// print writes the results in the form that was asked for.
func (b *bench) print(out io.Writer, h header) error {
	switch {
	case b.set.csv:
		return printCSV(out, h, b.results)
	case b.set.json:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			header
			Results []result `json:"results"`
			Skipped []string `json:"skipped,omitempty"`
		}{h, b.results, b.skipped})
	}
	for _, l := range append(h.lines(), b.skipped...) {
		fmt.Fprintln(out, "#", l)
	}
	return printTable(out, b.results)
}

func printTable(out io.Writer, results []result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tby\ttransport\tmedian\tmin\tmax\tunit\tn")
	for _, r := range results {
		s := summarize(r.Values)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d x %d\n", r.Title, r.API, r.Transport,
			number(s.median), number(s.least), number(s.most), r.Unit, len(r.Values), r.N)
	}
	return t.Flush()
}

// number shows three digits, and the whole of what has more before the point.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// csvFields is the first record of a CSV output. Lines that begin with # are the header's.
var csvFields = []string{"row", "title", "api", "transport", "unit", "median", "min", "max", "n", "values"}

func printCSV(out io.Writer, h header, results []result) error {
	for _, l := range h.lines() {
		fmt.Fprintln(out, "#", l)
	}
	w := csv.NewWriter(out)
	if err := w.Write(csvFields); err != nil {
		return err
	}
	for _, r := range results {
		s := summarize(r.Values)
		var values []string
		for _, v := range r.Values {
			values = append(values, exact(v))
		}
		err := w.Write([]string{
			r.Row, r.Title, r.API, r.Transport, r.Unit, exact(s.median), exact(s.least), exact(s.most),
			strconv.Itoa(r.N), strings.Join(values, " "),
		})
		if err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// readCSV is the inverse of printCSV, as far as the results go.
func readCSV(in io.Reader) ([]result, error) {
	r := csv.NewReader(in)
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || strings.Join(records[0], ",") != strings.Join(csvFields, ",") {
		return nil, fmt.Errorf("not an output of --csv: the first record must be %s", strings.Join(csvFields, ","))
	}
	var out []result
	for _, f := range records[1:] {
		n, err := strconv.Atoi(f[8])
		if err != nil {
			return nil, fmt.Errorf("row %s: n: %w", f[0], err)
		}
		res := result{Row: f[0], Title: f[1], API: f[2], Transport: f[3], Unit: f[4], N: n}
		for s := range strings.FieldsSeq(f[9]) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, fmt.Errorf("row %s: values: %w", f[0], err)
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("row %s: values: %q is no figure", f[0], s)
			}
			res.Values = append(res.Values, v)
		}
		out = append(out, res)
	}
	return out, nil
}
