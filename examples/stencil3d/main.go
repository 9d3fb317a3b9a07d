// Command stencil3d lets the heat of a block flow out at its faces: a 3-D stencil of seven points. The block is cut into
// smaller ones, one for each rank, in as many directions as is best; the next temperature of a cell needs its six
// neighbours', of which some are other ranks'.
//
// What it shows: an array of three dimensions (package grid) whose blocks have frames of ghost cells. One call renews
// the frame, and then the loop runs over ordinary memory, row by row, and asks nobody.
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
	"gopgas/pgas/grid"
	pgsync "gopgas/sync"
)

const alpha, most = 0.12, 1 << 12 // how much of a difference flows in a step (stable up to 1/6); cells of an edge

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// block is the problem: edge cells in each direction, of which the outermost stay cold.
type block struct{ edge, steps int }

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	b := block{}
	flags := flag.NewFlagSet("stencil3d", flag.ContinueOnError)
	flags.IntVar(&b.edge, "edge", 96, "cells in each direction")
	flags.IntVar(&b.steps, "steps", 100, "steps of time")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if b.edge < 3 || b.edge > most || b.steps < 0 || flags.NArg() > 0 {
		return fmt.Errorf("-edge %d -steps %d and arguments %q: needed an edge from 3 to %d cells, 0 steps or more, and nothing else",
			b.edge, b.steps, flags.Args(), most)
	}

	var cells [2]*grid.Array[float64] // temperatures after even and after odd steps
	for i := range cells {
		a, err := grid.New[float64](ctx, w.Team(), []int{b.edge, b.edge, b.edge}, grid.Config{Ghost: []int{1, 1, 1}, Faces: true})
		if err != nil {
			return err
		}
		for at, x := range a.Mine() {
			*x = b.exact(at, 0)
		}
		cells[i] = a
	}
	start := time.Now()
	for s := range b.steps {
		if err := b.step(ctx, cells[s%2], cells[(s+1)%2]); err != nil {
			return err
		}
	}
	took := time.Since(start)

	last := cells[b.steps%2]
	top := max(math.Pow(1-b.loss(), float64(b.steps)), 1e-290)
	errs, allowed := []float64{0}, 1e-14*float64(b.steps+1)
	for at, x := range last.Mine() {
		errs[0] = max(errs[0], math.Abs(*x-b.exact(at, b.steps))/top)
	}
	if err := pgsync.AllReduce(ctx, w.Team(), errs, errs, pgsync.Max); err != nil {
		return err
	}
	if !(errs[0] <= allowed) { // NaN too
		return fmt.Errorf("wrong: a temperature is off by %.1e of the highest after %d steps, allowed %.1e", errs[0], b.steps, allowed)
	}
	if w.Rank() == 0 {
		done := math.Pow(float64(b.edge-2), 3) * float64(b.steps)
		fmt.Fprintf(out, "%d x %d x %d cells in %v blocks, %d steps on %d ranks: %v, %.0f million cells/s\nverified: largest error %.1e, allowed %.1e\n",
			b.edge, b.edge, b.edge, last.Parts(), b.steps, w.Size(), took.Round(time.Microsecond), done/took.Seconds()/1e6, errs[0], allowed)
	}
	return nil
}

// step computes the next temperatures. The arrays take turns, so nobody writes what a neighbour still reads; that all have
// done the last step is what UpdateGhosts waits for.
func (b block) step(ctx context.Context, now, next *grid.Array[float64]) error {
	if err := now.UpdateGhosts(ctx); err != nil {
		return err
	}
	mine := now.Block(now.Team().Rank())
	inside := func(i int) bool { return i > 0 && i < b.edge-1 }
	from, to := mine.Lo[2], mine.Hi[2]
	for i := mine.Lo[0]; i < mine.Hi[0]; i++ {
		for j := mine.Lo[1]; j < mine.Hi[1]; j++ {
			if !inside(i) || !inside(j) {
				continue // a cold face
			}
			x, y := i-mine.Lo[0], j-mine.Lo[1] // rows are counted from the block's first; element 0 of one is the frame's
			row, dst := now.Row(x, y), next.Row(x, y)
			north, south, above, below := now.Row(x-1, y), now.Row(x+1, y), now.Row(x, y-1), now.Row(x, y+1)
			for k := max(1, from) - from + 1; k <= min(b.edge-1, to)-from; k++ {
				dst[k] = row[k] + alpha*(north[k]+south[k]+above[k]+below[k]+row[k-1]+row[k+1]-6*row[k])
			}
		}
	}
	return ctx.Err()
}

// loss is what part of its height the wave of exact loses in a step.
func (b block) loss() float64 { return 6 * alpha * (1 - math.Cos(math.Pi/float64(b.edge-1))) }

// exact is the temperature of a cell after so many steps: a wave whose form a step does not change, only the height.
func (b block) exact(at []int, steps int) float64 {
	v := math.Pow(1-b.loss(), float64(steps))
	for _, i := range at {
		if i == 0 || i == b.edge-1 {
			return 0 // where the sine is not quite
		}
		v *= math.Sin(math.Pi * float64(i) / float64(b.edge-1))
	}
	return v
}
