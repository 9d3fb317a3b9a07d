// Command indexgather reads random elements of a table that is spread over all ranks, as the program of that name of
// the bale collection does it.
//
// What it shows: many small gets. With -how one every element is a get that is waited for before the next. With -how
// gather a whole list of indices is one call: the gets for all owners are on their way together, and where the NIC is
// far they cost little more than one.
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
)

const batch = 1024 // indices of one call

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("indexgather", flag.ContinueOnError)
	size := flags.Int("table", 1<<20, "elements of the table")
	reads := flags.Int("reads", 1<<20, "elements that each rank reads")
	how := flags.String("how", "gather", "one: one at a time; gather: many with one call")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *size < 1 || *size > 1<<32 || *reads < 0 || *reads > 1<<32 || *how != "one" && *how != "gather" || flags.NArg() > 0 {
		return fmt.Errorf("-table %d -reads %d -how %s and arguments %q: needed 1 to %d elements, 0 to %d reads, one or gather, and nothing else",
			*size, *reads, *how, flags.Args(), 1<<32, 1<<32)
	}
	table, err := pgas.NewArray[uint64](ctx, w.Team(), *size, pgas.Cyclic())
	if err != nil {
		return err
	}
	for i, v := range table.Mine() {
		*v = valueAt(i)
	}
	if err := table.Fence(ctx); err != nil {
		return err
	}
	start := time.Now()
	wrong := []int64{0}
	if wrong[0], err = read(ctx, table, w.Rank(), *reads, *how == "gather"); err != nil {
		return err
	}
	if err := pgsync.AllReduce(ctx, w.Team(), wrong, wrong, pgsync.Sum); err != nil {
		return err
	}
	took := time.Since(start)
	if wrong[0] != 0 {
		return fmt.Errorf("wrong: %d elements are not what was written", wrong[0])
	}
	if all := *reads * w.Size(); w.Rank() == 0 {
		fmt.Fprintf(out, "%d reads from %d elements by %d ranks, %s: %v, %.1f million reads/s\nverified: all as written\n",
			all, *size, w.Size(), *how, took.Round(time.Microsecond), float64(all)/took.Seconds()/1e6)
	}
	return nil
}

// valueAt is what element i holds.
func valueAt(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 1 }

// read reads random elements and returns how many were wrong.
func read(ctx context.Context, table *pgas.Array[uint64], rank, reads int, gather bool) (wrong int64, err error) {
	x := uint64(rank+1) * 0xbf58476d1ce4e5b9
	at, got := make([]int, batch), make([]uint64, batch)
	told := time.Now()
	for done := 0; done < reads; done += len(at) {
		if ctx.Err() != nil { // reads do not ask
			return wrong, ctx.Err()
		}
		at, got = at[:min(batch, reads-done)], got[:min(batch, reads-done)]
		for i := range at {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			at[i] = int(x % uint64(table.Len()))
		}
		if gather {
			err = table.Gather(got, at)
		} else {
			for i := range at {
				if got[i], err = table.At(at[i]); err != nil {
					break
				}
			}
		}
		if err != nil {
			return wrong, err
		}
		for i := range at {
			if got[i] != valueAt(at[i]) {
				wrong++
			}
		}
		if rank == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "indexgather: %d of %d\n", done, reads)
		}
	}
	return wrong, nil
}
