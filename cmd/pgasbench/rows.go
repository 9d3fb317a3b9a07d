package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// row is one line of the table: what is measured, by which calls.
type row struct {
	name    string // the key under which peers' figures stand beside it
	title   string
	api     string
	unit    string
	bytes   int  // of a sweep over sizes; 0: the row is not of one
	mapped  bool // works on mapped memory only
	two     bool // needs a second rank
	measure func(ctx context.Context, b *bench, r *row) (n int, values []float64, err error)
}

// allRows returns the whole matrix, in the order of the table.
func allRows() []row {
	var rows []row
	add := func(more ...row) { rows = append(rows, more...) }
	add(wordRows()...)
	add(manyRows()...)
	add(meetRows()...)
	add(collectRows()...)
	add(gupsRows()...)
	for _, hot := range []bool{false, true} {
		for _, op := range []string{opPut, opGet} {
			for _, s := range blockSizes {
				if hot && s.bytes < 4096 {
					continue
				}
				add(blockRow(op, s.bytes, s.window, hot))
			}
		}
	}
	add(blockRowOnce(1 << 20))
	return rows
}

// selectRows returns the rows that contain words, whatever the case.
func selectRows(rows []row, words string) []row {
	var out []row
	for _, r := range rows {
		if strings.Contains(strings.ToLower(r.name+"\n"+r.title+"\n"+r.api), strings.ToLower(words)) {
			out = append(out, r)
		}
	}
	return out
}

func listRows(out io.Writer, rows []row) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTITLE\tAPI\tUNIT")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.name, r.title, r.api, r.unit)
	}
	return t.Flush()
}

// sizeName is 4096 as "4K".
func sizeName(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%dM", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%dK", bytes>>10)
	}
	return fmt.Sprint(bytes)
}
