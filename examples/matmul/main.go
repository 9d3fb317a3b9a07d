// Command matmul multiplies two matrices by the algorithm SUMMA (van de Geijn and Watts, 1997). The ranks form a grid,
// and each has one block of A, of B and of C. C grows panel by panel: for some columns of A and the same rows of B, a
// rank needs the part of the panel of A that lies in its rows, and the part of B's that lies in its columns.
//
// What it shows: a matrix that every rank sees as a whole, whoever owns the elements, and gets that do not wait. While a
// panel is multiplied the next one is on its way, and nobody sends it: its owners multiply too.
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

const panel = 32 // columns of A and rows of B that are multiplied at a time

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("matmul", flag.ContinueOnError)
	n := flags.Int("n", 512, "rows and columns")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *n < w.Size() || *n > 1<<13 || flags.NArg() > 0 {
		return fmt.Errorf("-n %d and arguments %q: needed %d (a row for each rank) to %d, and nothing else", *n, flags.Args(), w.Size(), 1<<13)
	}
	var all [3]*pgas.Matrix[float64]
	for i := range all {
		var err error
		if all[i], err = pgas.NewMatrix[float64](ctx, w.Team(), *n, *n, pgas.Grid{}); err != nil {
			return err
		}
	}
	a, b, c := all[0], all[1], all[2]
	// A[i][k] = i+k and B[k][j] = k-j: whole numbers, and a sum that can be written down.
	if err := a.Apply(ctx, func(i, k int, _ float64) float64 { return float64(i + k) }); err != nil {
		return err
	}
	if err := b.Apply(ctx, func(k, j int, _ float64) float64 { return float64(k - j) }); err != nil {
		return err
	}
	start := time.Now()
	if err := multiply(ctx, a, b, c); err != nil {
		return err
	}
	if err := c.Fence(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	worst := []float64{0}
	for at, got := range c.Mine() {
		worst[0] = max(worst[0], math.Abs(*got-product(*n, at[0], at[1])))
	}
	if err := pgsync.AllReduce(ctx, w.Team(), worst, worst, pgsync.Max); err != nil {
		return err
	}
	if !(worst[0] == 0) { // NaN too
		return fmt.Errorf("wrong: an element of C is off by %g", worst[0])
	}
	if work := 2 * math.Pow(float64(*n), 3); w.Rank() == 0 {
		fmt.Fprintf(out, "%d x %d by %d x %d ranks: %v, %.2f Gflop/s\nverified: all elements exact\n",
			*n, *n, c.Grid().Rows, c.Grid().Cols, took.Round(time.Microsecond), work/took.Seconds()/1e9)
	}
	return nil
}

// part is what a rank needs of a panel: some columns of A in its rows, the same rows of B in its columns.
type part struct {
	a, b []float64
	wait [2]window.Handles
}

// multiply adds panel after panel to this rank's block of C.
func multiply(ctx context.Context, a, b, c *pgas.Matrix[float64]) error {
	mine := c.Block(c.Team().Rank())
	var parts [2]part // one that is here, one that is on its way
	for i := range parts {
		parts[i].a, parts[i].b = make([]float64, mine.Rows*panel), make([]float64, panel*mine.Cols)
	}
	fetch := func(p *part, k int) (err error) {
		n := min(panel, a.Cols()-k)
		if p.wait[0], err = a.GetNB(pgas.Area{Row: mine.Row, Col: k, Rows: mine.Rows, Cols: n}, p.a[:mine.Rows*n]); err != nil {
			return err
		}
		p.wait[1], err = b.GetNB(pgas.Area{Row: k, Col: mine.Col, Rows: n, Cols: mine.Cols}, p.b[:n*mine.Cols])
		return err
	}
	if err := fetch(&parts[0], 0); err != nil {
		return err
	}
	told := time.Now()
	for k, turn := 0, 0; k < a.Cols() && ctx.Err() == nil; k, turn = k+panel, 1-turn {
		here, n := &parts[turn], min(panel, a.Cols()-k)
		if k+n < a.Cols() {
			if err := fetch(&parts[1-turn], k+n); err != nil {
				return err
			}
		}
		for _, h := range here.wait {
			if err := h.Wait(ctx); err != nil {
				return err
			}
		}
		for i := range mine.Rows {
			row := c.Row(i)[:mine.Cols]
			for k, x := range here.a[i*n:][:n] {
				line := here.b[k*mine.Cols:][:len(row)]
				for j := range row {
					row[j] += x * line[j]
				}
			}
		}
		if c.Team().Rank() == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "matmul: %d of %d\n", k+n, a.Cols())
		}
	}
	return ctx.Err()
}

// product is element (i, j) of C: the sum of (i+k)(k-j) for k from 0 to n-1.
func product(n, i, j int) float64 {
	sum, squares := n*(n-1)/2, (n-1)*n*(2*n-1)/6
	return float64(squares + (i-j)*sum - n*i*j)
}
