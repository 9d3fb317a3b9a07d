// Command heat lets the heat of a tube flow out at its two cold ends: a 2-D stencil, the classic of parallel
// programs. The rows of the grid go round the tube, the columns along it. Each rank owns a band of rows, and the next
// temperature of a cell needs its four neighbours', so at the edge of its band a rank needs a row of the next rank.
//
// What it shows: every rank keeps a copy of those rows beside its own (a halo), and the neighbour writes it there as
// soon as the row is computed. Nobody asks for a row, nobody answers, and the loop has no barrier: a rank waits only
// for the word of the two ranks beside it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

const alpha, most = 0.2, 1 << 20 // how much of a difference flows in a step (stable up to 0.25); rows or columns

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// tube is what a rank knows of the problem. It owns the rows [first(rank), first(rank+1)); in its memory they are the
// rows 1 to height(rank), between the two halos.
type tube struct {
	rows, cols, steps, rank, ranks int
	grids                          [2]*window.Window[float64] // temperatures after even and after odd steps
	above, below                   pgsync.Signal              // how many steps the rank on that side has done
}

func (t *tube) first(rank int) int  { return t.rows * rank / t.ranks }
func (t *tube) height(rank int) int { return t.first(rank+1) - t.first(rank) }

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	t := &tube{rank: w.Rank(), ranks: w.Size()}
	flags := flag.NewFlagSet("heat", flag.ContinueOnError)
	flags.IntVar(&t.rows, "rows", 512, "cells round the tube")
	flags.IntVar(&t.cols, "cols", 512, "cells along the tube, with its two ends")
	flags.IntVar(&t.steps, "steps", 500, "steps of time")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if t.rows < t.ranks || t.rows > most || t.cols < 3 || t.cols > most || t.steps < 0 || flags.NArg() > 0 {
		return fmt.Errorf("-rows %d -cols %d -steps %d and arguments %q: needed %d rows or more (one for each rank), 3 columns "+
			"or more, at most %d of both, 0 steps or more, and nothing else", t.rows, t.cols, t.steps, flags.Args(), t.ranks, most)
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	t.above, t.below = signals.Signal(0), signals.Signal(1)
	for i := range t.grids { // as long on every rank as the highest band needs: a window has the same length everywhere
		if t.grids[i], err = window.Allocate[float64](ctx, w.Team(), ((t.rows-1)/t.ranks+3)*t.cols); err != nil {
			return err
		}
		t.each(func(at, row, col int) { t.grids[i].Local()[at] = t.exact(row, col, 0) })
	}
	if err := t.grids[1].Fence(ctx); err != nil { // nobody may write my halo before I have filled my grid
		return err
	}
	start, told := time.Now(), time.Now()
	for s := range t.steps {
		if err := t.step(ctx, s); err != nil {
			return err
		}
		if t.rank == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "heat: step %d of %d\n", s, t.steps)
		}
	}
	took := time.Since(start)
	errs, allowed := []float64{t.worst()}, 1e-14*float64(t.steps+1)
	if err := pgsync.AllReduce(ctx, w.Team(), errs, errs, pgsync.Max); err != nil {
		return err
	}
	if !(errs[0] <= allowed) { // NaN too
		return fmt.Errorf("wrong: a temperature is off by %.1e of the highest after %d steps, allowed %.1e", errs[0], t.steps, allowed)
	}
	if cells := float64(t.rows) * float64(t.cols-2) * float64(t.steps); t.rank == 0 {
		fmt.Fprintf(out, "%d x %d cells, %d steps on %d ranks: %v, %.0f million cells/s\nverified: largest error %.1e, allowed %.1e\n",
			t.rows, t.cols, t.steps, t.ranks, took.Round(time.Microsecond), cells/took.Seconds()/1e6, errs[0], allowed)
	}
	return nil
}

// step computes step s+1 from step s. That the grids take turns makes a barrier needless: the halos that I read here
// are written again one step later, by neighbours that have waited for my word that I have done this step.
func (t *tube) step(ctx context.Context, s int) error {
	old, to := t.grids[s%2].Local(), t.grids[(s+1)%2]
	next, cols, last, done := to.Local(), t.cols, t.height(t.rank), uint64(s+1)
	for i := 1; i <= last; i++ {
		up, here, down, dst := old[(i-1)*cols:i*cols], old[i*cols:(i+1)*cols], old[(i+1)*cols:(i+2)*cols], next[i*cols:(i+1)*cols]
		for j := 1; j < len(dst)-1; j++ {
			dst[j] = here[j] + alpha*(up[j]+down[j]+here[j-1]+here[j+1]-4*here[j])
		}
	}
	// My first row goes under the last one of the rank above, my last row over the first one of the rank below.
	up, down := (t.rank-1+t.ranks)%t.ranks, (t.rank+1)%t.ranks
	if err := to.PutSignal(up, (t.height(up)+1)*cols, next[cols:2*cols], t.below, done); err != nil {
		return err
	}
	if err := to.PutSignal(down, 0, next[last*cols:(last+1)*cols], t.above, done); err != nil {
		return err
	}
	for _, side := range []pgsync.Signal{t.above, t.below} {
		if _, err := side.WaitUntil(ctx, pgsync.GreaterOrEqual, done); err != nil {
			return err
		}
	}
	return ctx.Err() // a rank alone has waited for nobody
}

// exact is the temperature after so many steps: the sum of two waves whose form a step does not change, only the height.
func (t *tube) exact(row, col, steps int) float64 {
	along, round := math.Pi/float64(t.cols-1), 2*math.Pi/float64(t.rows)
	loss, more := 2*alpha*(1-math.Cos(along)), 2*alpha*(1-math.Cos(round))
	flat, wave := math.Pow(1-loss, float64(steps)), math.Pow(1-loss-more, float64(steps))
	return math.Sin(along*float64(col)) * (flat + wave*math.Cos(round*float64(row))/2)
}

// each calls f for all cells of this rank between the cold ends, halos too: their place in memory, row and column.
func (t *tube) each(f func(at, row, col int)) {
	for i := range t.height(t.rank) + 2 {
		for col := 1; col < t.cols-1; col++ {
			f(i*t.cols+col, t.first(t.rank)+i-1, col)
		}
	}
}

// worst returns by how much a cell differs from its exact temperature, as a part of the highest there is now.
func (t *tube) worst() (worst float64) {
	grid, top := t.grids[t.steps%2].Local(), max(t.exact(0, t.cols/2, t.steps), 1e-290)
	t.each(func(at, row, col int) { worst = max(worst, math.Abs(grid[at]-t.exact(row, col, t.steps))/top) })
	return worst
}
