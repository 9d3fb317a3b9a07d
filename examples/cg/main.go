// Command cg solves a sparse system of equations by the method of conjugate gradients: the heat of a square plate with
// cold edges, five numbers in each row of the matrix, as many unknowns as the plate has cells.
//
// What it shows: the inspector and the executor. Which elements of the vector a rank will need from others follows from
// its rows of the matrix, so it looks through them once and keeps the list; then one Gather brings them all, in every
// step. The sums that all ranks need in each step keep them together; there is no other barrier but one fence.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error { return run(ctx, w, os.Args[1:], os.Stdout) })
}

// matrix holds this rank's rows: 4 at the element itself, and -1 at some others, which have places in v.
type matrix struct {
	rows [][]int
	list []int     // elements of other ranks, in the order of the rows that need them
	v    []float64 // what is multiplied: the rank's own elements, then those of the list
}

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cg", flag.ContinueOnError)
	side := flags.Int("side", 256, "cells along each side of the plate")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *side < 1 || *side > 1<<12 || flags.NArg() > 0 {
		return fmt.Errorf("-side %d and arguments %q: needed 1 to %d cells, and nothing else", *side, flags.Args(), 1<<12)
	}
	p, err := pgas.NewArray[float64](ctx, w.Team(), *side**side, pgas.Block()) // the direction of a step
	if err != nil {
		return err
	}
	lo, hi := p.Range(w.Rank())
	m, b := plate(*side, lo, hi), make([]float64, hi-lo)
	for i := range b {
		p.Local()[i] = answer(lo + i)
	}
	if err := m.times(ctx, b, p); err != nil {
		return err
	}
	start := time.Now()
	x, steps, err := solve(ctx, w, m, p, b)
	if err != nil {
		return err
	}
	took := time.Since(start)
	worst := []float64{0}
	for i := range x {
		worst[0] = max(worst[0], math.Abs(x[i]-answer(lo+i)))
	}
	if err := pgsync.AllReduce(ctx, w.Team(), worst, worst, pgsync.Max); err != nil {
		return err
	}
	if !(worst[0] < 1e-7) { // NaN too
		return fmt.Errorf("wrong: a cell is off by %.1e after %d steps", worst[0], steps)
	}
	if w.Rank() == 0 {
		fmt.Fprintf(out, "%d unknowns, %d steps by %d ranks: %v, %v a step\nverified: largest error %.1e, allowed 1.0e-07\n", p.Len(), steps,
			w.Size(), took.Round(time.Microsecond), (took / time.Duration(max(steps, 1))).Round(time.Microsecond), worst[0])
	}
	return nil
}

// answer is the solution at a cell; the right-hand side is made from it.
func answer(cell int) float64 { return 1 + math.Sin(float64(cell)) }

// plate makes the rows [lo, hi) of the matrix, and the list of what they need from others.
func plate(side, lo, hi int) *matrix {
	m := &matrix{rows: make([][]int, hi-lo)}
	for i := range m.rows {
		row, col := (lo+i)/side, (lo+i)%side
		for _, near := range [][2]int{{row - 1, col}, {row, col - 1}, {row, col + 1}, {row + 1, col}} {
			if min(near[0], near[1]) < 0 || max(near[0], near[1]) == side {
				continue // over the cold edge
			}
			at := near[0]*side + near[1] - lo
			if at < 0 || at >= hi-lo { // another rank's: its place is behind the own ones
				at, m.list = hi-lo+len(m.list), append(m.list, lo+at)
			}
			m.rows[i] = append(m.rows[i], at)
		}
	}
	m.v = make([]float64, hi-lo+len(m.list))
	return m
}

// times sets q to this rank's part of the product with p. Its own part of p is in v then, and may be changed when all have read it.
func (m *matrix) times(ctx context.Context, q []float64, p *pgas.Array[float64]) error {
	err := p.Fence(ctx) // all parts are written
	if n := copy(m.v, p.Local()[:len(q)]); err == nil {
		err = p.Gather(m.v[n:], m.list)
	}
	for i, row := range m.rows {
		q[i] = 4 * m.v[i]
		for _, at := range row {
			q[i] -= m.v[at]
		}
	}
	return err
}

// solve returns this rank's part of the solution of A x = r, and the number of steps. p is what the ranks read of each other.
func solve(ctx context.Context, w *pgas.World, m *matrix, p *pgas.Array[float64], r []float64) (x []float64, steps int, err error) {
	dot := func(u, v []float64) float64 { // of all ranks' parts: when it is there, all have come here
		sum := []float64{0}
		for i := range u {
			sum[0] += u[i] * v[i]
		}
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum)
		}
		return sum[0]
	}
	x, q, v := make([]float64, len(r)), make([]float64, len(r)), m.v[:len(r)]
	rr := dot(r, r)
	copy(p.Local(), r)
	for first, old := rr, rr; err == nil && rr > 1e-24*first && steps < p.Len()+100; steps++ {
		err = m.times(ctx, q, p)
		alpha := rr / dot(v, q)
		for i := range x {
			x[i] += alpha * v[i]
			r[i] -= alpha * q[i]
		}
		rr, old = dot(r, r), rr
		for i := range r {
			p.Local()[i] = r[i] + rr/old*v[i]
		}
	}
	return x, steps, err
}
