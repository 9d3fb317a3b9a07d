// Command matmul multiplies two matrices by the algorithm SUMMA (van de Geijn and Watts, 1997). The ranks form a grid,
// and each has one block of A, of B and of C. C grows panel by panel: for some columns of A and the same rows of B, a
// rank needs the part of the panel of A that lies in its row of ranks and the part of B's that lies in its column.
//
// What it shows: gets that do not wait. While a panel is multiplied the next one is on its way, and nobody sends it: its
// owner multiplies too. Blocks of A lie column by column and blocks of B row by row, so that a panel is in one piece.
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

// grid is what a rank knows of the problem: its place among rows x cols ranks, and its blocks.
type grid struct {
	n, rows, cols, row, col int
	a, b                    *window.Window[float64]
	c                       []float64
}

// cut is where part i of k parts of n begins.
func cut(n, k, i int) int { return n * i / k }

// height and width are of the block of the ranks in that row and column.
func (g *grid) height(row int) int { return cut(g.n, g.rows, row+1) - cut(g.n, g.rows, row) }
func (g *grid) width(col int) int  { return cut(g.n, g.cols, col+1) - cut(g.n, g.cols, col) }

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	g := &grid{rows: 1}
	flags := flag.NewFlagSet("matmul", flag.ContinueOnError)
	flags.IntVar(&g.n, "n", 512, "rows and columns")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if g.n < w.Size() || g.n > 1<<13 || flags.NArg() > 0 {
		return fmt.Errorf("-n %d and arguments %q: needed %d (a row for each rank) to %d, and nothing else", g.n, flags.Args(), w.Size(), 1<<13)
	}
	for d := 2; d*d <= w.Size(); d++ { // as square as the number of ranks allows
		if w.Size()%d == 0 {
			g.rows = d
		}
	}
	g.cols = w.Size() / g.rows
	g.row, g.col = w.Rank()/g.cols, w.Rank()%g.cols
	high, wide := g.height(g.row), g.width(g.col)
	g.c = make([]float64, high*wide)
	var err error
	for _, m := range []**window.Window[float64]{&g.a, &g.b} {
		if *m, err = window.Allocate[float64](ctx, w.Team(), (g.n/g.rows+1)*(g.n/g.cols+1)); err != nil {
			return err
		}
	}
	for i := range high {
		for j := range wide { // A[i][k] = i+k and B[k][j] = k-j: whole numbers, and a sum that can be written down
			top, left := cut(g.n, g.rows, g.row)+i, cut(g.n, g.cols, g.col)+j
			g.a.Local()[j*high+i], g.b.Local()[i*wide+j] = float64(top+left), float64(top-left)
		}
	}
	if err := g.b.Fence(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := g.multiply(ctx, w.Rank() == 0); err != nil {
		return err
	}
	if err := w.Team().Barrier(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	worst := []float64{g.worst()}
	if err := pgsync.AllReduce(ctx, w.Team(), worst, worst, pgsync.Max); err != nil {
		return err
	}
	if !(worst[0] == 0) { // NaN too
		return fmt.Errorf("wrong: an element of C is off by %g", worst[0])
	}
	if work := 2 * math.Pow(float64(g.n), 3); w.Rank() == 0 {
		fmt.Fprintf(out, "%d x %d by %d x %d ranks: %v, %.2f Gflop/s\nverified: all elements exact\n",
			g.n, g.n, g.rows, g.cols, took.Round(time.Microsecond), work/took.Seconds()/1e9)
	}
	return nil
}

// part is a panel that is here, or on its way.
type part struct {
	from, to int // columns of A and rows of B
	a, b     []float64
	wait     [2]window.Handle
}

// multiply adds panel after panel to C.
func (g *grid) multiply(ctx context.Context, first bool) error {
	var parts [2]part
	for i := range parts {
		parts[i].a, parts[i].b = make([]float64, panel*g.height(g.row)), make([]float64, panel*g.width(g.col))
	}
	if err := g.fetch(&parts[0], 0); err != nil {
		return err
	}
	told := time.Now()
	for turn := 0; parts[turn].from < g.n; turn = 1 - turn {
		here, next := &parts[turn], &parts[1-turn]
		if err := g.fetch(next, here.to); err != nil {
			return err
		}
		for i := range here.wait {
			if err := here.wait[i].Wait(ctx); err != nil {
				return err
			}
		}
		high, wide := g.height(g.row), g.width(g.col)
		for i := range high {
			row := g.c[i*wide:][:wide]
			for k := range here.to - here.from {
				a, b := here.a[k*high+i], here.b[k*wide:][:wide]
				for j := range row {
					row[j] += a * b[j]
				}
			}
		}
		if first && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "matmul: %d of %d\n", here.to, g.n)
		}
	}
	return nil
}

// fetch begins to get the panel that begins at k; it ends where an owner's block ends.
func (g *grid) fetch(p *part, k int) (err error) {
	if p.from, p.to = k, k; k >= g.n {
		return nil
	}
	col, row := 0, 0 // of the ranks that own these columns of A and these rows of B
	for cut(g.n, g.cols, col+1) <= k {
		col++
	}
	for cut(g.n, g.rows, row+1) <= k {
		row++
	}
	p.to = min(k+panel, cut(g.n, g.cols, col+1), cut(g.n, g.rows, row+1))
	high, wide, n := g.height(g.row), g.width(g.col), p.to-k
	if p.wait[0], err = g.a.GetNB(g.row*g.cols+col, (k-cut(g.n, g.cols, col))*high, p.a[:n*high]); err != nil {
		return err
	}
	p.wait[1], err = g.b.GetNB(row*g.cols+g.col, (k-cut(g.n, g.rows, row))*wide, p.b[:n*wide])
	return err
}

// worst returns by how much an element of this rank's block of C is off.
func (g *grid) worst() (worst float64) {
	n := float64(g.n)
	sum, squares := n*(n-1)/2, (n-1)*n*(2*n-1)/6
	for at, c := range g.c {
		i, j := float64(cut(g.n, g.rows, g.row)+at/g.width(g.col)), float64(cut(g.n, g.cols, g.col)+at%g.width(g.col))
		worst = max(worst, math.Abs(c-(squares+(i-j)*sum-n*i*j)))
	}
	return worst
}
