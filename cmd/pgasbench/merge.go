package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// mergeFiles prints one markdown table of files given as NAME=FILE.
func mergeFiles(out io.Writer, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("merge: want NAME=FILE..., the --csv outputs to set side by side")
	}
	var m merged
	for _, a := range args {
		name, file, ok := strings.Cut(a, "=")
		if !ok || name == "" || file == "" {
			return fmt.Errorf("merge: %q: want NAME=FILE", a)
		}
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		results, err := readCSV(f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("merge: %s: %w", file, err)
		}
		m.add(name, results)
	}
	return m.print(out)
}

// merged is the figures of several programs. A program with several APIs for one thing has a line for each.
type merged struct {
	columns []string
	lines   []*mergedLine
}

// mergedLine is one thing measured: the first column's API decides the lines, the others' figures stand on each.
type mergedLine struct {
	row, title, api, unit string
	cells                 map[string][]float64
}

// add takes the results of one run into the column called name.
func (m *merged) add(name string, results []result) {
	if !slices.Contains(m.columns, name) {
		m.columns = append(m.columns, name)
	}
	first := name == m.columns[0]
	for _, r := range results {
		found := false
		for _, l := range m.lines {
			if l.row == r.Row && l.unit == r.Unit && (!first || l.api == r.API) {
				l.cells[name] = append(l.cells[name], r.Values...)
				found = true
			}
		}
		if !found {
			m.lines = append(m.lines, &mergedLine{r.Row, r.Title, r.API, r.Unit, map[string][]float64{name: slices.Clone(r.Values)}})
		}
	}
}

// print writes median (min–max) of every cell. Figures of other columns that a line shares with the one above, being of one measurement, are not said
// again: the cell is empty.
func (m *merged) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| | by | unit | %s |\n", strings.Join(m.columns, " | "))
	fmt.Fprintf(&b, "| --- | --- | --- |%s\n", strings.Repeat(" ---: |", len(m.columns)))
	above := &mergedLine{}
	for _, l := range m.lines {
		shown := l.title
		if shown == above.title {
			shown = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", shown, l.api, l.unit)
		for i, c := range m.columns {
			v := l.cells[c]
			switch {
			case len(v) == 0:
				b.WriteString(" – |")
			case i > 0 && l.row == above.row && l.unit == above.unit && slices.Equal(v, above.cells[c]):
				b.WriteString(" |")
			default:
				s := summarize(v)
				fmt.Fprintf(&b, " %s (%s–%s) |", number(s.median), number(s.least), number(s.most))
			}
		}
		b.WriteString("\n")
		above = l
	}
	_, err := io.WriteString(out, strings.ReplaceAll(b.String(), "|  |", "| |"))
	return err
}
