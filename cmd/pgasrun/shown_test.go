package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/timeline"
)

// shown is a span or an instant as a viewer has understood it, or as the file says it. Times are nanoseconds.
type shown struct {
	Process, Lane, Name, Cat, At string
	PID, TID                     int
	TS, Dur                      int64
	With                         int // the other rank, or -1
	Bytes                        int64
	Order                        [2]int // where the process stands among others, and the lane in it
}

func sorted(all []shown) []shown {
	slices.SortFunc(all, func(a, b shown) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID), cmp.Compare(a.TS, b.TS), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// made is what a file holds, read as plain JSON.
type made struct {
	name  string
	file  string
	spans []shown
	flows int
}

// nanosOf is a decimal number of microseconds, exactly.
func nanosOf(t *testing.T, n json.Number) int64 {
	if n == "" {
		return 0
	}
	r, ok := new(big.Rat).SetString(n.String())
	require.True(t, ok, n)
	r.Mul(r, big.NewRat(1000, 1))
	require.True(t, r.IsInt(), "%s is not whole nanoseconds", n)
	return r.Num().Int64()
}

func readTrace(t *testing.T, name, file string) made {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var doc struct {
		TraceEvents []struct {
			Name, Ph, Cat string
			PID, TID      int
			TS, Dur       json.Number
			Args          struct {
				Name  string
				Order int  `json:"sort_index"`
				Rank  *int `json:"rank"`
				Bytes int64
				At    string
			}
		}
	}
	require.NoError(t, json.Unmarshal(b, &doc))
	names, orders := map[[2]int]string{}, map[[2]int]int{} // of processes, whose lane is -1, and lanes
	p := made{name: name, file: file}
	for _, e := range doc.TraceEvents {
		switch e.Name {
		case "process_name":
			names[[2]int{e.PID, -1}] = e.Args.Name
		case "thread_name":
			names[[2]int{e.PID, e.TID}] = e.Args.Name
		case "process_sort_index":
			orders[[2]int{e.PID, -1}] = e.Args.Order
		case "thread_sort_index":
			orders[[2]int{e.PID, e.TID}] = e.Args.Order
		}
	}
	for _, e := range doc.TraceEvents {
		switch e.Ph {
		case "X", "i":
			process, lane := [2]int{e.PID, -1}, [2]int{e.PID, e.TID}
			s := shown{
				Process: names[process], Lane: names[lane], Name: e.Name, Cat: e.Cat, At: e.Args.At, PID: e.PID, TID: e.TID,
				TS: nanosOf(t, e.TS), Dur: nanosOf(t, e.Dur), With: -1, Bytes: e.Args.Bytes, Order: [2]int{orders[process], orders[lane]},
			}
			if e.Args.Rank != nil {
				s.With = *e.Args.Rank
			}
			p.spans = append(p.spans, s)
		case "s":
			p.flows++
		default:
			require.Equal(t, "M", e.Ph)
		}
	}
	sorted(p.spans)
	return p
}

// row is what both viewers are asked for of a span; times are in the viewer's own unit.
type row struct {
	PID, TID                     int
	Process, Lane, Name, Cat, At string
	TS, Dur                      float64
	Rank                         *int
	Bytes                        int64
	Depth                        int
	Order                        [2]int
	OrderP, OrderT               int
}

// shownOf turns a viewer's rows into ours; unit is its nanoseconds, zero what its clock is behind. None may lie within another: lanes are flat.
func shownOf(t *testing.T, rows []row, unit float64, zero int64) (all []shown) {
	t.Helper()
	for _, r := range rows {
		require.Zero(t, r.Depth, "%+v is drawn within another", r)
		s := shown{
			Process: r.Process, Lane: r.Lane, Name: r.Name, Cat: r.Cat, At: r.At, PID: r.PID, TID: r.TID,
			TS: int64(math.Round(r.TS*unit)) + zero, Dur: int64(math.Round(r.Dur * unit)), With: -1, Bytes: r.Bytes, Order: r.Order,
		}
		if r.Rank != nil {
			s.With = *r.Rank
		}
		all = append(all, s)
	}
	return sorted(all)
}

// traces makes the files that viewers are to open: of a job that puts and meets in barriers, of one that signals and waits, and one with what jobs
// have seldom: instants, spans that touch, lanes beside each other, a job that has run for days, and names that need quotes.
func traces(t *testing.T) (all []made) {
	t.Helper()
	dir := t.TempDir()
	for name, args := range map[string][]string{"traffic": {traffic}, "heat": {heat, "-rows", "64", "-cols", "64", "-steps", "50"}} {
		file := filepath.Join(dir, name+".json")
		_, errs, code := call(t, append([]string{"-n", "4", "--trace", file}, args...)...)
		require.Zero(t, code, errs)
		all = append(all, readTrace(t, name, file))
	}
	const day = 24 * time.Hour
	var sources []timeline.Source
	for rank := range 4 {
		var b bytes.Buffer
		w := timeline.NewWriter(&b, timeline.Head{Rank: rank, Node: `n"<&>é`, PID: 100 + rank, Zero: int64(rank)})
		for i, s := range []timeline.Span{
			{At: 5, Op: "put", Peer: 1, Bytes: 1 << 40, Kind: timeline.Transfer},
			{At: 100, Took: 50, Op: `say "é"`, Peer: -1},
			{At: 150, Took: 7, Op: "touches", Peer: 0},
			{At: 120, Took: 90, Op: "beside", Peer: 3},
			{At: 150, Took: 1, Op: "short", Peer: -1, Kind: timeline.Collective},
			{At: 151, Op: "get", Peer: 2, Kind: timeline.Transfer},
			{At: 9*day + 1, Took: day + 1, Op: "long", Peer: -1, Kind: timeline.Registration},
		} {
			w.Write(&s, fmt.Sprint(`a\b.go:`, i))
		}
		require.NoError(t, w.Flush(uint64(rank)))
		sources = append(sources, timeline.Source{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }})
	}
	file := filepath.Join(dir, "rare.json")
	out, err := os.Create(file)
	require.NoError(t, err)
	_, err = timeline.Merge(out, sources)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	all = append(all, readTrace(t, "rare", file))

	every := map[string]bool{}
	for _, p := range all { // there is something to see in each
		ranks, cats := map[int]bool{}, map[string]bool{}
		for _, s := range p.spans {
			ranks[s.PID], cats[s.Cat], every[s.Cat] = true, true, true
		}
		require.Len(t, ranks, 4, p.name)
		require.True(t, cats["collective"] && cats["transfer"], p.name)
	}
	require.Equal(t, []string{"collective", "registration", "transfer", "wait"}, slices.Sorted(maps.Keys(every)))
	return all
}
