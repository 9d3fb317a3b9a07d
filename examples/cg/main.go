// Command cg solves a sparse system of equations by the method of conjugate gradients: the heat of a square plate with
// cold edges, five numbers in each row of the matrix, as many unknowns as the plate has cells.
//
// What it shows: the inspector and the executor. Which elements of the vector a rank will need from others follows from
// its rows of the matrix, so it looks through them once and keeps the list; then one Gather brings them all, in every
// step. The sums that all ranks need in each step keep them together; there is no other barrier but one fence.
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
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// matrix holds this rank's rows in compressed form: the numbers of row i are at [start[i], start[i+1]). A column below
// n, the rank's own rows, means an element of its own; the others mean those that the list names.
type matrix struct {
	start, column []int
	value         []float64
	n             int
	list          []int // elements of other ranks
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
	m := plate(*side, lo, hi)
	want, b := make([]float64, m.n+len(m.list)), make([]float64, m.n)
	for i := range m.n {
		want[i] = answer(lo + i)
	}
	for i, at := range m.list {
		want[m.n+i] = answer(at)
	}
	m.times(b, want)
	start := time.Now()
	x, steps, err := solve(ctx, w, m, p, b)
	if err != nil {
		return err
	}
	took := time.Since(start)
	worst := []float64{0}
	for i := range x {
		worst[0] = max(worst[0], math.Abs(x[i]-want[i]))
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
	m := &matrix{n: hi - lo, start: []int{0}}
	place := map[int]int{} // of an element of another rank in the list
	add := func(cell int, v float64) {
		column := cell - lo
		if cell < lo || cell >= hi {
			at, known := place[cell]
			if !known {
				at = len(m.list)
				place[cell], m.list = at, append(m.list, cell)
			}
			column = m.n + at
		}
		m.column, m.value = append(m.column, column), append(m.value, v)
	}
	for cell := lo; cell < hi; cell++ {
		row, col := cell/side, cell%side
		add(cell, 4)
		for _, d := range [][2]int{{-1, 0}, {0, -1}, {0, 1}, {1, 0}} {
			if r, c := row+d[0], col+d[1]; r >= 0 && r < side && c >= 0 && c < side {
				add(r*side+c, -1)
			}
		}
		m.start = append(m.start, len(m.column))
	}
	return m
}

// times sets q to the product with v: first the rank's own elements, then those of the list.
func (m *matrix) times(q, v []float64) {
	for i := range q {
		sum := 0.0
		for k := m.start[i]; k < m.start[i+1]; k++ {
			sum += m.value[k] * v[m.column[k]]
		}
		q[i] = sum
	}
}

// solve returns this rank's part of the solution, and the number of steps. p is what the ranks read of each other.
func solve(ctx context.Context, w *pgas.World, m *matrix, p *pgas.Array[float64], b []float64) ([]float64, int, error) {
	dot := func(u, v []float64) (float64, error) {
		sum := []float64{0}
		for i := range u {
			sum[0] += u[i] * v[i]
		}
		err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum)
		return sum[0], err
	}
	mine := p.Local()[:m.n]
	x, r, q, v := make([]float64, m.n), append([]float64(nil), b...), make([]float64, m.n), make([]float64, m.n+len(m.list))
	copy(mine, r)
	rr, err := dot(r, r)
	first := rr
	steps, told := 0, time.Now()
	for ; err == nil && rr > 1e-24*first && steps < p.Len()+100; steps++ {
		if err = p.Fence(ctx); err != nil { // all directions are written
			break
		}
		if err = p.Gather(v[m.n:], m.list); err != nil {
			break
		}
		copy(v, mine)
		m.times(q, v)
		var pq, next float64
		if pq, err = dot(v[:m.n], q); err != nil { // and after this sum all are read
			break
		}
		alpha := rr / pq
		for i := range x {
			x[i] += alpha * v[i]
			r[i] -= alpha * q[i]
		}
		if next, err = dot(r, r); err != nil {
			break
		}
		for i := range mine {
			mine[i] = r[i] + next/rr*v[i]
		}
		rr = next
		if w.Rank() == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "cg: step %d, residual %.1e\n", steps, math.Sqrt(rr/first))
		}
	}
	return x, steps, err
}
