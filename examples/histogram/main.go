// Command histogram counts how often each of many values occurs, in bins that are spread over all ranks.
//
// What it shows: two ways to add to memory of others. With -how each every value is an atomic operation of its own,
// which is right where there is little to add. With -how local a rank counts in bins of its own first, and then adds
// a whole part of them to each owner's with one Accumulate: less traffic, and more memory. No rank waits for another
// before the end, and no addition is lost either way.
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

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("histogram", flag.ContinueOnError)
	bins := flags.Int("bins", 1000, "bins")
	values := flags.Int("values", 1_000_000, "values of each rank")
	how := flags.String("how", "local", "each: add every value by itself; local: count here first")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	add := map[string]func(context.Context, *pgas.Array[int64], int, int) error{"each": addEach, "local": addLocal}[*how]
	if *bins < 1 || *bins > 1<<24 || *values < 0 || *values > 1<<32 || add == nil || flags.NArg() > 0 {
		return fmt.Errorf("-bins %d -values %d -how %s and arguments %q: needed 1 to %d bins, 0 to %d values, each or local, and nothing else",
			*bins, *values, *how, flags.Args(), 1<<24, 1<<32)
	}
	hist, err := pgas.NewArray[int64](ctx, w.Team(), *bins, pgas.Block())
	if err != nil {
		return err
	}
	start := time.Now()
	if err := add(ctx, hist, w.Rank(), *values); err != nil {
		return err
	}
	if err := hist.Fence(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	if err := check(ctx, hist, w.Size(), *values); err != nil {
		return err
	}
	if all := *values * w.Size(); w.Rank() == 0 {
		fmt.Fprintf(out, "%d values in %d bins by %d ranks, %s: %v, %.1f million values/s\nverified: all bins exact\n",
			all, *bins, w.Size(), *how, took.Round(time.Microsecond), float64(all)/took.Seconds()/1e6)
	}
	return nil
}

// each calls f with the bins of all values of a rank, which are the same in every run. Low bins are fuller than high ones.
func each(ctx context.Context, rank, values, bins int, f func(bin int) error) error {
	x := uint64(rank+1) * 0x9e3779b97f4a7c15
	for i := range values {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		u := float64(x>>11) / (1 << 53)
		if err := f(int(u * u * float64(bins))); err != nil {
			return err
		}
	}
	return nil
}

func addEach(ctx context.Context, hist *pgas.Array[int64], rank, values int) error {
	return each(ctx, rank, values, hist.Len(), func(bin int) error {
		_, err := pgas.FetchAdd(hist, bin, 1)
		return err
	})
}

func addLocal(ctx context.Context, hist *pgas.Array[int64], rank, values int) error {
	mine := make([]int64, hist.Len())
	if err := each(ctx, rank, values, len(mine), func(bin int) error { mine[bin]++; return nil }); err != nil {
		return err
	}
	ranks := hist.Team().Size()
	for k := range ranks { // the next rank first: not all begin with the same one
		owner := (rank + k) % ranks
		lo, hi := hist.Range(owner)
		if err := window.Accumulate(hist.Window(), owner, 0, mine[lo:hi], pgsync.Sum); err != nil {
			return err
		}
	}
	return nil
}

// check counts the values of all ranks again for the bins of this one.
func check(ctx context.Context, hist *pgas.Array[int64], ranks, values int) error {
	lo, hi := hist.Range(hist.Team().Rank())
	want, wrong := make([]int64, hi-lo), []int64{0}
	for r := range ranks {
		err := each(ctx, r, values, hist.Len(), func(bin int) error {
			if bin >= lo && bin < hi {
				want[bin-lo]++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, n := range hist.Local()[:hi-lo] {
		if n != want[i] {
			wrong[0]++
		}
	}
	if err := pgsync.AllReduce(ctx, hist.Team(), wrong, wrong, pgsync.Sum); err != nil {
		return err
	}
	if wrong[0] != 0 {
		return fmt.Errorf("wrong: %d of %d bins", wrong[0], hist.Len())
	}
	return nil
}
