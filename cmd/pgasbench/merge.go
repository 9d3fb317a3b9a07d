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

// mergedLine is one thing measured by one API. Another program's figures of that thing, by APIs of its own, stand on each line of it.
type mergedLine struct {
	row, title, api, unit string
	cells                 map[string][]float64 // by column, of this API
	others                map[string][]float64 // of APIs of which no line is
}

// add takes the results of one run into the column called name. What it has by APIs of which there are lines stands there, and what it has by others
// has lines of its own if it shares any with those that are there: then it is the same program's, or one like it.
func (m *merged) add(name string, results []result) {
	if !slices.Contains(m.columns, name) {
		m.columns = append(m.columns, name)
	}
	first := name == m.columns[0]
	for _, r := range results {
		same := m.of(r)
		i := slices.IndexFunc(same, func(l *mergedLine) bool { return l.api == r.API })
		switch {
		case i >= 0:
			same[i].cells[name] = append(same[i].cells[name], r.Values...)
		case first || len(same) == 0 || m.shares(same, results):
			l := &mergedLine{r.Row, r.Title, r.API, r.Unit, map[string][]float64{name: slices.Clone(r.Values)}, map[string][]float64{}}
			at := len(m.lines)
			if !first && len(same) > 0 { // beside them
				at = slices.Index(m.lines, same[len(same)-1]) + 1
			}
			m.lines = slices.Insert(m.lines, at, l)
		default:
			for _, l := range same {
				l.others[name] = append(l.others[name], r.Values...)
			}
		}
	}
}

// of are the lines of what r measures.
func (m *merged) of(r result) (lines []*mergedLine) {
	for _, l := range m.lines {
		if l.row == r.Row && l.unit == r.Unit {
			lines = append(lines, l)
		}
	}
	return lines
}

// shares reports whether some of the results are by an API of these lines.
func (m *merged) shares(lines []*mergedLine, results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool {
		return slices.ContainsFunc(lines, func(l *mergedLine) bool { return l.row == r.Row && l.unit == r.Unit && l.api == r.API })
	})
}

// cell are the values in a column of the line.
func (l *mergedLine) cell(column string) []float64 {
	if v := l.cells[column]; len(v) > 0 {
		return v
	}
	return l.others[column]
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
			v := l.cell(c)
			switch {
			case len(v) == 0:
				b.WriteString(" – |")
			case i > 0 && l.row == above.row && l.unit == above.unit && slices.Equal(v, above.others[c]):
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
