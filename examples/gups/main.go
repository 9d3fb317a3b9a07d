// Command gups measures how fast the ranks together update random words of a table that is spread over all of them, by
// the rules of the benchmark RandomAccess of the HPC Challenge: four updates for each word of the table, an update is
// table[r mod size] ^= r for the next r of a fixed random sequence, and at the end 1 % of the words may be wrong.
//
// What it shows: access too fine-grained for messages. Where all memory is mapped here, a View makes an update a load and
// a store. Two ranks that update a word at the same moment may lose an update so, which the rules allow; with -atomic,
// and where not all is mapped, an update is an atomic operation, and none is lost.
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
	pgas.Main(func(ctx context.Context, w *pgas.World) error { return run(ctx, w, os.Args[1:], os.Stdout) })
}

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gups", flag.ContinueOnError)
	bits := flags.Int("bits", 20, "the table has 2 to this power words of 8 bytes")
	atomic := flags.Bool("atomic", false, "make every update atomic")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *bits < 0 || *bits > 40 || 1<<*bits < w.Size() || flags.NArg() > 0 {
		return fmt.Errorf("arguments %q: needed 0 to 40 bits, a word for each of %d ranks, and nothing else", args, w.Size())
	}
	// Cyclic deals the words out like cards: owner and place are a division, where blocks take more.
	table, err := pgas.NewArray[uint64](ctx, w.Team(), 1<<*bits, pgas.Cyclic())
	if err != nil {
		return err
	}
	for i, word := range table.Mine() {
		*word = uint64(i)
	}
	views, err := mapAll(ctx, w, table)
	if err != nil {
		return err
	} else if *atomic {
		views = nil
	}
	if err := table.Fence(ctx); err != nil { // nobody updates before all have filled their part
		return err
	}
	start := time.Now()
	if err := update(ctx, w, table, views, "update"); err != nil {
		return err
	}
	took := time.Since(start)
	// An exclusive or done twice undoes itself. So all updates again, atomically this time, must bring back the
	// beginning: where they do not, the first round has lost an update.
	if err := update(ctx, w, table, nil, "verify"); err != nil {
		return err
	}
	wrong, err := countWrong(ctx, w, table)
	if err != nil {
		return err
	} else if wrong > table.Len()/100 {
		return fmt.Errorf("wrong: %d of %d words, allowed %d (1 %%)", wrong, table.Len(), table.Len()/100)
	}
	if rate := 4 * float64(table.Len()) / took.Seconds(); w.Rank() == 0 {
		fmt.Fprintf(out, "%d updates of %d words by %d ranks: %v, %.1f million updates/s (%.4f GUPS)\nverified: %d words wrong, allowed %d\n",
			4*table.Len(), table.Len(), w.Size(), took.Round(time.Microsecond), rate/1e6, rate/1e9, wrong, table.Len()/100)
	}
	return nil
}

// mapAll returns the parts of all ranks as memory of this process, or nil where some rank cannot have that: plain
// stores and atomics on the same word do not mix, so all ranks do the same.
func mapAll(ctx context.Context, w *pgas.World, table *pgas.Array[uint64]) ([]window.View[uint64], error) {
	views, mapped := make([]window.View[uint64], w.Size()), []int32{1}
	for r := range views {
		view, ok := table.Window().View(r)
		if views[r] = view; !ok {
			mapped[0] = 0
		}
	}
	if err := pgsync.AllReduce(ctx, w.Team(), mapped, mapped, pgsync.Min); err != nil || mapped[0] == 0 {
		return nil, err
	}
	return views, nil
}

// update does this rank's share of the sequence, through views unless that is nil, and returns when all ranks have.
func update(ctx context.Context, w *pgas.World, table *pgas.Array[uint64], views []window.View[uint64], what string) error {
	n, mask := 4*table.Len(), uint64(table.Len()-1)
	lo, hi := n*w.Rank()/w.Size(), n*(w.Rank()+1)/w.Size()
	for i, r := lo, number(lo+1); i < hi; i, r = i+1, times2(r) {
		if at := int(r & mask); i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		} else if views != nil {
			owner, disp := table.Owner(at)
			views[owner].Store(disp, views[owner].Load(disp)^r)
		} else if _, err := pgas.FetchXor(table, at, r); err != nil {
			return err
		}
		if i%(1<<26) == 0 && i > lo && w.Rank() == 0 {
			fmt.Fprintf(os.Stderr, "gups: %s %d of %d\n", what, i-lo, hi-lo)
		}
	}
	return table.Fence(ctx)
}

// countWrong returns how many words are not what they were in the beginning.
func countWrong(ctx context.Context, w *pgas.World, table *pgas.Array[uint64]) (int, error) {
	wrong := []int64{0}
	for i, word := range table.Mine() {
		if *word != uint64(i) {
			wrong[0]++
		}
	}
	err := pgsync.AllReduce(ctx, w.Team(), wrong, wrong, pgsync.Sum)
	return int(wrong[0]), err
}

// The sequence is 1, x, x^2, ... in the field of polynomials over two elements modulo x^64 + x^2 + x + 1: the next
// number is the last times x, and any number is found by squaring, so that each rank can begin in the middle.
func times2(r uint64) uint64 { return r<<1 ^ uint64(int64(r)>>63)&7 }

// number returns number i of the sequence.
func number(i int) uint64 {
	result, square := uint64(1), uint64(2)
	for ; i > 0; i, square = i>>1, multiply(square, square) {
		if i&1 == 1 {
			result = multiply(result, square)
		}
	}
	return result
}

func multiply(a, b uint64) (product uint64) {
	for ; b > 0; a, b = times2(a), b>>1 {
		product ^= a * (b & 1)
	}
	return product
}
