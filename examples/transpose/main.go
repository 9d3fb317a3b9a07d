// Command transpose adds the transpose of one matrix to another, over and over: B += Aᵀ, then A += 1, as the kernel
// of that name of the Parallel Research Kernels does it. Both matrices lie in bands of rows; what is a row here is a
// column there, so each rank needs a block of every other rank's band.
//
// What it shows: the block is a section of the other's memory, rows of a part of its columns, and one GetSection brings
// it, whatever the path. It begins with the next rank, not with rank 0, so that not all ask the same one at once.
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

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// band is the rows [first(rank), first(rank+1)) of both matrices.
type band struct {
	order, rank, ranks int
	a, b               *window.Window[float64]
	block              []float64
}

func (t *band) first(rank int) int  { return t.order * rank / t.ranks }
func (t *band) height(rank int) int { return t.first(rank+1) - t.first(rank) }

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	t := &band{rank: w.Rank(), ranks: w.Size()}
	flags := flag.NewFlagSet("transpose", flag.ContinueOnError)
	flags.IntVar(&t.order, "order", 1024, "rows and columns")
	times := flags.Int("times", 20, "how often to transpose")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if t.order < t.ranks || t.order > 1<<15 || *times < 0 || flags.NArg() > 0 {
		return fmt.Errorf("-order %d -times %d and arguments %q: needed %d (a row for each rank) to %d rows, 0 times or more, and nothing else",
			t.order, *times, flags.Args(), t.ranks, 1<<15)
	}
	var err error
	most := (t.order-1)/t.ranks + 1 // rows of the highest band
	for _, m := range []**window.Window[float64]{&t.a, &t.b} {
		if *m, err = window.Allocate[float64](ctx, w.Team(), most*t.order); err != nil {
			return err
		}
	}
	t.block = make([]float64, most*most)
	for i := range t.height(t.rank) * t.order {
		t.a.Local()[i] = float64(t.first(t.rank)*t.order + i)
	}
	if err := t.a.Fence(ctx); err != nil {
		return err
	}
	start := time.Now()
	for range *times {
		if ctx.Err() != nil { // a rank alone never waits
			return ctx.Err()
		}
		if err := t.addTranspose(); err != nil {
			return err
		}
		if err := t.a.Fence(ctx); err != nil { // all have read my rows
			return err
		}
		for i := range t.height(t.rank) * t.order {
			t.a.Local()[i]++
		}
		if err := t.a.Fence(ctx); err != nil { // and all have counted on
			return err
		}
	}
	took := time.Since(start)
	worst := []float64{t.worst(*times)}
	if err := pgsync.AllReduce(ctx, w.Team(), worst, worst, pgsync.Max); err != nil {
		return err
	}
	if !(worst[0] == 0) { // NaN too
		return fmt.Errorf("wrong: an element is off by %g after %d times", worst[0], *times)
	}
	if moved := 16 * float64(t.order) * float64(t.order) * float64(*times); w.Rank() == 0 {
		fmt.Fprintf(out, "%d x %d transposed %d times by %d ranks: %v, %.1f GB/s\nverified: all elements exact\n",
			t.order, t.order, *times, t.ranks, took.Round(time.Microsecond), moved/took.Seconds()/1e9)
	}
	return nil
}

// addTranspose adds the columns of A that are this rank's rows of B.
func (t *band) addTranspose() error {
	b, mine, first := t.b.Local(), t.height(t.rank), t.first(t.rank)
	for k := range t.ranks {
		from := (t.rank + k) % t.ranks
		theirs, at := t.height(from), t.first(from)
		block := t.block[:theirs*mine]
		if err := t.a.GetSection(from, first, block, window.Packed(theirs, mine, t.order)); err != nil {
			return err
		}
		for i := range mine {
			row := b[i*t.order+at:][:theirs]
			for j := range row {
				row[j] += block[j*mine+i]
			}
		}
	}
	return nil
}

// worst returns by how much an element of this rank's part of B is off. All values are whole numbers.
func (t *band) worst(times int) (worst float64) {
	n := float64(times)
	for i := range t.height(t.rank) {
		for j := range t.order {
			want := n*float64(j*t.order+t.first(t.rank)+i) + n*(n-1)/2
			worst = max(worst, math.Abs(t.b.Local()[i*t.order+j]-want))
		}
	}
	return worst
}
