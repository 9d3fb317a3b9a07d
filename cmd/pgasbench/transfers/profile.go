package transfers

import (
	"context"
	"errors"
	"fmt"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/eager"
	"gopgas/internal/plot"
	"gopgas/internal/trace"
)

// leastCounted is the least size that tables 1 and 3 are about here: the paper's method is off below 128 bytes.
const leastCounted = 128

// profile is tables 1 and 3 of the paper, of recorded programs: how often they use their small buffers again.
func profile(_ context.Context, o *figures.Options) (*figures.Result, error) {
	if len(o.Traces) == 0 {
		return nil, errors.New("it needs recorded programs: PGAS_TRACE=DIR pgasrun -n N PROGRAM, then --trace NAME=DIR")
	}
	res := &figures.Result{
		Kind: "recorded programs, counted; nothing is timed",
		Columns: []string{
			"program", "ranks", "small_transfers", "buffers", "most_uses_min", "most_uses_max", "most_uses_avg", "most_used_bytes_min", "most_used_bytes_max",
			"reuse_percent", "frequent_percent", "frequent_uses_percent", "known", "refused",
		},
		Notes: []string{
			"puts and gets of up to 8 KiB; a buffer is an address; most_uses: of a rank's most used buffer, over the ranks (table 1: range of buffer reuse counts)",
			"reuse_percent: uses that are not the first of their buffer (table 1); frequent_percent: buffers of the usage table that became frequent (table 3), of transfers above 128 B, " +
				"with 25 % of the paper's break-even counts; frequent_uses_percent: uses of those, when they were",
			"paper, table 1: CG 42.94 %, LU 98.71 %, AMG2006 76.86 %, MILC 44.26 %; table 3: 0, 32.9, 8.7, 22.6 %",
		},
	}
	chart := plot.Chart{Title: "small buffers of recorded programs", Y: plot.Axis{Label: "%"}, Bars: true, Series: []plot.Series{
		{Name: "uses that are not a buffer's first"}, {Name: "buffers that became frequent"},
	}}
	for i, t := range o.Traces {
		p := profileOf(t.Files)
		res.Rows = append(res.Rows, append([]any{t.Name}, p.cells()...))
		chart.X.Names = append(chart.X.Names, t.Name)
		chart.Series[0].Points = append(chart.Series[0].Points, plot.Point{X: float64(i), Y: p.again()})
		chart.Series[1].Points = append(chart.Series[1].Points, plot.Point{X: float64(i), Y: p.frequent()})
	}
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// reuse is what was counted of a program.
type reuse struct {
	ranks, small, buffers int
	most, mostBytes       []float64 // by rank, of its most used buffer
	first                 int       // uses
	table                 eager.Usage
	often                 int // uses when frequent
	counted               int // uses told to the table
}

func profileOf(files []*trace.File) (p reuse) {
	for _, f := range files {
		p.ranks++
		uses, bytes := map[uint64]int{}, map[uint64]uint64{}
		table := eager.NewTable()
		for i := range f.Events {
			e := &f.Events[i]
			if e.Kind != trace.Put && e.Kind != trace.Get || e.Bytes == 0 || e.Bytes > mostSmall {
				continue
			}
			p.small++
			if uses[e.Addr]++; uses[e.Addr] == 1 {
				p.first++
			}
			bytes[e.Addr] = e.Bytes
			if e.Bytes < leastCounted {
				continue
			}
			p.counted++
			if table.Use(e.Addr&(1<<48-1), uint32(eager.Speculate(float64(paperUsesAt(int(e.Bytes))), eager.DefaultPercent))) {
				p.often++
			}
		}
		p.buffers += len(uses)
		best := uint64(0)
		for a, n := range uses {
			if n > uses[best] || n == uses[best] && a < best {
				best = a
			}
		}
		if len(uses) > 0 {
			p.most, p.mostBytes = append(p.most, float64(uses[best])), append(p.mostBytes, float64(bytes[best]))
		}
		u := table.Usage()
		p.table.Buffers += u.Buffers
		p.table.Frequent += u.Frequent
		p.table.Refused += u.Refused
	}
	return p
}

// paperUsesAt is the paper's break-even count of the largest of its sizes that is not above n.
func paperUsesAt(n int) int {
	best := 512
	for size := range paperBreakEven {
		if size <= n && size > best {
			best = size
		}
	}
	return paperBreakEven[best]
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}

func (p *reuse) again() float64    { return share(p.small-p.first, p.small) }
func (p *reuse) frequent() float64 { return share(p.table.Frequent, p.table.Buffers) }

func (p *reuse) cells() []any {
	most, sizes, sum := spreadOf(p.most), spreadOf(p.mostBytes), 0.0
	for _, n := range p.most {
		sum += n
	}
	return []any{
		p.ranks, p.small, p.buffers, int(most.least), int(most.most), sum / float64(max(1, len(p.most))), int(sizes.least), int(sizes.most),
		p.again(), p.frequent(), share(p.often, p.counted), p.table.Buffers, fmt.Sprint(p.table.Refused),
	}
}
