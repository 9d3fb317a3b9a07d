// Command p2p computes a grid in which every cell needs the ones above, to the left, and between them, as the kernel
// synch_p2p of the Parallel Research Kernels does it: g[i][j] = g[i-1][j] + g[i][j-1] - g[i-1][j-1]. The columns are
// spread over the ranks, so a rank can compute a row when the rank on its left has.
//
// What it shows: a pipeline. One number goes to the right with every row, and the signal that says so goes with it; the
// ranks work on different rows at the same time, and no rank waits for anybody but its neighbour.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// pipe is what a rank knows of the problem. Its cells are the columns [first, last); edge holds the column before
// them, row by row, which the rank on the left writes.
type pipe struct {
	rows, first, last, rank, ranks int
	cells                          []float64
	edge                           *window.Window[float64]
	ready                          pgsync.Signal // rows of edge that are there, over all rounds
	corner                         pgsync.Signal // rounds whose last cell rank 0 has
}

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	p := &pipe{rank: w.Rank(), ranks: w.Size()}
	flags := flag.NewFlagSet("p2p", flag.ContinueOnError)
	cols := flags.Int("cols", 1000, "columns")
	flags.IntVar(&p.rows, "rows", 1000, "rows")
	rounds := flags.Int("rounds", 10, "how often to go over the grid, after once to warm up")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *cols < p.ranks || *cols > 1<<20 || p.rows < 2 || p.rows > 1<<20 || *rounds < 0 || flags.NArg() > 0 {
		return fmt.Errorf("-cols %d -rows %d -rounds %d and arguments %q: needed %d columns or more (one for each rank), 2 rows or more, "+
			"at most %d of both, 0 rounds or more, and nothing else", *cols, p.rows, *rounds, flags.Args(), p.ranks, 1<<20)
	}
	p.first, p.last = *cols*p.rank/p.ranks, *cols*(p.rank+1)/p.ranks
	p.cells = make([]float64, p.rows*(p.last-p.first))
	for i := range p.rows { // the first row is 0, 1, 2, ..., the first column too
		for j := p.first; j < p.last; j++ {
			if i == 0 || j == 0 {
				*p.cell(i, j) = float64(i + j)
			}
		}
	}
	var err error
	if p.edge, err = window.Allocate[float64](ctx, w.Team(), p.rows); err != nil {
		return err
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	p.ready, p.corner = signals.Signal(0), signals.Signal(1)
	var start time.Time
	for round := range *rounds + 1 {
		if round == 1 {
			start = time.Now()
		}
		if err := p.round(ctx, uint64(round)); err != nil {
			return err
		}
	}
	took := time.Since(start)
	last := []float64{p.cells[len(p.cells)-1]}
	if err := pgsync.Broadcast(ctx, w.Team(), last, p.ranks-1); err != nil {
		return err
	}
	if want := float64((*rounds + 1) * (p.rows + *cols - 2)); last[0] != want {
		return fmt.Errorf("wrong: the last cell is %g, wanted %g", last[0], want)
	}
	if w.Rank() == 0 && *rounds > 0 {
		cells := float64(p.rows-1) * float64(*cols-1) * float64(*rounds)
		fmt.Fprintf(out, "%d x %d cells, %d rounds by %d ranks: %v, %.0f million cells/s\n",
			p.rows, *cols, *rounds, p.ranks, took.Round(time.Microsecond), cells/took.Seconds()/1e6)
	}
	if w.Rank() == 0 {
		fmt.Fprintf(out, "verified: the last cell is %g\n", last[0])
	}
	return nil
}

func (p *pipe) cell(i, j int) *float64 { return &p.cells[i*(p.last-p.first)+j-p.first] }

// round goes over the grid once. The last cell, negated, is the first one of the next round: so no rank can write an
// edge again before all have used it.
func (p *pipe) round(ctx context.Context, round uint64) error {
	if p.rank == 0 && round > 0 {
		if _, err := p.corner.WaitUntil(ctx, pgsync.GreaterOrEqual, round); err != nil {
			return err
		}
		p.cells[0] = p.edge.Local()[0]
	}
	width := p.last - p.first
	for i := range p.rows {
		if ctx.Err() != nil { // rank 0 never waits within a round
			return ctx.Err()
		}
		done := round*uint64(p.rows) + uint64(i) + 1
		if p.rank > 0 {
			if _, err := p.ready.WaitUntil(ctx, pgsync.GreaterOrEqual, done); err != nil {
				return err
			}
		}
		if i > 0 {
			above, here, from := p.cells[(i-1)*width:][:width], p.cells[i*width:][:width], 0
			left, between := here[0], above[0] // of the first column they are what is there
			if p.rank > 0 {
				left, between = p.edge.Local()[i], p.edge.Local()[i-1]
			} else {
				from = 1
			}
			for j := from; j < width; j++ {
				left += above[j] - between
				here[j], between = left, above[j]
			}
		}
		if p.rank < p.ranks-1 {
			if err := p.edge.PutSignal(p.rank+1, i, p.cells[(i+1)*width-1:][:1], p.ready, done); err != nil {
				return err
			}
		}
	}
	if p.rank < p.ranks-1 {
		return nil
	}
	return p.edge.PutSignal(0, 0, []float64{-p.cells[len(p.cells)-1]}, p.corner, round+1)
}
