package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gopgas/internal/control"
)

// statsDoc is the JSON document of --stats=json.
type statsDoc struct {
	Ranks []rankStats `json:"ranks"`
}

type rankStats struct {
	Rank       int                       `json:"rank"`
	Node       string                    `json:"node"`
	Missing    bool                      `json:"missing,omitempty"` // the rank sent nothing
	Transports map[string]transportStats `json:"transports"`
	Extra      map[string]float64        `json:"extra,omitempty"`
}

// transportStats are the sums over the paths, and each path.
type transportStats struct {
	control.Path
	Paths map[string]control.Path `json:"paths"`
}

// collectStats orders what the ranks sent, one entry per rank. Transports that carried nothing are left out, and so are
// paths without an operation.
func collectStats(n int, sent []control.Stats) statsDoc {
	doc := statsDoc{Ranks: make([]rankStats, n)}
	for r := range doc.Ranks {
		doc.Ranks[r] = rankStats{Rank: r, Missing: true, Transports: map[string]transportStats{}}
	}
	for _, s := range sent {
		out := rankStats{Rank: s.Rank, Node: s.Node, Transports: map[string]transportStats{}, Extra: s.Extra}
		for name, paths := range s.Transports {
			t := transportStats{Paths: map[string]control.Path{}}
			for path, p := range paths {
				t.Ops, t.Bytes, t.Waits = t.Ops+p.Ops, t.Bytes+p.Bytes, t.Waits+p.Waits
				if p.Ops > 0 {
					t.Paths[path] = p
				}
			}
			if t.Bytes > 0 {
				out.Transports[name] = t
			}
		}
		doc.Ranks[s.Rank] = out
	}
	return doc
}

// openStats opens the file of --stats=json:FILE, if there is one, before anything is started.
func openStats(f statsFlag, s streams) (*outFile, error) {
	if f.file == "" {
		return &outFile{}, nil
	}
	file, err := openOut(f.file, os.O_RDWR, s.out, s.err)
	if err != nil {
		return nil, usage("--stats=json:%s: %v; wanted a file in a folder that is there and that you may write to", f.file, err)
	}
	return file, nil
}

// tellStats writes the statistics to their file, or to standard error where they have none.
func tellStats(file *outFile, stderr io.Writer, mode string, n int, sent []control.Stats) error {
	to := stderr
	if file.file != nil {
		to = file
	}
	if err := errors.Join(writeStats(to, mode, n, sent), file.end()); err != nil {
		return fmt.Errorf("write the statistics: %w", err)
	}
	return nil
}

func writeStats(w io.Writer, mode string, n int, sent []control.Stats) error {
	doc := collectStats(n, sent)
	if mode == "json" {
		b, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}
	_, err := io.WriteString(w, statsTable(doc))
	return err
}

// figure prints a count as an integer, whatever its size, and an average with one decimal.
func figure(v float64) string {
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// statsTable prints a line per rank, transport and path, and one per other counter that is not zero, and for reg.helper.
func statsTable(doc statsDoc) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tnode\ttransport\tpath\tops\tbytes\twaits\t")
	for _, r := range doc.Ranks {
		if r.Missing || len(r.Transports) == 0 {
			what := "moved nothing"
			if r.Missing {
				what = "sent no statistics"
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t\t\t\t\t\n", r.Rank, r.Node, what)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Transports)) {
			for _, path := range slices.Sorted(maps.Keys(r.Transports[name].Paths)) {
				p := r.Transports[name].Paths[path]
				fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%d\t%d\t\n", r.Rank, r.Node, name, path, p.Ops, p.Bytes, p.Waits)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
			if r.Extra[name] == 0 && name != "reg.helper" {
				continue // JSON has them all; but that a rank has no helper is news
			}
			fmt.Fprintf(t, "%d\t%s\t\t%s\t%s\t\t\t\n", r.Rank, r.Node, name, figure(r.Extra[name]))
		}
	}
	t.Flush()
	return b.String()
}
